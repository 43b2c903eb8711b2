"""The conditions for bounded memory, decided by patterns of at most two joins.

"Characterizing Memory Requirements …", section 6 and Figure 2. The paper looks at all sets of at
most four attributes and at all total orders of each. Here the orders are worked out beforehand:
which two joins can need two memories at once depends only on a few facts of the closure, so that
all sets are decided by a handful of operations on matrices.

A join `x <= y` between streams is *live* in a gap of its line where both sides can take infinitely
many values, and nothing that takes only finitely many there lies between them: in some total order
it is then nonredundant, and its sides are in MinRef and MaxRef. Deviations, after the slips listed
with each: the closure instead of the written predicates decides C2; `<=` counts as `<` does; a gap
may be any open interval between constants where a type is dense; windowed streams need no memory
but demand it of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headgate.stateful.analysis.theory.closure import Booleans, Closure, compute_closure
from headgate.stateful.analysis.theory.conjunctive import Conjunctive

Condition = Literal["C1", "C2", "C3"]
Pattern = Literal["output", "equality", "count", "minima", "maxima", "both", "maximum", "minimum"]


@dataclass(frozen=True, slots=True)
class Join:
    """`left <= right` (or `<`, or `=`) between streams, where both lie in a gap of their line."""

    left: int
    right: int
    gap: int


@dataclass(frozen=True, slots=True)
class Violation:
    """Why the rows of `source` must all be remembered.

    | pattern  | condition | what is at fault                                                     |
    |----------|-----------|----------------------------------------------------------------------|
    | output   | C1        | `variable` is put out, with infinitely many values in `gap`          |
    | equality | C2        | the join equates variables with infinitely many values               |
    | count    | C3        | rows on one side of the join must be counted for every value         |
    | minima   | C3        | both joins have the source at their left: two minima at once         |
    | maxima   | C3        | both joins have the source at their right: two maxima at once        |
    | both     | C3        | the first join has the source at its right, the second at its left   |
    | maximum  | C3        | MAX of `variable` in `gap`, beside the join (Theorem 8.6, corrected) |
    | minimum  | C3        | MIN of it                                                            |
    """

    condition: Condition
    pattern: Pattern
    source: int
    joins: tuple[Join, ...] = ()
    variable: int = -1
    gap: int = -1


def is_bounded(query: Conjunctive) -> bool:
    """Return whether a query without DISTINCT self-joins can be computed in bounded memory."""
    return next(find_violations(query), None) is None


def find_violations(query: Conjunctive, closure: Closure | None = None) -> Iterator[Violation]:
    """Yield what keeps a query from bounded memory, an example for each stream and kind.

    A contradictory query, and a filter on one stream, need no memory at all.
    """
    known = closure or compute_closure(query)
    remembering = [s for s in range(len(query.streams)) if s not in query.windowed]
    if not known.satisfiable or not remembering:
        return
    # Step 1 of Figure 2: a filter that keeps duplicates is bounded without conditions.
    if len(query.streams) == 1 and not query.distinct:
        return
    yield from _find_output_violations(query, known)
    if len(query.streams) == 1:
        return
    yield from _find_equality_violations(query, known)
    live = find_live_joins(query, known)
    for source in remembering:
        yield from _find_source_violations(query, known, live, source)


def find_extremum_violations(
    query: Conjunctive, variable: int, pattern: Literal["maximum", "minimum"], closure: Closure
) -> Iterator[Violation]:
    """Yield what keeps MAX or MIN of a variable with infinitely many values from bounded memory.

    Theorem 8.6, condition C3, is too weak as printed: `MAX(s.a)` with `s.b < t.d` needs every row,
    although MaxRef is empty. For MAX, in every total order in which the variable takes infinitely
    many values MinRef must be empty, and MaxRef within its class; for MIN the other way round.
    """
    source = query.variables[variable].source
    if not closure.satisfiable or source in query.windowed or len(query.streams) == 1:
        return
    live = find_live_joins(query, closure)
    # Per variable: of the source at all, and of it outside the class of MAX's own variable.
    free = np.array([v.source == source for v in query.variables], np.bool_)
    limited = free & ~closure.equal[variable]
    # For MAX any join with the source at its left (MinRef) is at fault, but at its right (MaxRef)
    # only one outside the variable's class; for MIN the other way round.
    sides = (free, limited) if pattern == "maximum" else (limited, free)
    # live[x, y, g] is left only where x or y is a side at fault.
    live &= (sides[0][:, None] | sides[1][None, :])[:, :, None]
    for left, right, gap in np.argwhere(live).tolist():
        always = free[left] == (pattern == "maximum")
        beneath, over = not closure.at_most[left, variable], not closure.at_most[variable, right]
        # The variable must be able to roam while the join is live: in the same gap, or on the side
        # of it that the order of the two allows.
        for own_gap in np.flatnonzero(closure.roams[variable]).tolist():
            same = own_gap == gap and (always or beneath or over)
            if same or (own_gap < gap and beneath) or (own_gap > gap and over):
                join = Join(left, right, gap)
                yield Violation("C3", pattern, source, (join,), variable, own_gap)
                return


def find_live_joins(query: Conjunctive, closure: Closure) -> Booleans:
    """Return `live[x, y, g]`: `x <= y` can be nonredundant in gap g, between infinite sides."""
    sources = np.array([variable.source for variable in query.variables])
    # joined[x, y]: x <= y follows, y <= x does not, and they belong to different occurrences.
    joined = closure.at_most & ~closure.at_most.T & (sources[:, None] != sources[None, :])
    live: Booleans = joined[:, :, None] & closure.roams[:, None, :] & closure.roams[None, :, :]
    return live & ~_find_pinned_between(closure)


def _find_pinned_between(closure: Closure) -> Booleans:
    """Return `[x, y, g]`: something between x and y has finitely many values in gap g."""
    separated = np.zeros((*closure.at_most.shape, closure.roams.shape[1]), np.bool_)
    # Only gaps where something roams matter. Few variables are pinned in them: a loop will do.
    separating = closure.pinned & closure.roams.any(axis=0)
    for middle in np.flatnonzero(separating.any(axis=1)):
        low, high = closure.at_most[:, middle], closure.at_most[middle, :]
        separated |= low[:, None, None] & high[None, :, None] & closure.pinned[middle]
    return separated


def _find_output_violations(query: Conjunctive, closure: Closure) -> Iterator[Violation]:
    """Yield C1: an output of a stream that must be kept takes infinitely many values."""
    for variable in query.outputs:
        source = query.variables[variable].source
        gaps = np.flatnonzero(closure.roams[variable])
        if len(gaps) and source not in query.windowed:
            yield Violation("C1", "output", source, variable=variable, gap=int(gaps[-1]))


def _find_equality_violations(query: Conjunctive, closure: Closure) -> Iterator[Violation]:
    """Yield C2: an equality between streams of variables with infinitely many values."""
    endless = ~closure.bounded
    # The upper triangle has each pair once.
    for left, right in np.argwhere(np.triu(closure.equal, 1) & endless[:, None]).tolist():
        sources = [query.variables[left].source, query.variables[right].source]
        remembering = [s for s in sources if s not in query.windowed]
        if sources[0] != sources[1] and remembering:
            gap = int(np.flatnonzero(closure.roams[left])[-1])
            yield Violation("C2", "equality", remembering[0], (Join(left, right, gap),))


def _find_source_violations(
    query: Conjunctive, closure: Closure, live: Booleans, source: int
) -> Iterator[Violation]:
    """Yield C3, for one stream."""
    # own[x]: x belongs to the stream. lefts are its joins for MinRef, rights those for MaxRef.
    own = np.array([variable.source == source for variable in query.variables], np.bool_)
    lefts = _Joins.of(live & own[:, None, None])
    rights = _Joins.of(live & own[None, :, None])
    # C3 of Theorem 5.6 allows no join at all; that of Theorem 5.10 one class on one side.
    if not query.distinct:
        for joins in (lefts, rights):
            if len(joins):
                yield Violation("C3", "count", source, (joins.join(0, joins.last[0]),))
        return
    yield from _find_conflict("minima", source, lefts, lefts, _compare_minima(closure, lefts))
    yield from _find_conflict("maxima", source, rights, rights, _compare_maxima(closure, rights))
    yield from _find_conflict("both", source, rights, lefts, _compare_ends(closure, rights, lefts))


@dataclass(frozen=True, slots=True)
class _Joins:
    """Live joins as columns: each with its first and last gap, and all of them as a mask."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    gaps: Booleans

    @staticmethod
    def of(live: Booleans) -> _Joins:
        # One entry for each pair of variables; gaps has shape (joins, gaps).
        left, right = np.nonzero(live.any(axis=2))
        return _Joins(left, right, live[left, right])

    def __len__(self) -> int:
        return len(self.left)

    @property
    def first(self) -> NDArray[np.int64]:
        gap: NDArray[np.int64] = np.argmax(self.gaps, axis=1)
        return gap

    @property
    def last(self) -> NDArray[np.int64]:
        gap: NDArray[np.int64] = self.gaps.shape[1] - 1 - np.argmax(self.gaps[:, ::-1], axis=1)
        return gap

    def join(self, number: int, gap: int) -> Join:
        return Join(int(self.left[number]), int(self.right[number]), int(gap))


