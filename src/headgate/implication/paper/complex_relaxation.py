"""Heuristics with complex relaxation (HCR): a box of the stream grows to hold the query box."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headgate.implication.paper.part import ComparisonCounter, Part, Side, replace_side
from headgate.implication.paper.quick_check import Overlap, run_quick_check
from headgate.implication.paper.stream_predicate import StreamPredicate
from headgate.implication.space import Space


@dataclass(frozen=True, slots=True)
class _Growth:
    """A box that grew: its infinite ends, by how much volume it grew, and what it became."""

    infinite_ends: int
    volume: float
    number: int
    part: Part


def match_hcr(
    stream: StreamPredicate, query: Iterable[Part], tally: ComparisonCounter, *, check_first: bool
) -> bool:
    """Algorithm 8 (section 3.4): was every query box found in one of the stream? Relaxes it.

    The box that grows is the one with the fewest infinite ends afterwards, then the one that gains
    the least volume. Deviations: infinite ends count only as such and never in the volume, where
    infinity less infinity would appear; ends stay open or closed as they were; where the stream has
    no box to grow, the query box is added.
    """
    covered = True
    for part in query:
        if check_first and run_quick_check(stream, part, tally) is Overlap.INSIDE:
            continue
        best = _least_growth(stream, part, tally)
        if best is None:
            continue
        covered = False
        if best.number < 0:
            stream.add(best.part)
        else:
            stream.replace(best.number, best.part)
    return covered


def _least_growth(stream: StreamPredicate, part: Part, tally: ComparisonCounter) -> _Growth | None:
    """The growth that costs least; None where a box holds the part as it is."""
    best = _Growth(2 * len(part) + 1, math.inf, -1, part)
    for at in range(len(stream)):
        grown = _grown(stream, stream.number_at(at), part, tally)
        if grown.part == stream.parts[grown.number]:
            return None
        if (grown.infinite_ends, grown.volume) < (best.infinite_ends, best.volume):
            best = grown
    return best


def _grown(stream: StreamPredicate, number: int, part: Part, tally: ComparisonCounter) -> _Growth:
    space, box = stream.space, stream.parts[number]
    grown, volume = box, 0.0
    for k in stream.sides[number]:
        tally.comparisons += 1
        (low, high), (first, end) = box[k], part[k]
        if low <= first and end <= high:
            continue
        volume += _extension(space, k, box[k], part[k]) * _base(space, k, grown, tally)
        grown = replace_side(grown, k, (min(low, first), max(high, end)))
    ends = (end for k, side in enumerate(grown) for end in _ends(space, k, side))
    infinite = sum(not math.isfinite(end) for end in ends)
    return _Growth(infinite, volume, number, grown)


def _ends(space: Space, k: int, side: Side) -> tuple[float, float]:
    starts, stops = space.dimensions[k].ends
    return float(starts[side[0]]), float(stops[side[1] - 1])


def _extension(space: Space, k: int, mine: Side, other: Side) -> float:
    """By how much a side grows to hold another one, where that is finite."""
    (low, high), (first, end) = _ends(space, k, mine), _ends(space, k, other)
    steps = (low - first, end - high)
    return sum(step for step in steps if 0 < step < math.inf)


def _base(space: Space, k: int, part: Part, tally: ComparisonCounter) -> float:
    """The volume of all other sides that are finite and not a point."""
    base = 1.0
    for other, side in enumerate(part):
        if other != k:
            tally.comparisons += 1
            length = space.dimensions[other].length(*side)
            if 0 < length < math.inf:
                base *= length
    return base
