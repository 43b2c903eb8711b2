"""Everything that follows from a conjunction of comparisons, by difference bounds.

"Characterizing Memory Requirements …", section 4: the transitive closure P⁺. The weight of an edge
from x to y bounds x − y from above, and shortest paths are all that is implied. On whole lines that
is exact over the integers: `10 < a < b < 13` makes a 11 and b 12. On other lines only the order of
constants counts, so `a < b` stays strict and implies no distance.

A bound is one number: 2c + 1 says `x − y <= c`, and 2c says `x − y < c`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headgate.stateful.analysis.theory.conjunctive import Conjunctive, Variable

NO_BOUND = 1 << 40
AT_MOST_ZERO = 1
BELOW_ZERO = 0

Booleans = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Closure:
    """What is implied between variables, and where each of them can take infinitely many values.

    `at_most[x, y]` and `below[x, y]` say that `x <= y` and `x < y` follow. The constants of a line
    cut it into gaps, numbered from 0 below all of them; `roams[x, g]` says that x can lie in gap g
    with infinitely many values, and `pinned[x, g]` that its values there are finitely many. Without
    constants there is one gap, the whole line.
    """

    satisfiable: bool
    at_most: Booleans
    below: Booleans
    roams: Booleans
    pinned: Booleans

    @property
    def equal(self) -> Booleans:
        return self.at_most & self.at_most.T

    @property
    def bounded(self) -> Booleans:
        """Which variables take finitely many values: Definition 4.5, as section 9 widens it."""
        finite: Booleans = ~np.any(self.roams, axis=1)
        return finite


@lru_cache(maxsize=256)
def compute_closure(query: Conjunctive) -> Closure:
    """Return the closure of all comparisons and bounds of a query; recent ones are cached."""
    bounds, places = _build_bounds(query)
    # Lines are independent, so the cubic step runs on the square block of each.
    for line in range(len(query.lines)):
        block = [v for v, variable in enumerate(query.variables) if variable.line == line]
        block += [row for (of, _), row in places.items() if of == line]
        bounds[np.ix_(block, block)] = _close_bounds(bounds[np.ix_(block, block)])
    count = len(query.variables)
    # Rows and columns of constants come after those of the variables.
    follows = bounds <= AT_MOST_ZERO
    satisfiable = bool((np.diagonal(bounds) >= AT_MOST_ZERO).all())
    at_most, below = follows[:count, :count], (bounds <= BELOW_ZERO)[:count, :count]
    roams, pinned = _decide_gaps(query, follows, places)
    # What is equal to a pinned variable is pinned too, in the same gaps; it roams there no more.
    for equals in at_most & at_most.T:
        pinned[equals] = pinned[equals].any(axis=0)
    return Closure(satisfiable, at_most, below, roams & ~pinned, pinned)


def _build_bounds(query: Conjunctive) -> tuple[NDArray[np.int64], dict[tuple[int, int], int]]:
    """Return the bounds between variables and constants as written, and each constant's row."""
    count = len(query.variables)
    constants = [query.constants(line) for line in range(len(query.lines))]
    places: dict[tuple[int, int], int] = {}
    for line, values in enumerate(constants):
        for value in values:
            places[line, value] = count + len(places)
    # bounds[x, y] is the encoded upper bound of x - y; the diagonal says x - x <= 0.
    bounds = np.full((count + len(places),) * 2, NO_BOUND, np.int64)
    np.fill_diagonal(bounds, AT_MOST_ZERO)
    for line, values in enumerate(constants):
        rows = [places[line, value] for value in values]
        at = _place_constants(values, count, whole=query.lines[line].whole)
        bounds[np.ix_(rows, rows)] = 2 * (at[:, None] - at[None, :]) + 1
    for left, operator, right, whole in _iter_edges(query, places):
        # On whole lines x < y is x - y <= -1, encoded as 2 * -1 + 1.
        strict = -1 if whole else BELOW_ZERO
        weight = strict if operator == "<" else AT_MOST_ZERO
        bounds[left, right] = min(bounds[left, right], weight)
        if operator == "=":
            bounds[right, left] = min(bounds[right, left], weight)
    return bounds, places