@dataclass(frozen=True, slots=True)
class _Conflicts:
    """Which pairs of joins conflict, by whether the first is in a lower gap, the same or a higher.

    `lower` and `higher` have shape (ones, twos), `same` has (ones, twos, gaps) or (ones, twos, 1).
    """

    lower: Booleans
    same: Booleans
    higher: Booleans


def _find_conflict(
    pattern: Pattern, source: int, ones: _Joins, twos: _Joins, conflicts: _Conflicts
) -> Iterator[Violation]:
    """Yield the first conflicting pair of joins, in gaps in which they conflict."""
    # common[i, j, g]: both joins can be in gap g and conflict there.
    common = ones.gaps[:, None, :] & twos.gaps[None, :, :] & conflicts.same
    lower = conflicts.lower & (ones.first[:, None] < twos.last[None, :])
    higher = conflicts.higher & (ones.last[:, None] > twos.first[None, :])
    # One example for each pattern is enough for a verdict.
    for i, j in np.argwhere(common.any(axis=2) | lower | higher)[:1].tolist():
        gaps = np.flatnonzero(common[i, j])
        if len(gaps):
            first, second = gaps[-1], gaps[-1]
        elif lower[i, j]:
            first, second = ones.first[i], twos.last[j]
        else:
            first, second = ones.last[i], twos.first[j]
        yield Violation("C3", pattern, source, (ones.join(i, first), twos.join(j, second)))


