"""The paper's two heuristics: HSR adds what no single box holds, HCR lets a box grow instead.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", sections 3.3 and 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headgate.implication.paper.stream_predicate import (
    Overlap,
    StreamPredicate,
    run_quick_check,
)
from headgate.implication.parts import ComparisonCounter, Part, Side, replace_side
from headgate.implication.space import Space


@dataclass(frozen=True, slots=True)
class _Growth:
    """A box that grew: its infinite ends, by how much volume it grew, and what it became."""

    infinite_ends: int
    volume: float
    number: int
    part: Part


def match_hsr(
    stream: StreamPredicate,
    query: Iterable[Part],
    counter: ComparisonCounter,
    *,
    check_first: bool,
) -> bool:
    """Decide whether single boxes of the stream hold every query box, and add those they do not.

    Algorithm 7, heuristics with simple relaxation. Without the quick check no query box counts as
    held, and all are added.
    """
    covered = True
    for part in query:
        # Only a single box that holds the whole query box counts (section 3.3).
        if check_first and run_quick_check(stream, part, counter) is Overlap.INSIDE:
            continue
        covered = False
        stream.add(part)
    return covered


def match_hcr(
    stream: StreamPredicate,
    query: Iterable[Part],
    counter: ComparisonCounter,
    *,
    check_first: bool,
) -> bool:
    """Decide whether single boxes of the stream hold every query box, and grow one for each other.

    Algorithm 8, heuristics with complex relaxation. The box that grows is the one with the fewest
    infinite ends afterwards, then the one that gains the least volume. Deviations: infinite ends
    count only as such and never in the volume, where infinity less infinity would appear; ends stay
    open or closed as they were; where the stream has no box to grow, the query box is added.
    """
    covered = True
    for part in query:
        if check_first and run_quick_check(stream, part, counter) is Overlap.INSIDE:
            continue
        # Section 3.4: the number of boxes stays the same; a box of the stream grows.
        best = _find_least_growth(stream, part, counter)
        # A box holds it after all, which is noticed without the quick check, too.
        if best is None:
            continue
        covered = False
        if best.number < 0:
            stream.add(best.part)
        else:
            stream.replace(best.number, best.part)
    return covered


def _find_least_growth(
    stream: StreamPredicate, part: Part, counter: ComparisonCounter
) -> _Growth | None:
    """Return the growth that costs least; None where a box holds the part as it is."""
    # Worse than any box: more infinite ends than a part has. Number −1 is the query box itself.
    best = _Growth(2 * len(part) + 1, math.inf, -1, part)
    for position in range(len(stream)):
        growth = _grow(stream, stream.number_at(position), part, counter)
        if growth.part == stream.parts[growth.number]:
            return None
        if (growth.infinite_ends, growth.volume) < (best.infinite_ends, best.volume):
            best = growth
    return best


def _grow(stream: StreamPredicate, number: int, part: Part, counter: ComparisonCounter) -> _Growth:
    """Grow a box until it holds a part, and add up the volume that it gains side by side."""
    space, box = stream.space, stream.parts[number]
    grown, volume = box, 0.0
    for k in stream.sides[number]:
        counter.comparisons += 1
        (low, high), (first, end) = box[k], part[k]
        if low <= first and end <= high:
            continue
        # What is gained on this side, times all other sides as they have grown so far.
        volume += _measure_extension(space, k, box[k], part[k]) * _measure_base(
            space, k, grown, counter
        )
        grown = replace_side(grown, k, (min(low, first), max(high, end)))
    ends = (end for k, side in enumerate(grown) for end in _locate_ends(space, k, side))
    infinite = sum(not math.isfinite(end) for end in ends)
    return _Growth(infinite, volume, number, grown)


def _locate_ends(space: Space, k: int, side: Side) -> tuple[float, float]:
    starts, stops = space.dimensions[k].ends
    return float(starts[side[0]]), float(stops[side[1] - 1])


def _measure_extension(space: Space, k: int, side: Side, other: Side) -> float:
    """Return by how much a side grows to hold another one, where that is finite."""
    (low, high), (first, end) = _locate_ends(space, k, side), _locate_ends(space, k, other)
    steps = (low - first, end - high)
    return sum(step for step in steps if 0 < step < math.inf)


def _measure_base(space: Space, k: int, part: Part, counter: ComparisonCounter) -> float:
    """Return the volume of all other sides that are finite and not a point."""
    base = 1.0
    for other, side in enumerate(part):
        if other != k:
            counter.comparisons += 1
            length = space.dimensions[other].length(*side)
            if 0 < length < math.inf:
                base *= length
    return base
