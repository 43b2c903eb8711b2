"""Assignments of all variables, of which every one must be remembered: why a query is unbounded.

"Characterizing Memory Requirements …", Lemmas A.3 to A.7. The variables at fault move through their
gaps on tracks: a row's block of values lies above that of the row before, or below it. Take the
source's variables from one row and all others from a later one, and a join fails on a rising track
if the source is at its right (it lags behind), on a falling track if it is at its left.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise, permutations
from typing import Any

from headgate.stateful.analysis.theory.checker import Join, Violation
from headgate.stateful.analysis.theory.closure import Booleans, compute_closure
from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from headgate.stateful.analysis.witness_values import Row, Track, assign_values

MAX_PAIRED_ROWS = 12  # up to which all pairs of rows are verified, beyond that neighbours only

Tracks = list[Track]


def build_schedule(query: Conjunctive, violation: Violation, size: int) -> list[Row]:
    """Build `size` assignments t_1, t_2, … of which all rows of the source must be kept.

    Values on whole lines are whole numbers. On any other line the r-th constant has position r
    (from 0), what lies between two constants a fraction between theirs, and what lies beyond all of
    them a whole number. A variable that is `finite`, or is not dense and lies between two
    constants, has one position in all assignments.

    Let mix(i, j) be t_j with the source's variables taken from t_i:

    | pattern                        | guarantee                                                  |
    |--------------------------------|------------------------------------------------------------|
    | output                         | all t_i differ on the variable                             |
    | equality, minima, maxima, both | mix(i, j) is not valid for i != j (Lemma A.4)              |
    | count                          | t_i differ on the source; mix(i, j) is not valid for i < j |
    | maximum                        | mix(i, j) is valid only if the variable is less in t_i     |
    | minimum                        | mix(i, j) is valid only if it is greater in t_i            |

    The last two are said of i != j. All of this is verified before it is returned: on all pairs of
    up to a dozen rows, and on neighbours beyond. Raises ValueError if there are no such rows.

    >>> from headgate.stateful.analysis.theory.checker import find_violations
    >>> from headgate.stateful.analysis.theory.conjunctive import Comparison, Variable
    >>> below = (Comparison(0, "<", 1),)
    >>> query = Conjunctive(("s", "t"), (Variable(0, "a"), Variable(1, "b")), below)
    >>> build_schedule(query, next(find_violations(query)), 3)
    [(4, 5), (2, 3), (0, 1)]
    """
    if size < 1:
        raise ValueError(f"a schedule has at least one row, not {size}")
    closure = compute_closure(query)
    if not closure.satisfiable:
        raise ValueError("a contradictory query has no rows at all")
    # Not every layout of tracks fits between the constants: the first that is verified wins.
    problems = []
    for tracks in _iter_layouts(query, violation, closure.at_most):
        rows = assign_values(query, tracks, size)
        problem = _find_problem(query, violation, rows)
        if problem is None:
            return rows
        problems.append(problem)
    reasons = "; ".join(dict.fromkeys(problems))
    raise ValueError(f"no rows show that {violation.pattern} needs unbounded memory: {reasons}")


def _iter_layouts(query: Conjunctive, violation: Violation, at_most: Booleans) -> Iterator[Tracks]:
    """Yield tracks that prove the violation, the tidiest first; some may not fit the query."""
    joins, source = violation.joins, violation.source
    match violation.pattern:
        case "output":
            # Lemma A.3.
            yield [Track((violation.variable,), violation.gap)]
        case "equality":
            # Lemma A.5: one side is enough, the other is equal to it.
            yield [Track((joins[0].left,), joins[0].gap)]
        case "count":
            # Lemma A.6: earlier rows of the source fail to join with what belongs to later ones.
            yield [_make_track(joins[0], rising=query.variables[joins[0].right].source == source)]
        case "minima":
            # Lemma A.7, cases 1 and 2: opposite directions, so that one join fails for i < j and
            # the other for i > j.
            yield [_make_track(joins[0], rising=True), _make_track(joins[1], rising=False)]
        case "maxima":
            yield [_make_track(joins[1], rising=False), _make_track(joins[0], rising=True)]
        case "both":
            yield from _iter_both(query, joins[0], joins[1], at_most)
        case "maximum" | "minimum":
            yield from _iter_extremum(query, violation, at_most)


def _make_track(join: Join, *, rising: bool) -> Track:
    return Track((join.left, join.right), join.gap, rising)


def _iter_both(
    query: Conjunctive, first: Join, second: Join, at_most: Booleans
) -> Iterator[Tracks]:
    """Yield tracks for Lemma A.7, case 3: one block of four classes in one gap, else two tracks.

    A block has the first join below the second where it can. Where something that takes only
    finitely many values parts the classes of one gap, they take a track on each side of it.
    """
    if _share_line(query, first.left, second.left) and first.gap == second.gap:
        order = _sort_classes((first.left, first.right, second.left, second.right), at_most)
        yield [Track(order, first.gap)]
    tracks = [_make_track(first, rising=True), _make_track(second, rising=True)]
    yield tracks
    yield tracks[::-1]


def _iter_extremum(query: Conjunctive, violation: Violation, at_most: Booleans) -> Iterator[Tracks]:
    """Yield tracks in which rows that join with t_k lie at one side, the variable on the other.

    The join rises. If the source is at its left, the rows up to k join, else those from k on. For
    a maximum the variable must then rise or fall, for a minimum fall or rise.
    """
    (join,) = violation.joins
    at_left = query.variables[join.left].source == violation.source
    rising = at_left == (violation.pattern == "maximum")
    variable, gap = violation.variable, violation.gap
    if rising and gap == join.gap and _share_line(query, variable, join.left):
        yield [Track(_sort_classes((variable, join.left, join.right), at_most), gap)]
    track = Track((variable,), gap, rising)
    yield [track, _make_track(join, rising=True)]
    yield [_make_track(join, rising=True), track]


def _share_line(query: Conjunctive, first: int, second: int) -> bool:
    return query.variables[first].line == query.variables[second].line


def _sort_classes(variables: Sequence[int], at_most: Booleans) -> tuple[int, ...]:
    """Return one variable of each class, ascending as the closure allows, else as given."""
    classes: list[int] = []
    for variable in variables:
        if not any(_are_equal(variable, other, at_most) for other in classes):
            classes.append(variable)
    # At most four classes, so at most 24 permutations; the first in the order given that fits.
    return next(
        order
        for order in permutations(classes)
        if not any(at_most[later, sooner] for sooner, later in combinations(order, 2))
    )


def _are_equal(first: int, second: int, at_most: Booleans) -> bool:
    return bool(at_most[first, second] and at_most[second, first])


def _find_problem(query: Conjunctive, violation: Violation, rows: Sequence[Row]) -> str | None:
    """Return what is wrong with rows, if anything."""
    valid = _make_validity_test(query)
    if not all(valid(row) for row in rows):
        return "the other variables cannot follow"
    stuck = _find_moving_finite(query, rows)
    if stuck is not None:
        return f"{stuck} takes only finitely many values, but would have to move"
    if violation.pattern == "output":
        distinct = len({row[violation.variable] for row in rows}) == len(rows)
        return None if distinct else "the output repeats"
    # is_own[v]: variable v belongs to the source; mixed is mix(i, j) of `build_schedule`.
    is_own = [variable.source == violation.source for variable in query.variables]
    for i, j in _iter_row_pairs(len(rows)):
        mixed = tuple(a if own else b for a, b, own in zip(rows[i], rows[j], is_own, strict=True))
        if valid(mixed) and not _may_join(violation, rows, i, j):
            return f"row {i + 1} of the source also joins with the others of row {j + 1}"
    if violation.pattern == "count":
        parts = {tuple(v for v, own in zip(row, is_own, strict=True) if own) for row in rows}
        return None if len(parts) == len(rows) else "rows of the source repeat"
    return None


def _may_join(violation: Violation, rows: Sequence[Row], i: int, j: int) -> bool:
    """Return whether t_i's row of the source may join with what belongs to t_j."""
    match violation.pattern:
        case "count":
            return i > j
        case "maximum":
            return rows[i][violation.variable] < rows[j][violation.variable]
        case "minimum":
            return rows[i][violation.variable] > rows[j][violation.variable]
        case _:
            return False


