"""How high everything in a layout of a predicate graph lies, in inches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from headgate.plots.memory.graph import Edge, Limit, PredicateGraph
from headgate.plots.memory.layout import Order, Slot, Slots, ordered

PORT = 0.17  # between the ends of edges at a node
NODE, LANE = 0.34, 0.06  # the least height
SPACE = 0.14  # between slots
SWEEPS = 24

Side = Literal["left", "right"]
End = Edge | Limit


@dataclass(frozen=True, slots=True)
class Places:
    """Heights of slots at their middle, and where on the side of its node each edge ends."""

    slots: Slots
    middle: Mapping[Slot, float]
    tall: Mapping[Slot, float]
    ports: Mapping[tuple[int, Side, End], float]

    def span(self, column: int) -> tuple[float, float]:
        """From where to where the slots of a column reach."""
        inside = [slot for slot in self.middle if slot.column == column]
        low = min((self.middle[slot] - self.tall[slot] / 2 for slot in inside), default=0.0)
        return low, max((self.middle[slot] + self.tall[slot] / 2 for slot in inside), default=low)


def side_of(limit: Limit) -> Side:
    """What is below a node stands at its left, so that all is read from left to right."""
    return "left" if limit.constant.operator in (">", ">=") else "right"


def places(graph: PredicateGraph) -> Places:
    """Put everything in its place."""
    slots = Slots(graph)
    order = ordered(slots)
    ends = _ends(slots, order)
    tall = {slot: _tall(slot, ends) for column in order for slot in column}
    shifts = {
        (node, side, end): PORT * (at - (len(here) - 1) / 2)
        for (node, side), here in ends.items()
        for at, end in enumerate(here)
    }
    middle = _straightened(order, tall, _pulls(slots, shifts))
    ports = {
        (node, side, end): middle[Slot(graph.nodes[node].source, node)] + shift
        for (node, side, end), shift in shifts.items()
    }
    return Places(slots, middle, tall, ports)


def _ends(slots: Slots, order: Order) -> dict[tuple[int, Side], list[End]]:
    """The ends of edges at both sides of every node, from the bottom up, so that none cross."""
    graph = slots.graph
    rank = {slot: at for column in order for at, slot in enumerate(column)}
    found: dict[tuple[int, Side], list[tuple[tuple[int, int], End]]] = {}
    for edge, way in zip(graph.edges, slots.ways, strict=True):
        if way:
            found.setdefault((way[0].node, "right"), []).append(((1, rank[way[1]]), edge))
            found.setdefault((way[-1].node, "left"), []).append(((1, rank[way[-2]]), edge))
            continue
        column = graph.nodes[edge.smaller].source
        for node, other in ((edge.smaller, edge.greater), (edge.greater, edge.smaller)):
            away = rank[Slot(column, other)] - rank[Slot(column, node)]
            found.setdefault((node, "right"), []).append(((2 if away > 0 else -1, -away), edge))
    for limit in graph.limits:
        found.setdefault((limit.node, side_of(limit)), []).append(((0, 0), limit))
    return {
        key: [end for _, end in sorted(ends, key=lambda keyed: keyed[0])]
        for key, ends in found.items()
    }


def _tall(slot: Slot, ends: Mapping[tuple[int, Side], Sequence[End]]) -> float:
    if slot.node < 0:
        return LANE
    sides: tuple[Side, Side] = ("left", "right")
    most = max(len(ends.get((slot.node, side), ())) for side in sides)
    return max(NODE, PORT * most + LANE)


Pulls = Mapping[Slot, Sequence[tuple[Slot, float]]]


def _pulls(slots: Slots, shifts: Mapping[tuple[int, Side, End], float]) -> Pulls:
    """For each slot those that it is linked with, and how far above them makes the link level."""
    found: dict[Slot, list[tuple[Slot, float]]] = {slot: [] for slot in slots.beside}
    for edge, way in zip(slots.graph.edges, slots.ways, strict=True):
        for left, right in pairwise(way):
            start = shifts.get((left.node, "right", edge), 0.0)
            end = shifts.get((right.node, "left", edge), 0.0)
            found[left].append((right, end - start))
            found[right].append((left, start - end))
    return found


def _straightened(order: Order, tall: Mapping[Slot, float], pulls: Pulls) -> dict[Slot, float]:
    """Slots in their order, apart from each other, with links as level as that allows."""
    middle: dict[Slot, float] = {}
    for column in order:
        offsets = _offsets(column, tall)
        for slot, offset in zip(column, offsets, strict=True):
            middle[slot] = offset - offsets[-1] / 2
    for sweep in range(SWEEPS):
        for column in order if sweep % 2 == 0 else order[::-1]:
            offsets = _offsets(column, tall)
            wanted = [_wanted(slot, middle, pulls) for slot in column]
            free = [want - offset for want, offset in zip(wanted, offsets, strict=True)]
            for slot, start, offset in zip(column, _rising(free), offsets, strict=True):
                middle[slot] = start + offset
    return middle


def _offsets(column: Sequence[Slot], tall: Mapping[Slot, float]) -> list[float]:
    """How far above the first slot of a column each of them is at least."""
    offsets = [0.0] * min(1, len(column))
    for lower, upper in pairwise(column):
        lane = lower.node < 0 and upper.node < 0
        apart = (tall[lower] + tall[upper]) / 2 + (SPACE / 2 if lane else SPACE)
        offsets.append(offsets[-1] + apart)
    return offsets


def _wanted(slot: Slot, middle: Mapping[Slot, float], pulls: Pulls) -> float:
    near = [middle[other] + above for other, above in pulls[slot]]
    return sum(near) / len(near) if near else middle[slot]


def _rising(values: Sequence[float]) -> list[float]:
    """The sequence without a descent that is nearest to the values: neighbours are pooled.

    >>> _rising([1, 4, 2, 5])
    [1.0, 3.0, 3.0, 5.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = float(value), 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
