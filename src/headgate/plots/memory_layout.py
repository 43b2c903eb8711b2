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
from typing import Literal

import numpy as np

from headgate.plots.memory_graph import Edge, Limit, PredicateGraph

RANDOM_STARTS = 16
ORDER_SWEEPS = 8
SWAP_ROUNDS = 40
DOWN_WITHIN_COST, DOWN_LEFT_COST = 4, 1  # crossings that an arrow in the wrong direction is worth


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
    def paths(self) -> tuple[tuple[Slot, ...], ...]:
        """The slots of each edge between columns, from left to right; none for other edges."""
        return tuple(self._find_path(number, edge) for number, edge in enumerate(self.graph.edges))

    def _find_path(self, number: int, edge: Edge) -> tuple[Slot, ...]:
        nodes = self.graph.nodes
        ends = sorted((nodes[node].source, node) for node in (edge.smaller, edge.greater))
        (first, left), (last, right) = ends
        if first == last:
            return ()
        # A lane in each column that the edge passes, so that it crosses no node there.
        lanes = (Slot(column, lane=number) for column in range(first + 1, last))
        return (Slot(first, node=left), *lanes, Slot(last, node=right))

    @cached_property
    def neighbours(self) -> Mapping[Slot, tuple[list[Slot], list[Slot]]]:
        """The neighbours of each slot, at its left and at its right."""
        neighbours: dict[Slot, tuple[list[Slot], list[Slot]]] = {
            slot: ([], []) for column in self.make_first_order() for slot in column
        }
        for path in self.paths:
            for left, right in pairwise(path):
                neighbours[left][1].append(right)
                neighbours[right][0].append(left)
        return neighbours

    def make_first_order(self) -> Order:
        """Return slots from the bottom up: nodes by what lies below, lanes between their ends.

        Where nothing else decides, nodes stand as in their stream from the top down.
        """
        nodes, edges = self.graph.nodes, self.graph.edges
        heights = _compute_heights(self.graph)
        columns: Order = [[] for _ in self.graph.boxes]
        for number in reversed(range(len(nodes))):
            columns[nodes[number].source].append(Slot(nodes[number].source, node=number))
        for path in self.paths:
            for slot in path[1:-1]:
                columns[slot.column].append(slot)

        def height(slot: Slot) -> float:
            if slot.node >= 0:
                return heights[slot.node]
            edge = edges[slot.lane]
            return (heights[edge.smaller] + heights[edge.greater]) / 2

        return [sorted(column, key=height) for column in columns]


def _compute_heights(graph: PredicateGraph) -> list[int]:
    """Return the longest way of edges up to each node; cycles are cut off after one turn."""
    heights = [0] * len(graph.nodes)
    for _ in graph.nodes:
        # All edges are relaxed, as Bellman and Ford do, once for each node at most.
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


def order_slots(slots: Slots) -> Order:
    """Return the columns from the bottom up, with few crossings and few arrows that point down."""
    numbers = random.Random(0)
    first = slots.make_first_order()
    # A fixed seed, so that the same graph is always drawn alike.
    starts = [first] + [[numbers.sample(c, len(c)) for c in first] for _ in range(RANDOM_STARTS)]
    # The first order also competes without sweeps, which may make it worse.
    orders = [first, *(_sweep_repeatedly(slots, start) for start in starts)]
    improved = (_improve(slots, order) for order in orders)
    return min(improved, key=lambda each: compute_cost(slots, each))


def _sweep_repeatedly(slots: Slots, order: Order) -> Order:
    best = order
    for sweep in range(ORDER_SWEEPS):
        order = _sweep(slots, order, to_right=sweep % 2 == 0)
        best = min(best, order, key=lambda each: compute_cost(slots, each))
    return best


def compute_cost(slots: Slots, order: Order) -> int:
    """Return the cost of an order: crossings, and arrows in the wrong direction."""
    place = _list_places(order)
    total = sum(_compute_direction_cost(slots.graph, edge, place) for edge in slots.graph.edges)
    # By the column at their left, the places of both ends of each link.
    links: dict[int, list[tuple[float, float]]] = {}
    for left, right in (link for path in slots.paths for link in pairwise(path)):
        links.setdefault(left.column, []).append((place[left], place[right]))
    return total + sum(map(_count_crossings, links.values()))


def _count_crossings(links: list[tuple[float, float]]) -> int:
    # Two links cross if they lie in opposite orders at both sides; each pair is counted twice.
    left, right = np.array(links).T
    crossed = np.subtract.outer(left, left) * np.subtract.outer(right, right) < 0
    return int(np.count_nonzero(crossed)) // 2


def _list_places(order: Order) -> dict[Slot, float]:
    """Return the places of slots, counted from the middle of their column."""
    return {slot: at - (len(column) - 1) / 2 for column in order for at, slot in enumerate(column)}


