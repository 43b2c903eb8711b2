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
from headgate.stateful.analysis.witness.fill import Row, Track, assign_values

ALL_PAIRS = 12


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
    for tracks in _layouts(query, violation, closure.at_most):
        rows = assign_values(query, tracks, size)
        problem = _problem(query, violation, rows)
        if problem is None:
            return rows
        problems.append(problem)
    reasons = "; ".join(dict.fromkeys(problems))
    raise ValueError(f"no rows show that {violation.pattern} needs unbounded memory: {reasons}")


def _layouts(query: Conjunctive, violation: Violation, at_most: Booleans) -> Iterator[list[Track]]:
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
            yield [_track(joins[0], rising=query.variables[joins[0].right].source == source)]
        case "minima":
            # Lemma A.7, cases 1 and 2: opposite directions, so that one join fails for i < j and
            # the other for i > j.
            yield [_track(joins[0], rising=True), _track(joins[1], rising=False)]
        case "maxima":
            yield [_track(joins[1], rising=False), _track(joins[0], rising=True)]
        case "both":
            yield from _both(query, joins[0], joins[1], at_most)
        case "maximum" | "minimum":
            yield from _extremum(query, violation, at_most)


def _track(join: Join, *, rising: bool) -> Track:
    return Track((join.left, join.right), join.gap, rising)


def _both(query: Conjunctive, one: Join, two: Join, at_most: Booleans) -> Iterator[list[Track]]:
    """Yield tracks for Lemma A.7, case 3: one block of four classes in one gap, else two tracks.

    A block has the first join below the second where it can. Where something that takes only
    finitely many values parts the classes of one gap, they take a track on each side of it.
    """
    if _together(query, one.left, two.left) and one.gap == two.gap:
        order = _order((one.left, one.right, two.left, two.right), at_most)
        yield [Track(order, one.gap)]
    first, second = _track(one, rising=True), _track(two, rising=True)
    yield [first, second]
    yield [second, first]


def _extremum(query: Conjunctive, violation: Violation, at_most: Booleans) -> Iterator[list[Track]]:
    """Yield tracks in which rows that join with t_k lie at one side, the variable on the other.

    The join rises. If the source is at its left, the rows up to k join, else those from k on. For
    a maximum the variable must then rise or fall, for a minimum fall or rise.
    """
    (join,) = violation.joins
    at_left = query.variables[join.left].source == violation.source
    rising = at_left == (violation.pattern == "maximum")
    variable, gap = violation.variable, violation.gap
    if rising and gap == join.gap and _together(query, variable, join.left):
        yield [Track(_order((variable, join.left, join.right), at_most), gap)]
    track = Track((variable,), gap, rising)
    yield [track, _track(join, rising=True)]
    yield [_track(join, rising=True), track]


def _together(query: Conjunctive, one: int, two: int) -> bool:
    return query.variables[one].line == query.variables[two].line


def _order(variables: Sequence[int], at_most: Booleans) -> tuple[int, ...]:
    """Return one variable of each class, ascending as the closure allows, else as given."""
    classes: list[int] = []
    for variable in variables:
        if not any(_same(variable, other, at_most) for other in classes):
            classes.append(variable)
    # At most four classes, so at most 24 permutations; the first in the order given that fits.
    return next(
        order
        for order in permutations(classes)
        if not any(at_most[later, sooner] for sooner, later in combinations(order, 2))
    )


def _same(one: int, two: int, at_most: Booleans) -> bool:
    return bool(at_most[one, two] and at_most[two, one])


def _problem(query: Conjunctive, violation: Violation, rows: Sequence[Row]) -> str | None:
    """Return what is wrong with rows, if anything."""
    valid = _validity(query)
    if not all(valid(row) for row in rows):
        return "the other variables cannot follow"
    stuck = _still(query, rows)
    if stuck is not None:
        return f"{stuck} takes only finitely many values, but would have to move"
    if violation.pattern == "output":
        distinct = len({row[violation.variable] for row in rows}) == len(rows)
        return None if distinct else "the output repeats"
    # own[v]: variable v belongs to the source; mixed is mix(i, j) of `build_schedule`.
    own = [variable.source == violation.source for variable in query.variables]
    for i, j in _sample(len(rows)):
        mixed = tuple(a if mine else b for a, b, mine in zip(rows[i], rows[j], own, strict=True))
        if valid(mixed) and not _may_join(violation, rows, i, j):
            return f"row {i + 1} of the source also joins with the others of row {j + 1}"
    if violation.pattern == "count":
        mine = {tuple(value for value, m in zip(row, own, strict=True) if m) for row in rows}
        return None if len(mine) == len(rows) else "rows of the source repeat"
    return None


def _may_join(violation: Violation, rows: Sequence[Row], i: int, j: int) -> bool:
    """Tell whether t_i's row of the source may join with what belongs to t_j."""
    match violation.pattern:
        case "count":
            return i > j
        case "maximum":
            return rows[i][violation.variable] < rows[j][violation.variable]
        case "minimum":
            return rows[i][violation.variable] > rows[j][violation.variable]
        case _:
            return False


def _sample(size: int) -> Iterable[tuple[int, int]]:
    """Return all pairs of different rows, of many only neighbours."""
    if size <= ALL_PAIRS:
        return permutations(range(size), 2)
    return (pair for one in pairwise(range(size)) for pair in (one, one[::-1]))


def _still(query: Conjunctive, rows: Sequence[Row]) -> str | None:
    """Return a variable that moves where it has only finitely many values."""
    for number, variable in enumerate(query.variables):
        values = {row[number] for row in rows}
        loose = variable.dense or query.lines[variable.line].whole
        # On lines that are not whole, a fraction is a position between two constants.
        held = variable.finite or not (loose or all(v.denominator == 1 for v in values))
        if held and len(values) > 1:
            return variable.name
    return None


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


def _validity(query: Conjunctive) -> Callable[[Row], bool]:
    """Tell whether positions satisfy all comparisons and bounds."""
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