def _compare_minima(closure: Closure, joins: _Joins) -> _Conflicts:
    """Compare pairs of joins a <= c and b <= d with a, b of the source: Lemma A.7, case 1.

    Let a be below b. Then `a <= c` is redundant just where `b <= c` follows.
    """
    # conflict[i, j]: b <= c does not follow, for join i as a <= c and join j as b <= d.
    conflict: Booleans = ~closure.at_most[joins.left[None, :], joins.right[:, None]]
    # With a below b the first join is never in the higher gap.
    return _Conflicts(conflict, conflict[:, :, None], np.zeros_like(conflict))


def _compare_maxima(closure: Closure, joins: _Joins) -> _Conflicts:
    """Compare pairs c <= a and d <= b with a, b of the source: case 2, the mirror image."""
    conflict: Booleans = ~closure.at_most[joins.left[:, None], joins.right[None, :]]
    return _Conflicts(np.zeros_like(conflict), conflict[:, :, None], conflict)


def _compare_ends(closure: Closure, ones: _Joins, twos: _Joins) -> _Conflicts:
    """Compare pairs of joins c <= a and b <= d with a, b of the source: case 3.

    In one gap such joins always conflict: rows whose values all lie above those of the row before
    join with nothing but their own. Only where something pinned lies between b and a, or c and d,
    and the other two are ordered as well, is there no room for that.
    """
    at_most = closure.at_most
    # Columns for the first joins and rows for the second, so that indexing gives [i, j].
    a, c = ones.right[:, None], ones.left[:, None]
    b, d = twos.left[None, :], twos.right[None, :]
    pinned = _find_pinned_between(closure)
    same = ~(pinned[b, a] & at_most[c, d][:, :, None]) & ~(pinned[c, d] & at_most[b, a][:, :, None])
    return _Conflicts(~at_most[b, a], same, ~at_most[c, d])
