"""Compare dimensions (CD): what of a query part lies outside one box of the stream."""

from __future__ import annotations

from headgate.implication.paper.part import ComparisonCounter, Part, replace_side
from headgate.implication.paper.stream_predicate import StreamPredicate


def subtract_box(
    stream: StreamPredicate, number: int, part: Part, tally: ComparisonCounter
) -> list[Part]:
    """Algorithm 9 (Figure 6): the part in disjoint pieces, without what the box holds.

    Side by side, what sticks out is cut off; the four cases of the paper are two cuts that either
    happen or do not. Nothing is cut where the box and the part do not meet. Deviation: all sides
    that the box mentions are compared, whether the query mentions them or not.
    """
    tally.check_budget()
    box = stream.parts[number]
    pieces: list[Part] = []
    inner = part
    for k in stream.sides[number]:
        tally.comparisons += 1
        (low, high), (first, end) = box[k], inner[k]
        if end <= low or high <= first:
            return [part]
        if first < low:
            pieces.append(replace_side(inner, k, (first, low)))
        if high < end:
            pieces.append(replace_side(inner, k, (high, end)))
        inner = replace_side(inner, k, (max(low, first), min(high, end)))
    return pieces