def _iter_row_pairs(size: int) -> Iterable[tuple[int, int]]:
    """Return all pairs of different rows, of many only neighbours."""
    if size <= MAX_PAIRED_ROWS:
        return permutations(range(size), 2)
    return (pair for neighbours in pairwise(range(size)) for pair in (neighbours, neighbours[::-1]))


def _find_moving_finite(query: Conjunctive, rows: Sequence[Row]) -> str | None:
    """Return a variable that moves where it has only finitely many values."""
    for number, variable in enumerate(query.variables):
        values = {row[number] for row in rows}
        can_move = variable.dense or query.lines[variable.line].whole
        # On lines that are not whole, a fraction is a position between two constants.
        is_fixed = variable.finite or not (can_move or all(v.denominator == 1 for v in values))
        if is_fixed and len(values) > 1:
            return variable.name
    return None


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


def _make_validity_test(query: Conjunctive) -> Callable[[Row], bool]:
    """Return whether positions satisfy all comparisons and bounds."""
    comparisons = [(c.left, _OPERATORS[c.operator], c.right) for c in query.comparisons]
    bounds = []
    for bound in query.bounds:
        line = query.variables[bound.variable].line
        rank = query.constants(line).index(bound.constant)
        # Positions, not constants: on a line that is not whole a constant lies at its rank.
        at = bound.constant if query.lines[line].whole else rank
        bounds.append((bound.variable, _OPERATORS[bound.operator], at))

    def valid(row: Row) -> bool:
        return all(holds(row[a], row[b]) for a, holds, b in comparisons) and all(
            holds(row[a], constant) for a, holds, constant in bounds
        )

    return valid
