"""Where the nodes of a predicate graph stand: a column for each stream, few crossings, arrows up.

An edge that passes a column on its way has a slot of its own there, as in layered drawings
(Sugiyama, Tagawa, Toda: "Methods for visual understanding of hierarchical system structures"), so
that it never runs across a node. Slots are put in order by the means of their neighbours, then by
swaps of two that lie side by side, as long as anything gets better; the best of several beginnings
is taken. The same graph always gives the same layout.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from headgate.plots.memory.graph import Edge, PredicateGraph

STARTS = 16
SWEEPS = 8
ROUNDS = 40
DOWN_WITHIN, DOWN_LEFT = 4, 1  # how many crossings an arrow in the wrong direction is worth


@dataclass(frozen=True, slots=True)
class Slot:
    """A node, or the lane of an edge that passes a column; the other number is -1."""

    column: int
    node: int = -1
    lane: int = -1


Order = list[list[Slot]]


@dataclass(frozen=True)
class Slots:
    """The slots of a graph by column, and the links between slots of neighbouring columns."""

    graph: PredicateGraph

    @cached_property
    def ways(self) -> tuple[tuple[Slot, ...], ...]:
        """The slots of each edge between columns, from left to right; none for other edges."""
        return tuple(self._way(number, edge) for number, edge in enumerate(self.graph.edges))

    def _way(self, number: int, edge: Edge) -> tuple[Slot, ...]:
        nodes = self.graph.nodes
        ends = sorted((nodes[node].source, node) for node in (edge.smaller, edge.greater))
        (first, left), (last, right) = ends
        if first == last:
            return ()
        lanes = (Slot(column, lane=number) for column in range(first + 1, last))
        return (Slot(first, node=left), *lanes, Slot(last, node=right))

    @cached_property
    def beside(self) -> Mapping[Slot, tuple[list[Slot], list[Slot]]]:
        """The neighbours of each slot, at its left and at its right."""
        found: dict[Slot, tuple[list[Slot], list[Slot]]] = {
            slot: ([], []) for column in self.first_order() for slot in column
        }
        for way in self.ways:
            for left, right in pairwise(way):
                found[left][1].append(right)
                found[right][0].append(left)
        return found

    def first_order(self) -> Order:
        """From the bottom up: by how much lies below each node, a lane halfway between its ends.

        Where nothing else decides, nodes stand as in their stream from the top down.
        """
        nodes, edges = self.graph.nodes, self.graph.edges
        heights = _heights(self.graph)
        columns: Order = [[] for _ in self.graph.boxes]
        for number in reversed(range(len(nodes))):
            columns[nodes[number].source].append(Slot(nodes[number].source, node=number))
        for way in self.ways:
            for slot in way[1:-1]:
                columns[slot.column].append(slot)

        def height(slot: Slot) -> float:
            if slot.node >= 0:
                return heights[slot.node]
            edge = edges[slot.lane]
            return (heights[edge.smaller] + heights[edge.greater]) / 2

        return [sorted(column, key=height) for column in columns]


def _heights(graph: PredicateGraph) -> list[int]:
    """The longest way of edges up to each node; cycles are cut off after one turn."""
    heights = [0] * len(graph.nodes)
    for _ in graph.nodes:
        before = list(heights)
        for edge in graph.edges:
            if edge.operator == "=":
                top = max(heights[edge.smaller], heights[edge.greater])
                heights[edge.smaller] = heights[edge.greater] = top
            else:
                heights[edge.greater] = max(heights[edge.greater], heights[edge.smaller] + 1)
        if heights == before:
            break
    return heights


def ordered(slots: Slots) -> Order:
    """The columns from the bottom up, with few crossings and few arrows that point down."""
    numbers = random.Random(0)
    first = slots.first_order()
    starts = [first] + [[numbers.sample(c, len(c)) for c in first] for _ in range(STARTS)]
    found = [first, *(_swept_often(slots, start) for start in starts)]
    return min((_improved(slots, order) for order in found), key=lambda each: cost(slots, each))


def _swept_often(slots: Slots, order: Order) -> Order:
    best = order
    for sweep in range(SWEEPS):
        order = _swept(slots, order, to_right=sweep % 2 == 0)
        best = min(best, order, key=lambda each: cost(slots, each))
    return best


def cost(slots: Slots, order: Order) -> int:
    """Crossings, and arrows in the wrong direction."""
    place = _places(order)
    total = sum(_wrong(slots.graph, edge, place) for edge in slots.graph.edges)
    links: dict[int, list[tuple[float, float]]] = {}
    for left, right in (link for way in slots.ways for link in pairwise(way)):
        links.setdefault(left.column, []).append((place[left], place[right]))
    return total + sum(map(_crossings, links.values()))


def _crossings(links: list[tuple[float, float]]) -> int:
    left, right = np.array(links).T
    crossed = np.subtract.outer(left, left) * np.subtract.outer(right, right) < 0
    return int(np.count_nonzero(crossed)) // 2


def _places(order: Order) -> dict[Slot, float]:
    """The places of slots, counted from the middle of their column."""
    return {slot: at - (len(column) - 1) / 2 for column in order for at, slot in enumerate(column)}


def _wrong(graph: PredicateGraph, edge: Edge, place: Mapping[Slot, float]) -> int:
    """What it costs that an arrow points down though it does not point to the right."""
    if edge.operator == "=":
        return 0
    start, end = graph.nodes[edge.smaller].source, graph.nodes[edge.greater].source
    falls = place[Slot(end, edge.greater)] < place[Slot(start, edge.smaller)]
    if start < end or not falls:
        return 0
    return DOWN_WITHIN if start == end else DOWN_LEFT


def _swept(slots: Slots, order: Order, *, to_right: bool) -> Order:
    """Each column by the mean places of its neighbours in the column before."""
    columns = list(order)
    place = _places(order)

    def mean(slot: Slot) -> float:
        near = slots.beside[slot][0 if to_right else 1]
        return sum(place[other] for other in near) / len(near) if near else place[slot]

    for number in range(len(columns)) if to_right else reversed(range(len(columns))):
        columns[number] = sorted(columns[number], key=mean)
        place.update(_places([columns[number]]))
    return columns


def _improved(slots: Slots, order: Order) -> Order:
    """Swap neighbours in a column as long as that makes it better."""
    columns = [list(column) for column in order]
    place = _places(columns)
    touching = _touching(slots)
    for _ in range(ROUNDS):
        swapped = False
        for column in columns:
            for at in range(len(column) - 1):
                lower, upper = column[at], column[at + 1]
                if _gain(slots, touching, place, lower, upper) > 0:
                    column[at : at + 2] = upper, lower
                    place[lower], place[upper] = place[upper], place[lower]
                    swapped = True
        if not swapped:
            break
    return columns


def _touching(slots: Slots) -> Mapping[int, Sequence[Edge]]:
    found: dict[int, list[Edge]] = {node: [] for node in range(len(slots.graph.nodes))}
    for edge in slots.graph.edges:
        for node in {edge.smaller, edge.greater}:
            found[node].append(edge)
    return found


def _gain(
    slots: Slots,
    touching: Mapping[int, Sequence[Edge]],
    place: dict[Slot, float],
    lower: Slot,
    upper: Slot,
) -> int:
    """By how much the cost falls when two neighbours change places."""
    gain = 0
    for below, above in zip(slots.beside[lower], slots.beside[upper], strict=True):
        for one in below:
            for other in above:
                gain += (place[one] > place[other]) - (place[one] < place[other])
    edges = {e for slot in (lower, upper) if slot.node >= 0 for e in touching[slot.node]}
    gain += sum(_wrong(slots.graph, edge, place) for edge in edges)
    place[lower], place[upper] = place[upper], place[lower]
    gain -= sum(_wrong(slots.graph, edge, place) for edge in edges)
    place[lower], place[upper] = place[upper], place[lower]
    return gain