def _compute_direction_cost(graph: PredicateGraph, edge: Edge, place: Mapping[Slot, float]) -> int:
    """Return what it costs that an arrow points down though it does not point to the right."""
    if edge.operator == "=":
        return 0
    start, end = graph.nodes[edge.smaller].source, graph.nodes[edge.greater].source
    # An arrow to the right may fall; one to the left or inside a column should not.
    falls = place[Slot(end, edge.greater)] < place[Slot(start, edge.smaller)]
    if start < end or not falls:
        return 0
    return DOWN_WITHIN_COST if start == end else DOWN_LEFT_COST


def _sweep(slots: Slots, order: Order, *, to_right: bool) -> Order:
    """Order each column by the mean places of its neighbours in the column before."""
    columns = list(order)
    place = _list_places(order)

    def mean(slot: Slot) -> float:
        near = slots.neighbours[slot][0 if to_right else 1]
        return sum(place[other] for other in near) / len(near) if near else place[slot]

    for number in range(len(columns)) if to_right else reversed(range(len(columns))):
        # Places are updated at once, so the next column sees the new order.
        columns[number] = sorted(columns[number], key=mean)
        place.update(_list_places([columns[number]]))
    return columns


def _improve(slots: Slots, order: Order) -> Order:
    """Swap neighbours in a column as long as that makes it better."""
    columns = [list(column) for column in order]
    place = _list_places(columns)
    touching = _list_touching(slots)
    for _ in range(SWAP_ROUNDS):
        swapped = False
        for column in columns:
            for at in range(len(column) - 1):
                lower, upper = column[at], column[at + 1]
                if _compute_gain(slots, touching, place, lower, upper) > 0:
                    column[at : at + 2] = upper, lower
                    place[lower], place[upper] = place[upper], place[lower]
                    swapped = True
        if not swapped:
            break
    return columns


def _list_touching(slots: Slots) -> Mapping[int, Sequence[Edge]]:
    touching: dict[int, list[Edge]] = {node: [] for node in range(len(slots.graph.nodes))}
    for edge in slots.graph.edges:
        for node in {edge.smaller, edge.greater}:
            touching[node].append(edge)
    return touching


def _compute_gain(
    slots: Slots,
    touching: Mapping[int, Sequence[Edge]],
    place: dict[Slot, float],
    lower: Slot,
    upper: Slot,
) -> int:
    """Return by how much the cost falls when two neighbours change places."""
    gain = 0
    # Pairs of links that cross now, less those that would cross after the swap.
    for below, above in zip(slots.neighbours[lower], slots.neighbours[upper], strict=True):
        for first in below:
            for second in above:
                gain += (place[first] > place[second]) - (place[first] < place[second])
    # Arrows in the wrong direction, before and after: swapped for a moment, then restored.
    edges = {e for slot in (lower, upper) if slot.node >= 0 for e in touching[slot.node]}
    gain += sum(_compute_direction_cost(slots.graph, edge, place) for edge in edges)
    place[lower], place[upper] = place[upper], place[lower]
    gain -= sum(_compute_direction_cost(slots.graph, edge, place) for edge in edges)
    place[lower], place[upper] = place[upper], place[lower]
    return gain


PORT_DISTANCE = 0.17  # between the ends of edges at a node
NODE_HEIGHT, LANE_HEIGHT = 0.34, 0.06  # the least height
SLOT_DISTANCE = 0.14  # between slots
HEIGHT_SWEEPS = 24

Side = Literal["left", "right"]
End = Edge | Limit


@dataclass(frozen=True, slots=True)
class Places:
    """Where the middle of each slot is, how high the slot is, and where edges end at a node.

    `ports` is by node, side, and the edge or limit that ends there.
    """

    slots: Slots
    middle: Mapping[Slot, float]
    heights: Mapping[Slot, float]
    ports: Mapping[tuple[int, Side, End], float]

    def span(self, column: int) -> tuple[float, float]:
        """Return from where to where the slots of a column reach."""
        inside = [slot for slot in self.middle if slot.column == column]
        low = min((self.middle[slot] - self.heights[slot] / 2 for slot in inside), default=0.0)
        high = max((self.middle[slot] + self.heights[slot] / 2 for slot in inside), default=low)
        return low, high


def get_side(limit: Limit) -> Side:
    """Return the side at which a constant stands: what is below a node is at its left."""
    return "left" if limit.constant.operator in (">", ">=") else "right"


def compute_places(graph: PredicateGraph) -> Places:
    """Return the places of all slots, and of the ends of edges at their nodes."""
    slots = Slots(graph)
    order = order_slots(slots)
    ends = _order_ends(slots, order)
    heights = {slot: _compute_height(slot, ends) for column in order for slot in column}
    # How far above the middle of its node each edge ends.
    shifts = {
        (node, side, end): PORT_DISTANCE * (at - (len(node_ends) - 1) / 2)
        for (node, side), node_ends in ends.items()
        for at, end in enumerate(node_ends)
    }
    middle = _straighten(order, heights, _list_pulls(slots, shifts))
    ports = {
        (node, side, end): middle[Slot(graph.nodes[node].source, node)] + shift
        for (node, side, end), shift in shifts.items()
    }
    return Places(slots, middle, heights, ports)


