"""Ranges on the attributes of a set of selections, from evenly spread to gathered in one place.

The share of tuples that a query accepts is divided among its predicates. Popular attributes get the
narrow ranges, so that some attributes filter much better than others. At first the ranges of an
attribute cover its domain evenly, and its regions are alike. Then one after the other moves to a
place that they share, and after that takes a width that they share: its regions differ more and
more, until there is only one range, and what lies outside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.operators import ABOVE, AT_LEAST, AT_MOST, BELOW, BETWEEN, EQUAL, Mask
from benchmarks.workloads.region_deviation import Intervals, region_shares
from benchmarks.workloads.selection_usage import SelectionSpec, selection_usage

EVENNESS = 8.0  # of the widths in a query; the larger, the more alike
CONTRAST = 3.0  # between the shares of the most and of the least popular attribute
WIDEST = 0.95  # the part of its domain that a predicate accepts at most, on average
OUTSIDE = 0.25  # how far beyond the domain a place may lie, so that many are at its ends
AT_A_TIME = 0.2  # the part of the ranges that is on its way together

Values = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Random = np.random.Generator


@dataclass(frozen=True)
class Ranges:
    """Range k is on attribute `attribute[k]`, from `start[k]` on, and `width[k]` wide.

    They are parts of [0, 1]. It may move so that it lies around `place`, and become as wide as
    `common`; `turn` says when. `strict` prefers < and > to <= and >=.
    """

    offsets: Indices
    attribute: Indices
    start: Values
    width: Values
    place: Values
    common: Values
    turn: Values
    strict: Mask

    def intervals(self, gathered: float, cardinality: int) -> Intervals:
        """Whole numbers below `cardinality`: from 0 to 1 the ranges move, up to 2 they adapt."""
        moved, adapted = self._done(gathered), self._done(gathered - 1)
        width = self.width + adapted * (self.common - self.width)
        around = np.clip(self.place - width / 2, 0, 1 - width)
        start = self.start + moved * (around - self.start)
        return _whole(start, start + width, self.strict, cardinality)

    def _done(self, part: float) -> Values:
        """How much of its way each range has gone, when this part of them has gone theirs."""
        done: Values = np.clip((part * (1 + AT_A_TIME) - self.turn) / AT_A_TIME, 0, 1)
        return done


def spread_ranges(spec: SelectionSpec, cardinality: int, layouts: int, random: Random) -> Ranges:
    """Ranges as specified; `layouts` is how many are tried to make them cover evenly."""
    used = selection_usage(spec, random)
    query, attribute = np.nonzero(used)
    length = _lengths(spec, used, random)
    strict = random.random(len(query)) < 0.5
    start, end, turn = (np.empty(len(query)) for _ in range(3))
    for number in range(spec.attributes):
        at = np.flatnonzero(attribute == number)
        start[at], end[at] = _evenly(length[at], strict[at], cardinality, layouts, random)
        turn[at] = (random.permutation(len(at)) + 0.5) / len(at)
    width = end - start
    return Ranges(
        offsets=np.concatenate(([0], np.cumsum(used.sum(axis=1)))),
        attribute=attribute,
        start=start,
        width=width,
        place=random.uniform(-OUTSIDE, 1 + OUTSIDE, spec.attributes)[attribute],
        common=(np.bincount(attribute, width) / used.sum(axis=0))[attribute],
        turn=turn,
        strict=strict,
    )


def _lengths(spec: SelectionSpec, used: Mask, random: Random) -> Values:
    """How long ranges must be that stick out of the domain, each on average at its proper width.

    A start that is uniform from −length to 1 leaves length / (1 + length) inside, and covers all
    places alike.
    """
    query, attribute = np.nonzero(used)
    popularity = np.argsort(np.argsort(used.sum(axis=0)))
    evenness = EVENNESS * np.geomspace(1 / CONTRAST, 1, spec.attributes)[popularity]
    share = random.gamma(evenness[attribute])
    width = np.minimum(WIDEST, spec.matching ** (share / np.bincount(query, share)[query]))
    lengths: Values = width / (1 - width)
    return lengths


def _evenly(
    length: Values, strict: Mask, cardinality: int, layouts: int, random: Random
) -> tuple[Values, Values]:
    """Starts and ends of ranges of these lengths, cut off where they leave the domain.

    Of so many `layouts` it is the one whose regions are most alike.
    """

    def layout() -> tuple[Values, Values]:
        place = (random.permutation(len(length)) + random.random()) / len(length)
        start = place * (1 + length) - length
        return np.maximum(0, start), np.minimum(1, start + length)

    def deviation(layout: tuple[Values, Values]) -> float:
        return float(region_shares(_whole(*layout, strict, cardinality)).std())

    return min((layout() for _ in range(layouts)), key=deviation)


def _whole(start: Values, end: Values, strict: Mask, cardinality: int) -> Intervals:
    """Each range as whole numbers: at least one of them, and never all that there are."""
    low = np.minimum(np.rint(cardinality * start), cardinality - 1).astype(np.int32)
    high = np.maximum(low, np.rint(cardinality * end).astype(np.int32) - 1)
    low[(low == 0) & (high == cardinality - 1)] = 1
    operator = np.full(len(low), BETWEEN, np.uint8)
    above, below = high == cardinality - 1, low == 0
    operator[above] = np.where(strict, ABOVE, AT_LEAST)[above]
    operator[below] = np.where(strict, BELOW, AT_MOST)[below]
    operator[low == high] = EQUAL
    return Intervals(operator, low, high)