def _place_constants(values: list[int], count: int, *, whole: bool) -> NDArray[np.int64]:
    """Return where constants lie: as far apart as they are, up to what a chain can fill."""
    if not whole:
        return np.arange(len(values), dtype=np.int64)
    # No chain of `count` variables is longer than count + 1 steps: greater distances change
    # nothing, and capping them keeps bounds far below NO_BOUND.
    steps = [min(b - a, count + 2) for a, b in pairwise(values)]
    return np.cumsum([0, *steps], dtype=np.int64)[: len(values)]


def _iter_edges(
    query: Conjunctive, places: dict[tuple[int, int], int]
) -> Iterable[tuple[int, str, int, bool]]:
    for comparison in query.comparisons:
        line = query.variables[comparison.left].line
        yield comparison.left, comparison.operator, comparison.right, query.lines[line].whole
    for bound in query.bounds:
        line = query.variables[bound.variable].line
        left, right, operator = bound.variable, places[line, bound.constant], bound.operator
        if operator in (">", ">="):
            left, right, operator = right, left, "<" if operator == ">" else "<="
        yield left, operator, right, query.lines[line].whole


def _close_bounds(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Run Floyd and Warshall in place on one line; a negative cycle shows on the diagonal.

    Around such a cycle bounds double with each step, so they are kept from running away.
    """
    for middle in range(len(bounds)):
        # Adding two encoded bounds: 2c + 1 and 2d + 1 must give 2(c + d) + 1, and a strict one
        # makes the sum strict, so one is taken off if either is odd.
        first, second = bounds[:, middle, None], bounds[None, middle, :]
        np.minimum(bounds, first + second - ((first | second) & 1), out=bounds)
        np.maximum(bounds, -NO_BOUND, out=bounds)
    return bounds


def _decide_gaps(
    query: Conjunctive, follows: Booleans, places: dict[tuple[int, int], int]
) -> tuple[Booleans, Booleans]:
    """Decide in which gaps each variable takes infinitely many values, and where finitely many."""
    constants = [query.constants(line) for line in range(len(query.lines))]
    gap_count = max((len(values) for values in constants), default=0) + 1
    roams = np.zeros((len(query.variables), gap_count), np.bool_)
    pinned = np.zeros_like(roams)
    for number, variable in enumerate(query.variables):
        values = constants[variable.line]
        rows = [places[variable.line, value] for value in values]
        # inside[g]: the variable can lie in gap g, that is not x <= the constant below it, and not
        # x >= the constant above it.
        inside = np.ones(len(rows) + 1, np.bool_)
        inside[1:] &= ~follows[number, rows]
        inside[:-1] &= ~follows[rows, number]
        # endless[g]: gap g holds infinitely many values of its type; the two outer gaps always do.
        endless = np.full(len(rows) + 1, variable.dense)
        endless[[0, -1]] = True
        # A constant outside of the type is no end: the gap next to it is outermost, and what lies
        # beyond it is unreachable.
        below, above = _find_outside(variable, values)
        endless[:-1] |= above
        endless[1:] |= below
        inside[1:] &= ~above
        inside[:-1] &= ~below
        if variable.finite:
            endless[:] = False
        roams[number, : len(inside)] = inside & endless
        pinned[number, : len(inside)] = inside & ~endless
    return roams, pinned


def _find_outside(variable: Variable, values: list[int]) -> tuple[Booleans, Booleans]:
    """Return which constants are below, and which above, all that a variable can be."""
    before, beyond = variable.before, variable.beyond
    below = [before is not None and value <= before for value in values]
    above = [beyond is not None and value >= beyond for value in values]
    return np.array(below, np.bool_), np.array(above, np.bool_)
