"""Ranges on the attributes of a set of selections, from evenly spread to gathered in one place.

The share of tuples that a query accepts is divided among its predicates. Popular attributes get the
narrow ranges, so that some attributes filter much better than others. At first the ranges of an
attribute cover its domain evenly, and its regions are alike. Then one after the other moves to a
place that they share, and after that takes a width that they share: its regions differ more and
more, until there is only one range, and what lies outside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.conjunctions import Conjunctions
from benchmarks.workloads.integer_events import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    BETWEEN,
    EQUAL,
    Codes,
    Mask,
    Numbers,
    from_below,
    to_above,
)
from headgate.errors import UsageError

# Which query of a set has a predicate on which attribute, with exact totals.
#
# Attributes are not equally popular: the most popular one is so many times as likely to be used
# as the least. So some few cover most queries, which is what makes their order matter.

Usage = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SelectionSpec:
    """A row of Table 1 of the ASC paper: how many queries, predicates and p-attributes.

    `deviation` is how much the regions of an attribute differ; None leaves it to chance. The rest
    the paper does not say: a query has at least `fewest` predicates, and accepts the share
    `matching` of uniform tuples on average; and the attributes differ in `popularity`.
    """

    queries: int
    predicates: int
    attributes: int
    deviation: float | None = None
    fewest: int = 1
    matching: float = 0.003
    popularity: float = 6.0


def selection_usage(spec: SelectionSpec, random: np.random.Generator) -> Usage:
    """Return a row for each query and a column for each attribute; both are used at least once.

    >>> used = selection_usage(SelectionSpec(30, 78, 6), np.random.default_rng(1))
    >>> used.shape, int(used.sum()), bool(used.any(axis=0).all()), bool(used.any(axis=1).all())
    ((30, 6), 78, True, True)
    """
    _check(spec)
    shape = (spec.queries, spec.attributes)
    weights = random.permutation(np.geomspace(1, spec.popularity, spec.attributes))
    keys = random.gumbel(size=shape) + np.log(weights)
    covering = np.arange(spec.attributes)
    keys[random.permutation(spec.queries)[covering % spec.queries], covering] = np.inf
    likeliest = np.argpartition(-keys, spec.fewest - 1, axis=1)[:, : spec.fewest]
    np.put_along_axis(keys, likeliest, np.inf, axis=1)
    if np.isinf(keys).sum() > spec.predicates:
        raise UsageError(_too_few(spec))
    used = np.zeros(keys.size, np.bool_)
    used[np.argpartition(-keys, spec.predicates - 1, axis=None)[: spec.predicates]] = True
    return used.reshape(shape)


def _check(spec: SelectionSpec) -> None:
    """Refuse what cannot be."""
    if spec.queries < 1 or spec.attributes < 1:
        raise UsageError("a set of selections needs a query and an attribute at least")
    if not 1 <= spec.fewest <= spec.attributes:
        raise UsageError(f"at least {spec.fewest} predicates of {spec.attributes} attributes")
    if spec.predicates > spec.queries * spec.attributes:
        raise UsageError(
            f"{spec.predicates} predicates; {spec.queries} queries on {spec.attributes} attributes "
            f"have at most {spec.queries * spec.attributes}"
        )
    if spec.predicates < max(spec.queries * spec.fewest, spec.attributes):
        raise UsageError(_too_few(spec))


def _too_few(spec: SelectionSpec) -> str:
    return (
        f"{spec.predicates} predicates are too few for {spec.queries} queries with at least "
        f"{spec.fewest} each that use all of {spec.attributes} attributes"
    )


# How much the regions of an attribute differ in the number of queries that they satisfy.
#
# The constants of an attribute's predicates divide its values into regions: each constant is one,
# and so is what lies between two of them, below all and above all (Definition 1 of the ASC paper,
# whose Table 1 gives the standard deviation of the number of 1's in the bitmaps of the regions).
#
# The paper does not say of what that number is a share. If it were of all queries, 0.25 could not
# be reached with 173 predicates of 50 queries on 15 attributes, because the bit of a query that
# does not use an attribute is always 1. Here it is a share of the queries that use the attribute,
# and the deviation of a set is the mean over its attributes.

Shares = npt.NDArray[np.float64]


class Intervals(NamedTuple):
    """Predicates with =, <, <=, >, >= or BETWEEN, as in `Conjunctions`."""

    operator: Codes
    low: Numbers
    high: Numbers


def measure_region_deviation(queries: Conjunctions) -> float:
    """Return the standard deviation of the shares of regions, averaged over attributes.

    Each query has at most one predicate on an attribute, and that is an interval.
    """
    used = np.unique(queries.attribute).tolist()
    return float(np.mean([region_shares(intervals_on(queries, a)).std() for a in used]))


def intervals_on(queries: Conjunctions, attribute: int) -> Intervals:
    """Return the predicates on one attribute."""
    at = queries.attribute == attribute
    return Intervals(queries.operator[at], queries.low[at], queries.high[at])


def region_shares(intervals: Intervals) -> Shares:
    """Return for each region, ascending, the share of these intervals that hold it.

    Law: m constants give 2m + 1 regions, also where no whole number lies between two of them.

    >>> at_most_4_and_3_to_9 = Intervals(*np.array([[2, 5], [0, 3], [4, 9]], np.int32))
    >>> region_shares(at_most_4_and_3_to_9)
    array([0.5, 1. , 1. , 1. , 0.5, 0.5, 0. ])
    """
    operator, low, high = intervals
    below, above = from_below(operator), to_above(operator)
    starts, ends = low - (operator == ABOVE), high + (operator == BELOW)
    constants = np.unique(np.concatenate((starts[~below], ends[~above])))
    # the constant c stands at 2c, and the gap above it at 2c + 1
    places = np.concatenate(
        (2 * constants[:1] - 1, *np.stack((2 * constants, 2 * constants + 1)).T)
    )
    first = np.where(below, places[0], 2 * starts + (operator == ABOVE))
    last = np.where(above, places[-1], 2 * ends - (operator == BELOW))
    shares: Shares = ((first[:, None] <= places) & (places <= last[:, None])).mean(axis=0)
    return shares


EVENNESS = 8.0  # of the widths in a query; the larger, the more alike
CONTRAST = 3.0  # between the shares of the most and of the least popular attribute
MAX_WIDTH = 0.95  # the part of its domain that a predicate accepts at most, on average
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
        """Return whole numbers below `cardinality`: up to 1 the ranges move, up to 2 they adapt."""
        # First all ranges move, one after the other by their turn; then they change their width.
        moved, adapted = self._compute_progress(gathered), self._compute_progress(gathered - 1)
        width = self.width + adapted * (self.common - self.width)
        around = np.clip(self.place - width / 2, 0, 1 - width)
        start = self.start + moved * (around - self.start)
        return _whole(start, start + width, self.strict, cardinality)

    def _compute_progress(self, part: float) -> Values:
        """Return how much of its way each range has gone, when this part of them has arrived."""
        progress: Values = np.clip((part * (1 + AT_A_TIME) - self.turn) / AT_A_TIME, 0, 1)
        return progress


def spread_ranges(spec: SelectionSpec, cardinality: int, layouts: int, random: Random) -> Ranges:
    """Return ranges as specified; `layouts` is how many are tried to make them cover evenly."""
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
    """Return how long ranges must be that stick out of the domain, for their proper width.

    A start that is uniform from −length to 1 leaves length / (1 + length) inside, and covers all
    places alike.
    """
    query, attribute = np.nonzero(used)
    # The rank of each attribute by how many queries use it.
    popularity = np.argsort(np.argsort(used.sum(axis=0)))
    evenness = EVENNESS * np.geomspace(1 / CONTRAST, 1, spec.attributes)[popularity]
    share = random.gamma(evenness[attribute])
    width = np.minimum(MAX_WIDTH, spec.matching ** (share / np.bincount(query, share)[query]))
    lengths: Values = width / (1 - width)
    return lengths


def _evenly(
    length: Values, strict: Mask, cardinality: int, layouts: int, random: Random
) -> tuple[Values, Values]:
    """Return starts and ends of ranges of these lengths, cut off at the ends of the domain.

    Of so many `layouts` it is the one whose regions are most alike.
    """

    def layout() -> tuple[Values, Values]:
        # Evenly spaced places in random order, shifted together.
        place = (random.permutation(len(length)) + random.random()) / len(length)
        start = place * (1 + length) - length
        return np.maximum(0, start), np.minimum(1, start + length)

    def deviation(layout: tuple[Values, Values]) -> float:
        return float(region_shares(_whole(*layout, strict, cardinality)).std())

    return min((layout() for _ in range(layouts)), key=deviation)


def _whole(start: Values, end: Values, strict: Mask, cardinality: int) -> Intervals:
    """Return each range as whole numbers: at least one of them, and never all that there are."""
    low = np.minimum(np.rint(cardinality * start), cardinality - 1).astype(np.int32)
    high = np.maximum(low, np.rint(cardinality * end).astype(np.int32) - 1)
    # A range over the whole domain would be no predicate.
    low[(low == 0) & (high == cardinality - 1)] = 1
    # BETWEEN, unless an end of the domain makes one comparison enough, or there is one value.
    operator = np.full(len(low), BETWEEN, np.uint8)
    above, below = high == cardinality - 1, low == 0
    operator[above] = np.where(strict, ABOVE, AT_LEAST)[above]
    operator[below] = np.where(strict, BELOW, AT_MOST)[below]
    operator[low == high] = EQUAL
    return Intervals(operator, low, high)
