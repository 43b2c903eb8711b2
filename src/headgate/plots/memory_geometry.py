"""How the boxes of a predicate graph lie side by side, and what is written on them, in inches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from headgate.plots.figures import Fonts
from headgate.plots.memory_graph import Edge, Limit, Node, PredicateGraph
from headgate.plots.memory_layout import Places, Side, Slot, get_side
from headgate.predicate.atoms import MIRROR

HARD_SPACE = "\N{NO-BREAK SPACE}"


def to_one_line(text: str) -> str:
    """Return a text on one line, whatever it holds."""
    return "".join(c if c.isprintable() or c == HARD_SPACE else f"\\u{ord(c):04x}" for c in text)


NAME_SIZE, CONSTANT_SIZE, TITLE_SIZE, SMALL_SIZE = 10.0, 9.0, 11.0, 8.0  # points
MAX_NAME_LENGTH, MAX_CONSTANT_LENGTH = 30, 24  # characters
MARGIN = 0.25
PAD = 0.16  # between a box and its nodes
STUB = 0.17  # from a box to the operator next to it, and on to a constant
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
class ColumnLayout:
    """The columns of a graph, wide enough for their texts."""

    graph: PredicateGraph
    places: Places

    @cached_property
    def fonts(self) -> Fonts:
        graph = self.graph
        # All that is written, since its characters decide on the fonts.
        texts = [graph.headline, graph.sentence, *graph.left_out]
        texts += [text for box in graph.boxes for text in (box.alias, box.stream)]
        texts += [node.name for node in graph.nodes]
        return Fonts.of([*texts, *(limit.constant.text for limit in graph.limits)])

    @cached_property
    def all(self) -> tuple[Column, ...]:
        columns: list[Column] = []
        # From left to right: each column begins where the one before it ends, and a gutter further.
        at = MARGIN
        for number in range(len(self.graph.boxes)):
            # Links that come in from the left, each of which needs some room for its curve.
            links = sum(
                slot.column == number for path in self.places.slots.paths for slot in path[1:]
            )
            at += GUTTER + PER_LINK * links if number else 0
            columns.append(self._make_column(number, at))
            at = columns[-1].right
        return tuple(columns)

    def _make_column(self, number: int, left: float) -> Column:
        names = [format_node(node) for node in self.graph.nodes if node.source == number]
        widest = self._find_widest(names, NAME_SIZE) + 2 * PAD
        header = max(self._find_widest([text], size) for text, size in self.list_header(number))
        # Edges inside the box run at the right of its nodes; the header may use that room as well.
        arcs = len(self.list_arcs(number))
        arc_width = ARC * (arcs + 1) if arcs else 0
        inner = max(widest, header - arc_width)
        start = left + self._measure_outside(number, "left")
        end = start + PAD + inner + PAD + arc_width
        nodes = start + PAD, start + PAD + inner
        return Column(left, (start, end), nodes, end + self._measure_outside(number, "right"))

    def _measure_outside(self, number: int, side: Side) -> float:
        """Return the room for operators and constants at a side of a box."""
        nodes, last = self.graph.nodes, len(self.graph.boxes) - 1
        widths = [
            format_constant(limit)
            for limit in self.graph.limits
            if nodes[limit.node].source == number and get_side(limit) == side
        ]
        # Nothing stands outside of the first and the last box but constants; between boxes there is
        # room for the operators of edges.
        if not widths and number == (0 if side == "left" else last):
            return 0.0
        return 2 * STUB + (self._find_widest(widths, CONSTANT_SIZE) + GAP if widths else 0.0)

    def _find_widest(self, texts: Sequence[str], size: float) -> float:
        return max((self.fonts.width(text, size) for text in texts), default=0.0)

    def list_arcs(self, number: int) -> list[Edge]:
        """Return the edges inside a box, the shortest first."""

        def length(edge: Edge) -> float:
            smaller, greater = Slot(number, edge.smaller), Slot(number, edge.greater)
            return abs(self.places.middle[smaller] - self.places.middle[greater])

        paths = zip(self.graph.edges, self.places.slots.paths, strict=True)
        # An edge without a path stays inside its box.
        inside = (edge for edge, path in paths if not path)
        arcs = [e for e in inside if self.graph.nodes[e.smaller].source == number]
        return sorted(arcs, key=length)

    def list_header(self, number: int) -> list[tuple[str, float]]:
        """Return the lines over the nodes of a box, each with its size."""
        box = self.graph.boxes[number]
        lines = [(_shorten(box.alias, MAX_NAME_LENGTH), TITLE_SIZE)]
        if box.stream != box.alias:
            lines.append((_shorten(box.stream, MAX_NAME_LENGTH), SMALL_SIZE))
        if box.rows is not None:
            lines.append((f"last {box.rows:,} row{'s' * (box.rows != 1)}", SMALL_SIZE))
        return lines


def format_node(node: Node) -> str:
    """Return an attribute, and the aggregates that see it."""
    name = _shorten(node.name, MAX_NAME_LENGTH)
    return f"{name} · {', '.join(node.roles)}" if node.roles else name


def format_constant(limit: Limit) -> str:
    """Return the constant of a limit, shortened."""
    return _shorten(limit.constant.text, MAX_CONSTANT_LENGTH)


def _shorten(text: str, longest: int) -> str:
    """Return the beginning and the end of a long name, on one line."""
    line = to_one_line(text)
    half = longest // 2
    return line if len(line) <= longest else f"{line[:half]}…{line[1 - half :]}"


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """`points` are a start, then two controls and an end for each curve."""

    points: tuple[Point, ...]
    sign: str
    sign_at: Point


def make_edge_line(columns: ColumnLayout, number: int) -> Line:
    """Return the line of an edge."""
    edge, path = columns.graph.edges[number], columns.places.slots.paths[number]
    return _curve_between_boxes(columns, edge, path) if path else _curve_inside_box(columns, edge)


def make_limit_line(columns: ColumnLayout, limit: Limit) -> Line:
    """Return the line between a node and its constant, which stands at one end of it."""
    column = columns.all[columns.graph.nodes[limit.node].source]
    side, operator = get_side(limit), limit.constant.operator
    y = columns.places.ports[limit.node, side, limit]
    if side == "left":
        outer = column.box[0] - 2 * STUB
        points = ((outer, y), *_extend_straight((outer, y), (column.nodes[0], y)))
        mirrored = "<" if operator == ">" else "<="
        return Line(points, mirrored, (column.box[0] - STUB, y))
    start, outer = (column.nodes[1], y), column.box[1] + 2 * STUB
    return Line((start, *_extend_straight(start, (outer, y))), operator, (column.box[1] + STUB, y))


def _curve_between_boxes(columns: ColumnLayout, edge: Edge, path: tuple[Slot, ...]) -> Line:
    """Return a line that is level next to and across boxes, and curved between them."""
    places = columns.places
    heights = [places.middle[slot] for slot in path]
    # At both ends the line meets a port of the node, not its middle.
    heights[0] = places.ports[path[0].node, "right", edge]
    heights[-1] = places.ports[path[-1].node, "left", edge]
    points = [(columns.all[path[0].column].nodes[1], heights[0])]
    for (start, end), (height, next_height) in zip(pairwise(path), pairwise(heights), strict=True):
        left, right = columns.all[start.column].right, columns.all[end.column].left
        middle = (left + right) / 2
        points += _extend_straight(points[-1], (left, height))
        points += [(middle, height), (middle, next_height), (right, next_height)]
    first, last = columns.all[path[0].column], columns.all[path[-1].column]
    points += _extend_straight(points[-1], (last.nodes[0], heights[-1]))
    # The arrow points to the greater side; its sign stands next to the box where it starts.
    if path[0].node == edge.smaller:
        return Line(tuple(points), edge.operator, (first.box[1] + STUB, heights[0]))
    sign_at = last.box[0] - STUB, heights[-1]
    return Line(tuple(reversed(points)), MIRROR[edge.operator], sign_at)


def _curve_inside_box(columns: ColumnLayout, edge: Edge) -> Line:
    """Return a line at the right of the nodes of one box, the longer the farther out."""
    number = columns.graph.nodes[edge.smaller].source
    right = columns.all[number].nodes[1]
    out = right + PAD + ARC * (columns.list_arcs(number).index(edge) + 1)
    start, end = (columns.places.ports[n, "right", edge] for n in (edge.smaller, edge.greater))
    # Out to the right, up or down, and back; the corners are rounded as far as there is room.
    turn = min(ARC, abs(end - start) / 2) * (1 if end > start else -1)
    straight = _extend_straight((out, start + turn), (out, end - turn))
    points = (
        *((right, start), (out, start), (out, start), (out, start + turn)),
        *(*straight, (out, end), (out, end), (right, end)),
    )
    return Line(points, edge.operator, (right + PAD, start))


def _extend_straight(start: Point, end: Point) -> list[Point]:
    """Return the rest of a curve that is a straight line."""
    (x, y), (far_x, far_y) = start, end
    across, up = (far_x - x) / 3, (far_y - y) / 3
    return [(x + across, y + up), (far_x - across, far_y - up), end]
