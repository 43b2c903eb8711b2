"""How the boxes of a predicate graph lie side by side, and what is written on them, in inches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headgate.plots.memory.fonts import Fonts, printable
from headgate.plots.memory.graph import Edge, Limit, Node, PredicateGraph
from headgate.plots.memory.layout import Slot
from headgate.plots.memory.places import Places, Side, side_of

NAME_SIZE, CONSTANT_SIZE, TITLE_SIZE, SMALL_SIZE = 10.0, 9.0, 11.0, 8.0  # points
LONGEST_NAME, LONGEST_CONSTANT = 30, 24  # characters
MARGIN = 0.25
PAD = 0.16  # between a box and its nodes
STUB = 0.17  # from a box to the operator beside it, and on to a constant
GUTTER, PER_LINK = 0.6, 0.03  # room for curves between boxes
GAP = 0.05  # from the end of a line to a constant
ARC = 0.16  # room for an edge inside a box


@dataclass(frozen=True, slots=True)
class Column:
    """A stream's box and the nodes in it, from left to right; its constants stand outside of it."""

    left: float
    box: tuple[float, float]
    nodes: tuple[float, float]
    right: float


@dataclass(frozen=True)
class Columns:
    """The columns of a graph, wide enough for their texts."""

    graph: PredicateGraph
    places: Places

    @cached_property
    def fonts(self) -> Fonts:
        graph = self.graph
        texts = [graph.headline, graph.sentence, *graph.left_out]
        texts += [text for box in graph.boxes for text in (box.alias, box.stream)]
        texts += [node.name for node in graph.nodes]
        return Fonts.of([*texts, *(limit.constant.text for limit in graph.limits)])

    @cached_property
    def all(self) -> tuple[Column, ...]:
        found: list[Column] = []
        at = MARGIN
        for number in range(len(self.graph.boxes)):
            links = sum(slot.column == number for way in self.places.slots.ways for slot in way[1:])
            at += GUTTER + PER_LINK * links if number else 0
            found.append(self._column(number, at))
            at = found[-1].right
        return tuple(found)

    def _column(self, number: int, left: float) -> Column:
        names = [node_text(node) for node in self.graph.nodes if node.source == number]
        widest = self._widest(names, NAME_SIZE) + 2 * PAD
        header = max(self._widest([text], size) for text, size in self.header(number))
        arcs = len(self.arcs(number))
        beside = ARC * (arcs + 1) if arcs else 0
        inner = max(widest, header - beside)
        start = left + self._outside(number, "left")
        end = start + PAD + inner + PAD + beside
        nodes = start + PAD, start + PAD + inner
        return Column(left, (start, end), nodes, end + self._outside(number, "right"))

    def _outside(self, number: int, side: Side) -> float:
        """The room for operators and constants at a side of a box."""
        nodes, last = self.graph.nodes, len(self.graph.boxes) - 1
        beside = [
            constant_text(limit)
            for limit in self.graph.limits
            if nodes[limit.node].source == number and side_of(limit) == side
        ]
        if not beside and number == (0 if side == "left" else last):
            return 0.0
        return 2 * STUB + (self._widest(beside, CONSTANT_SIZE) + GAP if beside else 0.0)

    def _widest(self, texts: Sequence[str], size: float) -> float:
        return max((self.fonts.width(text, size) for text in texts), default=0.0)

    def arcs(self, number: int) -> list[Edge]:
        """The edges inside a box, the shortest first."""

        def length(edge: Edge) -> float:
            smaller, greater = Slot(number, edge.smaller), Slot(number, edge.greater)
            return abs(self.places.middle[smaller] - self.places.middle[greater])

        ways = zip(self.graph.edges, self.places.slots.ways, strict=True)
        inside = (edge for edge, way in ways if not way)
        here = [e for e in inside if self.graph.nodes[e.smaller].source == number]
        return sorted(here, key=length)

    def header(self, number: int) -> list[tuple[str, float]]:
        """The lines over the nodes of a box, each with its size."""
        box = self.graph.boxes[number]
        lines = [(_shortened(box.alias, LONGEST_NAME), TITLE_SIZE)]
        if box.stream != box.alias:
            lines.append((_shortened(box.stream, LONGEST_NAME), SMALL_SIZE))
        if box.rows is not None:
            lines.append((f"last {box.rows:,} row{'s' * (box.rows != 1)}", SMALL_SIZE))
        return lines


def node_text(node: Node) -> str:
    """An attribute, and the aggregates that see it."""
    name = _shortened(node.name, LONGEST_NAME)
    return f"{name} · {', '.join(node.roles)}" if node.roles else name


def constant_text(limit: Limit) -> str:
    return _shortened(limit.constant.text, LONGEST_CONSTANT)


def _shortened(text: str, longest: int) -> str:
    """The beginning and the end of a long name, on one line."""
    line = printable(text)
    half = longest // 2
    return line if len(line) <= longest else f"{line[:half]}…{line[1 - half :]}"
