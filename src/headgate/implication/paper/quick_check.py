"""Quick check: does one box of the stream predicate hold the whole query box?"""

from __future__ import annotations

from enum import Enum

from headgate.implication.paper.part import ComparisonCounter, Part
from headgate.implication.paper.stream_predicate import StreamPredicate


class Overlap(Enum):
    """What one box after the other can tell."""

    INSIDE = 1
    OVERLAPPING = 0
    APART = -1


def run_quick_check(stream: StreamPredicate, part: Part, tally: ComparisonCounter) -> Overlap:
    """Algorithm 6, with the three-valued result of Appendix A.1.

    Deviation: a box is compared in every dimension that it mentions, whether the query box does or
    not; an unmentioned dimension is unbounded, and NULL too.
    """
    found = Overlap.APART
    for number in stream.candidates(part):
        box = stream.parts[number]
        is_inside = True
        for k in stream.sides[number]:
            tally.comparisons += 1
            (low, high), (first, end) = box[k], part[k]
            if end <= low or high <= first:
                break
            is_inside = is_inside and low <= first and end <= high
        else:
            if is_inside:
                return Overlap.INSIDE
            found = Overlap.OVERLAPPING
    return found