def _order_ends(slots: Slots, order: Order) -> dict[tuple[int, Side], list[End]]:
    """Return the ends of edges at both sides of each node, from the bottom up; none cross."""
    graph = slots.graph
    # Sort keys, from the bottom up: arcs to nodes below (-1), constants (0), edges to other columns
    # (1, by the rank of their next slot), arcs to nodes above (2); longer arcs lie nearer to the
    # middle of the node, so that none cross.
    rank = {slot: at for column in order for at, slot in enumerate(column)}
    ends_by_node: dict[tuple[int, Side], list[tuple[tuple[int, int], End]]] = {}
    for edge, path in zip(graph.edges, slots.paths, strict=True):
        if path:
            ends_by_node.setdefault((path[0].node, "right"), []).append(((1, rank[path[1]]), edge))
            ends_by_node.setdefault((path[-1].node, "left"), []).append(((1, rank[path[-2]]), edge))
            continue
        column = graph.nodes[edge.smaller].source
        for node, other in ((edge.smaller, edge.greater), (edge.greater, edge.smaller)):
            away = rank[Slot(column, other)] - rank[Slot(column, node)]
            ends_by_node.setdefault((node, "right"), []).append(
                ((2 if away > 0 else -1, -away), edge)
            )
    for limit in graph.limits:
        ends_by_node.setdefault((limit.node, get_side(limit)), []).append(((0, 0), limit))
    return {
        key: [end for _, end in sorted(ends, key=lambda keyed: keyed[0])]
        for key, ends in ends_by_node.items()
    }


def _compute_height(slot: Slot, ends: Mapping[tuple[int, Side], Sequence[End]]) -> float:
    if slot.node < 0:
        return LANE_HEIGHT
    sides: tuple[Side, Side] = ("left", "right")
    most = max(len(ends.get((slot.node, side), ())) for side in sides)
    return max(NODE_HEIGHT, PORT_DISTANCE * most + LANE_HEIGHT)


Pulls = Mapping[Slot, Sequence[tuple[Slot, float]]]


def _list_pulls(slots: Slots, shifts: Mapping[tuple[int, Side, End], float]) -> Pulls:
    """Return the links of each slot, and how far above the other end makes each of them level."""
    pulls: dict[Slot, list[tuple[Slot, float]]] = {slot: [] for slot in slots.neighbours}
    for edge, path in zip(slots.graph.edges, slots.paths, strict=True):
        for left, right in pairwise(path):
            start = shifts.get((left.node, "right", edge), 0.0)
            end = shifts.get((right.node, "left", edge), 0.0)
            pulls[left].append((right, end - start))
            pulls[right].append((left, start - end))
    return pulls


def _straighten(order: Order, heights: Mapping[Slot, float], pulls: Pulls) -> dict[Slot, float]:
    """Place slots in their order, apart from each other, with links as level as that allows."""
    middle: dict[Slot, float] = {}
    for column in order:
        offsets = _compute_offsets(column, heights)
        for slot, offset in zip(column, offsets, strict=True):
            middle[slot] = offset - offsets[-1] / 2
    # Less its least offset, a slot is free to move as long as the column does not descend.
    for sweep in range(HEIGHT_SWEEPS):
        # To the right and to the left in turns, as for the order.
        for column in order if sweep % 2 == 0 else order[::-1]:
            offsets = _compute_offsets(column, heights)
            targets = [_mean_height(slot, middle, pulls) for slot in column]
            free = [target - offset for target, offset in zip(targets, offsets, strict=True)]
            for slot, start, offset in zip(column, _raise_in_order(free), offsets, strict=True):
                middle[slot] = start + offset
    return middle


def _compute_offsets(column: Sequence[Slot], heights: Mapping[Slot, float]) -> list[float]:
    """Return how far above the first slot of a column each of them is at least."""
    offsets = [0.0] * min(1, len(column))
    for lower, upper in pairwise(column):
        # Two lanes may lie closer together than a lane and a node.
        are_lanes = lower.node < 0 and upper.node < 0
        between = SLOT_DISTANCE / 2 if are_lanes else SLOT_DISTANCE
        offsets.append(offsets[-1] + (heights[lower] + heights[upper]) / 2 + between)
    return offsets


def _mean_height(slot: Slot, middle: Mapping[Slot, float], pulls: Pulls) -> float:
    near = [middle[other] + above for other, above in pulls[slot]]
    return sum(near) / len(near) if near else middle[slot]


def _raise_in_order(values: Sequence[float]) -> list[float]:
    """Return the sequence without a descent that is nearest to the values: neighbours are pooled.

    >>> _raise_in_order([1, 4, 2, 5])
    [1.0, 3.0, 3.0, 5.0]
    """
    # Pool adjacent violators: sums and sizes, with means that never fall.
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = float(value), 1
        while pools and pools[-1][0] * count > total * pools[-1][1]:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
