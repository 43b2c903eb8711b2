"""The lines of a predicate graph: from where to where each of them runs, and where its sign stands.

A line is a chain of cubic Bézier curves, from the smaller to the greater side. All of them are read
from left to right: where the greater side stands at the left, the sign is `>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from headgate.plots.memory.columns import ARC, PAD, STUB, Columns
from headgate.plots.memory.graph import Edge, Limit
from headgate.plots.memory.layout import Slot
from headgate.plots.memory.places import side_of

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """`points` are a start, then two controls and an end for each curve."""

    points: tuple[Point, ...]
    sign: str
    sign_at: Point


def edge_line(columns: Columns, number: int) -> Line:
    """The line of an edge."""
    edge, way = columns.graph.edges[number], columns.places.slots.ways[number]
    return _across(columns, edge, way) if way else _arc(columns, edge)


def limit_line(columns: Columns, limit: Limit) -> Line:
    """The line between a node and its constant, which stands at one end of it."""
    column = columns.all[columns.graph.nodes[limit.node].source]
    side, operator = side_of(limit), limit.constant.operator
    y = columns.places.ports[limit.node, side, limit]
    if side == "left":
        outer = column.box[0] - 2 * STUB
        points = ((outer, y), *_straight((outer, y), (column.nodes[0], y)))
        return Line(points, MIRRORED[operator], (column.box[0] - STUB, y))
    start, outer = (column.nodes[1], y), column.box[1] + 2 * STUB
    return Line((start, *_straight(start, (outer, y))), operator, (column.box[1] + STUB, y))


def _across(columns: Columns, edge: Edge, way: tuple[Slot, ...]) -> Line:
    """Level beside and across boxes, curved between them."""
    places = columns.places
    heights = [places.middle[slot] for slot in way]
    heights[0] = places.ports[way[0].node, "right", edge]
    heights[-1] = places.ports[way[-1].node, "left", edge]
    points = [(columns.all[way[0].column].nodes[1], heights[0])]
    for (one, other), (here, there) in zip(pairwise(way), pairwise(heights), strict=True):
        left, right = columns.all[one.column].right, columns.all[other.column].left
        middle = (left + right) / 2
        points += _straight(points[-1], (left, here))
        points += [(middle, here), (middle, there), (right, there)]
    first, last = columns.all[way[0].column], columns.all[way[-1].column]
    points += _straight(points[-1], (last.nodes[0], heights[-1]))
    if way[0].node == edge.smaller:
        return Line(tuple(points), edge.operator, (first.box[1] + STUB, heights[0]))
    sign_at = last.box[0] - STUB, heights[-1]
    return Line(tuple(reversed(points)), MIRRORED[edge.operator], sign_at)


def _arc(columns: Columns, edge: Edge) -> Line:
    """At the right of the nodes of one box, the longer the farther out."""
    number = columns.graph.nodes[edge.smaller].source
    right = columns.all[number].nodes[1]
    out = right + PAD + ARC * (columns.arcs(number).index(edge) + 1)
    start, end = (columns.places.ports[n, "right", edge] for n in (edge.smaller, edge.greater))
    turn = min(ARC, abs(end - start) / 2) * (1 if end > start else -1)
    straight = _straight((out, start + turn), (out, end - turn))
    points = (
        *((right, start), (out, start), (out, start), (out, start + turn)),
        *(*straight, (out, end), (out, end), (right, end)),
    )
    return Line(points, edge.operator, (right + PAD, start))


def _straight(start: Point, end: Point) -> list[Point]:
    """The rest of a curve that is a straight line."""
    (x, y), (far_x, far_y) = start, end
    across, up = (far_x - x) / 3, (far_y - y) / 3
    return [(x + across, y + up), (far_x - across, far_y - up), end]
