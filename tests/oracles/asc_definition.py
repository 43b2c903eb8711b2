"""The order in which attribute selection constructs are evaluated, by the definitions.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", sections
3.2, 4.2, 4.3 and 5.1, written to be read rather than to be fast: it stays as the oracle of the fast
version. A construct is a number here, and an event is the number of its region in each construct.
`alive` is the bitmap of the queries that count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Protocol


class AnyRegion(Protocol):
    """What is asked of a region, here and in the fast version."""

    @property
    def qrb(self) -> int: ...
    @property
    def cab(self) -> int: ...


class AnyConstruct(Protocol):
    """What is asked of a construct."""

    @property
    def qub(self) -> int: ...
    @property
    def regions(self) -> Sequence[AnyRegion]: ...


Constructs = Sequence[AnyConstruct]
Event = Sequence[int]
Period = Sequence[Event]
Arrows = Mapping[tuple[int, int], int]  # from a region of a construct to a construct


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is left of the queries, the constructs on the way, and the micro-arrows followed."""

    grb: int
    path: tuple[int, ...]
    micro: int


def evaluate(
    constructs: Constructs,
    event: Event,
    order: Sequence[int],
    arrows: Arrows,
    alive: int,
    most: int | None = None,
) -> Evaluation:
    """Sections 3.2 and 5.1: AND the regions' bitmaps until no query is left, or no construct.

    The micro-arrow of the region just visited leads on, unless its end was evaluated before; else
    the first unevaluated construct of the macro-sequence `order` is next. The path is the paper's
    global evaluation bitmap (GEB), with its order kept. Stops after `most` constructs.
    """
    grb, micro = alive, 0
    path: list[int] = []
    while grb and len(path) < (len(order) if most is None else most):
        target = arrows.get((path[-1], event[path[-1]])) if path else None
        if target is None or target in path:
            target = _unevaluated(order, path)
        else:
            micro += 1
        path.append(target)
        grb &= _qrb(constructs, target, event)
    return Evaluation(grb, tuple(path), micro)


def minimal_cover_sets(constructs: Constructs, alive: int) -> tuple[tuple[int, ...], ...]:
    """Definition 2: all of the smallest sets of constructs that cover the queries; () if none does.

    A query without conditions is in no cover set, as no construct decides it.
    """
    numbers = range(len(constructs))
    for size in range(len(constructs) + 1):
        sets = combinations(numbers, size)
        covers = tuple(one for one in sets if not _uncovered(constructs, one, alive))
        if covers:
            return covers
    return ()


def conditional_selectivity(
    constructs: Constructs, sequence: Sequence[int], candidate: int, period: Period, alive: int
) -> Fraction:
    """Definition 3: which part of the queries that `sequence` leaves uncovered passes `candidate`.

    1 where there is nothing to measure: no event, or no query uncovered.
    """
    uncovered = _uncovered(constructs, sequence, alive)
    if not period or not uncovered:
        return Fraction(1)
    left = _results(constructs, (*sequence, candidate), period, alive)
    passed = sum((grb & uncovered).bit_count() for grb in left)
    return Fraction(passed, uncovered.bit_count() * len(period))


def dropping_ratio(
    constructs: Constructs, sequence: Sequence[int], period: Period, alive: int
) -> Fraction:
    """Definition 4: which part of the events matches no query after `sequence`; 0 of no event."""
    dropped = sum(grb == 0 for grb in _results(constructs, sequence, period, alive))
    return Fraction(dropped, len(period) or 1)


def macro_sequence(
    constructs: Constructs, periods: Sequence[Period], alive: int
) -> tuple[tuple[int, ...], int]:
    """Section 4.2.2: an order of all constructs, and how many at its beginning are its cover set.

    Period i extends a sequence of i constructs by one, and the last needs none: as long as queries
    are uncovered, by the one with the lowest conditional selectivity; then by the one with the
    highest dropping ratio. Ties go to the lowest own selectivity, as measured in the first
    period, then to the lower number.

    Deviations: the paper breaks ties of the dropping ratio only. Its cover set is "minimal", which
    a greedy choice by selectivity does not promise. Where a query has no conditions, nothing covers
    and the cover set is all constructs.
    """
    selectivity = _measure_selectivity(constructs, periods, alive)
    rest = list(range(len(constructs)))
    order: list[int] = []
    cover = 0

    def rank(candidate: int) -> tuple[Fraction, Fraction, int]:
        period = periods[len(order)]
        if _uncovered(constructs, order, alive):
            measure = conditional_selectivity(constructs, order, candidate, period, alive)
        else:
            measure = -dropping_ratio(constructs, (*order, candidate), period, alive)
        return measure, selectivity[candidate], candidate

    while rest:
        best = min(rest, key=rank) if len(rest) > 1 else rest[0]
        cover += _uncovered(constructs, order, alive) != 0
        order.append(best)
        rest.remove(best)
    return tuple(order), cover


