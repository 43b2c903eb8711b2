"""How much the regions of an attribute differ in the number of queries that they satisfy.

The constants of an attribute's predicates divide its values into regions: each constant is one, and
so is what lies between two of them, below all and above all (Definition 1 of the ASC paper, whose
Table 1 gives the standard deviation of the number of 1's in the bitmaps of the regions).

The paper does not say of what that number is a share. If it were of all queries, 0.25 could not be
reached with 173 predicates of 50 queries on 15 attributes, because the bit of a query that does not
use an attribute is always 1. Here it is a share of the queries that use the attribute, and the
deviation of a set is the mean over its attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.conjunctions import Conjunctions
from benchmarks.workloads.integer_events import Numbers
from benchmarks.workloads.operators import ABOVE, BELOW, Codes, from_below, to_above

Shares = npt.NDArray[np.float64]


class Intervals(NamedTuple):
    """Predicates with =, <, <=, >, >= or BETWEEN, as in `Conjunctions`."""

    operator: Codes
    low: Numbers
    high: Numbers


def region_deviation(queries: Conjunctions) -> float:
    """The standard deviation of the shares of an attribute's regions, averaged over attributes.

    Each query has at most one predicate on an attribute, and that is an interval.
    """
    used = np.unique(queries.attribute).tolist()
    return float(np.mean([region_shares(intervals_on(queries, a)).std() for a in used]))


def intervals_on(queries: Conjunctions, attribute: int) -> Intervals:
    """The predicates on one attribute."""
    at = queries.attribute == attribute
    return Intervals(queries.operator[at], queries.low[at], queries.high[at])


def region_shares(intervals: Intervals) -> Shares:
    """For each region, ascending, the share of these intervals that hold it.

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