def hybrid_arrows(
    constructs: Constructs,
    order: Sequence[int],
    cover: int,
    periods: Sequence[Period],
    alive: int,
    fewest: int,
) -> dict[tuple[int, int], int]:
    """Section 4.3: the micro-arrows of regions whose events another construct serves better.

    For each depth d from 1, with period d − 1: every event takes d steps with the arrows known so
    far, and those that stand in the same region of the same construct are a group, unless dropped
    on the way. For each candidate of the region's `cab`, the events that have not evaluated it go
    there, and the others on along the macro-sequence. The measure is the number of queries left if
    d < `cover`, else the number of events left. The best candidate becomes the micro-arrow if it
    leaves fewer than sending all events of the group along the macro-sequence; ties go to the
    lowest own selectivity, then to the place in `order`. Either way the region is decided for
    good, unless the group had fewer than `fewest` events.

    Deviations: the paper leaves most of this open. It measures each series of regions by itself,
    where we join those that end in the same region, which can have but one arrow; it does not say
    how few events suffice, nor what becomes of a region that is reached at several depths. It keeps
    an arrow that is only as good as the macro-sequence, where we need none. Its
    conditional selectivity has the queries left before as denominator, the same for all candidates
    of a group, so that counts do; Example 6 divides by all queries instead.
    """
    selectivity = _measure_selectivity(constructs, periods, alive)
    arrows: dict[tuple[int, int], int] = {}
    decided: set[tuple[int, int]] = set()
    for depth, period in enumerate(periods, start=1):
        for (at, region), group in _groups(constructs, order, arrows, period, alive, depth).items():
            if (at, region) in decided or len(group) < fewest:
                continue
            decided.add((at, region))
            # Compare each candidate with the macro-sequence, for the same events.
            along = _left(constructs, order, group, None, depth < cover)
            choices = [
                (_left(constructs, order, group, j, depth < cover), selectivity[j], place, j)
                for place, j in enumerate(order)
                if constructs[at].regions[region].cab >> j & 1
                and any(j not in walked.path for _, walked in group)
            ]
            if choices and min(choices)[0] < along:
                arrows[at, region] = min(choices)[-1]
    return arrows


Group = list[tuple[Event, Evaluation]]


def _groups(
    constructs: Constructs,
    order: Sequence[int],
    arrows: Arrows,
    period: Period,
    alive: int,
    depth: int,
) -> dict[tuple[int, int], Group]:
    """The events that are not dropped within `depth` steps, by the region where they stand."""
    groups: dict[tuple[int, int], Group] = defaultdict(list)
    for event in period:
        walked = evaluate(constructs, event, order, arrows, alive, depth)
        if walked.grb:
            at = walked.path[-1]
            groups[at, event[at]].append((event, walked))
    return groups


def _left(
    constructs: Constructs, order: Sequence[int], group: Group, target: int | None, covering: bool
) -> int:
    """How many queries, or events, a step to `target` leaves; None is along the macro-sequence."""
    left = 0
    for event, walked in group:
        following = target
        if following is None or following in walked.path:
            following = _unevaluated(order, walked.path)
        grb = walked.grb & _qrb(constructs, following, event)
        left += grb.bit_count() if covering else grb != 0
    return left


def _measure_selectivity(
    constructs: Constructs, periods: Sequence[Period], alive: int
) -> list[Fraction]:
    """The selectivity of each construct by itself, in the first period."""
    first = periods[0] if periods else ()
    numbers = range(len(constructs))
    return [conditional_selectivity(constructs, (), j, first, alive) for j in numbers]


def _results(
    constructs: Constructs, sequence: Sequence[int], period: Period, alive: int
) -> list[int]:
    return [evaluate(constructs, event, sequence, {}, alive).grb for event in period]


def _uncovered(constructs: Constructs, sequence: Iterable[int], alive: int) -> int:
    """The queries with no condition on any attribute of the sequence."""
    for number in sequence:
        alive &= ~constructs[number].qub
    return alive


def _unevaluated(order: Sequence[int], path: Sequence[int]) -> int:
    return next(number for number in order if number not in path)


def _qrb(constructs: Constructs, number: int, event: Event) -> int:
    return constructs[number].regions[event[number]].qrb
