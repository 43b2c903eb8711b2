"""Schedules: rows of which every one must be remembered, for all that the checker finds."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import pytest

from headgate.stateful.analysis.theory.checker import (
    Join,
    Violation,
    find_extremum_violations,
    find_violations,
)
from headgate.stateful.analysis.theory.closure import compute_closure
from headgate.stateful.analysis.theory.conjunctive import (
    Bound,
    BoundComparator,
    Comparator,
    Comparison,
    Conjunctive,
    Line,
    Variable,
)
from headgate.stateful.analysis.witness_schedule import build_schedule
from tests.scale import at_least, case_count, seed

COMPARE = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
}


def query_of(
    streams: str,
    conditions: str,
    outputs: str = "",
    *,
    distinct: bool = True,
    whole: bool = True,
    dense: str = "",
    finite: str = "",
) -> Conjunctive:
    """`S(a b) T(c)` with `a < c, b = 10` puts numbers to names; `dense="*"` means all of them."""
    names: list[tuple[int, str]] = []
    titles = []
    for source, stream in enumerate(streams.replace(")", "").split(";")):
        title, _, variables = stream.strip().partition("(")
        titles.append(title)
        names += [(source, name) for name in variables.split()]
    number = {name: index for index, (_, name) in enumerate(names)}
    comparisons, bounds = [], []
    for condition in filter(None, (c.strip() for c in conditions.split(","))):
        left, operator, right = condition.split()
        if right in number:
            if operator in (">", ">="):
                left, right, operator = right, left, operator.replace(">", "<")
            comparisons.append(
                Comparison(number[left], cast("Comparator", operator), number[right])
            )
        else:
            bounds.append(Bound(number[left], cast("BoundComparator", operator), int(right)))
    return Conjunctive(
        tuple(titles),
        tuple(
            Variable(
                source, name, dense=dense == "*" or name in dense.split(), finite=name in finite
            )
            for source, name in names
        ),
        tuple(comparisons),
        tuple(bounds),
        tuple(number[name] for name in outputs.split()),
        distinct=distinct,
        lines=(Line(whole),),
    )


def is_valid(query: Conjunctive, row: Sequence[Any]) -> bool:
    """By the letter of the query, on positions."""
    for comparison in query.comparisons:
        if not COMPARE[comparison.operator](row[comparison.left], row[comparison.right]):
            return False
    for bound in query.bounds:
        line = query.variables[bound.variable].line
        known = {b.constant for b in query.bounds if query.variables[b.variable].line == line}
        position = bound.constant
        if not query.lines[line].whole:
            position = sum(constant < bound.constant for constant in known)
        if not COMPARE[bound.operator](row[bound.variable], position):
            return False
    return True


def check(query: Conjunctive, violation: Violation, rows: Sequence[Sequence[Any]]) -> None:
    """Everything that `schedule` promises, straight from its table."""
    assert all(is_valid(query, row) for row in rows)
    check_types(query, rows)
    if violation.pattern == "output":
        assert len({row[violation.variable] for row in rows}) == len(rows)
        return
    source, watched = violation.source, violation.variable
    for i, one in enumerate(rows):
        for j, two in enumerate(rows):
            if i == j:
                continue
            own = [variable.source == source for variable in query.variables]
            assert [x for x, o in zip(one, own, strict=True) if o] != [
                x for x, o in zip(two, own, strict=True) if o
            ]
            mixed = [x if o else y for x, y, o in zip(one, two, own, strict=True)]
            if is_valid(query, mixed):
                assert violation.pattern in ("count", "maximum", "minimum")
                if violation.pattern == "count":
                    assert i > j
                elif violation.pattern == "maximum":
                    assert one[watched] < two[watched]
                else:
                    assert one[watched] > two[watched]


def check_types(query: Conjunctive, rows: Sequence[Sequence[Any]]) -> None:
    """Whole numbers on whole lines and beyond constants; what has few values stands still."""
    for number, variable in enumerate(query.variables):
        values = {row[number] for row in rows}
        bounds = [b for b in query.bounds if query.variables[b.variable].line == variable.line]
        last = len({b.constant for b in bounds}) - 1
        if query.lines[variable.line].whole:
            assert all(type(value) is int for value in values)
        else:
            assert all(0 < value < last or Fraction(value).denominator == 1 for value in values)
            broken = any(Fraction(value).denominator > 1 for value in values)
            assert variable.dense or not broken or len(values) == 1
        assert not variable.finite or len(values) == 1


def list_violations(query: Conjunctive, pattern: str | None = None) -> list[Violation]:
    return [v for v in find_violations(query) if pattern in (None, v.pattern)]


def rows_of(query: Conjunctive, pattern: str, size: int = 6) -> list[list[Any]]:
    """The rows for the only stream at fault, as columns."""
    (violation, *_) = list_violations(query, pattern)
    rows = build_schedule(query, violation, size)
    check(query, violation, rows)
    return [list(column) for column in zip(*rows, strict=True)]


def rises(*columns: list[Any]) -> bool:
    """Does each row's last value lie below the next row's first?"""
    flat = [value for row in zip(*columns, strict=True) for value in row]
    return flat == sorted(set(flat))


def falls(*columns: list[Any]) -> bool:
    return rises(*(column[::-1] for column in columns))


def test_example_5_8_puts_out_every_value() -> None:
    query = query_of("S(a b); T(c)", "a > 10, b = c, b = 10", "a", distinct=False)
    a, b, c = rows_of(query, "output")
    assert (a, set(b), set(c)) == ([11, 12, 13, 14, 15, 16], {10}, {10})


def test_example_5_9_counts_rows_below_each_value() -> None:
    query = query_of("S(a b); T(c)", "a = 10, b < c, b > 10, c > 10", "a", distinct=False)
    a, b, c = rows_of(query, "count")
    assert set(a) == {10}
    assert falls(b, c)
    assert min(b) == 11


def test_example_5_12_has_a_row_of_its_own_for_every_row() -> None:
    query = query_of("S(a b c); T(d e)", "a = 10, b > d, c > e, b > 10", "a")
    a, b, c, d, e = rows_of(query, "maxima")
    assert set(a) == {10}
    assert rises(d, b) != rises(e, c)
    assert falls(d, b) != falls(e, c)


@pytest.mark.parametrize("operator", ["<", "<="])
@pytest.mark.parametrize(
    "where",
    ["a > 10, b > 10, c > 10, d > 10", "a < 10, b < 10, c < 10, d < 10", ""],
    ids=["a: above", "b: below", "no constants"],
)
class TestLemmaA7:
    """Two joins in one gap, above or below all constants, or without any."""

    def test_case_1_nests_minima(self, operator: str, where: str) -> None:
        text = f"a {operator} c, b {operator} d, a < b, {where}"
        a, b, c, d = rows_of(query_of("S(a b); T(c d)", text), "minima")
        assert rises(a, c)
        assert falls(b, d)
        assert max(c) < min(b)

    def test_case_2_nests_maxima(self, operator: str, where: str) -> None:
        text = f"c {operator} a, d {operator} b, b < a, {where}"
        a, b, c, d = rows_of(query_of("S(a b); T(c d)", text), "maxima")
        assert rises(c, a)
        assert falls(d, b)
        assert max(b) < min(c)

    @pytest.mark.parametrize("within", ["a < b", "a = b", "b < a", "b < a, c < d", "b < a, d < c"])
    def test_case_3_moves_all_four_in_blocks(self, operator: str, where: str, within: str) -> None:
        text = f"c {operator} a, b {operator} d, {within}, {where}"
        a, b, c, d = rows_of(query_of("S(a b); T(c d)", text), "both")
        blocks = [(min(block), max(block)) for block in zip(a, b, c, d, strict=True)]
        assert all(one[1] < two[0] for one, two in pairwise(blocks))


@pytest.mark.parametrize("operator", ["<", "<="])
class TestLemmaA7InTwoGaps:
    """Subcase c: one join below all constants, the other above them."""

    WHERE = "a < 10, c < 10, b > 20, d > 20"

    def test_case_1(self, operator: str) -> None:
        text = f"a {operator} c, b {operator} d, {self.WHERE}"
        a, b, c, d = rows_of(query_of("S(a b); T(c d)", text), "minima")
        assert rises(a, c)
        assert falls(b, d)
        assert max(c) < 10
        assert min(b) > 20

    def test_case_2(self, operator: str) -> None:
        text = f"c {operator} a, d {operator} b, {self.WHERE}"
        a, b, c, d = rows_of(query_of("S(a b); T(c d)", text), "maxima")
        assert rises(c, a) != rises(d, b)
        assert falls(c, a) != falls(d, b)

    def test_case_3(self, operator: str) -> None:
        text = f"c {operator} a, b {operator} d, {self.WHERE}"
        a, b, c, d = rows_of(query_of("S(a b); T(c d)", text), "both")
        assert rises(c, a)
        assert rises(b, d)


def test_rows_fit_between_two_constants_where_a_type_is_dense() -> None:
    text = "a < c, b < d, a > 10, b > 10, c > 10, d > 10, a < 20, b < 20, c < 20, d < 20"
    query = query_of("S(a b); T(c d)", text, whole=False, dense="*")
    columns = rows_of(query, "minima", 50)
    assert all(0 < value < 1 for column in columns for value in column)


def test_what_has_finitely_many_values_does_not_grow_with_the_rows() -> None:
    text = "a < c, p < a, c < q, a > 10, p > 10, a < 20, c < 20, q < 20"
    query = query_of("S(a p); T(c q)", text, distinct=False, whole=False, dense="a c")
    a, p, c, q = rows_of(query, "count")
    assert falls(a, c)
    assert len(set(p)) == len(set(q)) == 1


BETWEEN = "".join(f", {name} > 10, {name} < 20" for name in "abcdp")


def test_joins_move_on_both_sides_of_what_stands_still() -> None:
    text = "c <= a, b <= d, b <= p, p <= a" + BETWEEN
    query = query_of("S(a b p); T(c d)", text, whole=False, dense="a b c d")
    a, b, p, c, d = rows_of(query, "both")
    assert rises(c, a)
    assert rises(b, d)
    assert max(d) < min(c)
    assert max(b) <= p[0] <= min(a)


@pytest.mark.parametrize("source", [0, 1])
def test_what_stands_still_between_ordered_joins_leaves_no_room(source: int) -> None:
    """One minimum and one maximum for each value of p are all that must be remembered."""
    text = "b <= p, p <= a, b <= c, c <= a, d = 15" + BETWEEN
    query = query_of("S(a b p); T(c d)", text, whole=False, dense="a b c")
    above, below = Join(3, 0, 2), Join(1, 3, 2)
    joins = (above, below) if source == 0 else (below, above)
    assert not list_violations(query)
    with pytest.raises(ValueError, match="no rows show that both"):
        build_schedule(query, Violation("C3", "both", source, joins), 3)


def test_chains_of_strict_comparisons_find_room() -> None:
    text = "a < x, x < y, y < z, z < c, p < a, q < p, q > 1000000000000000000000"
    query = query_of("S(a x z); T(c y); U(p q)", text, distinct=False)
    (violation, *_) = list_violations(query)
    check(query, violation, build_schedule(query, violation, 9))


def test_a_maximum_is_taken_from_the_last_row_that_joins() -> None:
    """`MAX(a)` with `b < d`: the rows up to k join, and a grows."""
    query = query_of("S(a b); T(d)", "b < d, b > 10, a > 10")
    for pattern, watched in (("maximum", 0), ("minimum", 0), ("minimum", 1)):
        for violation in find_extremum_violations(
            query, watched, cast("Any", pattern), compute_closure(query)
        ):
            check(query, violation, build_schedule(query, violation, 6))


def test_ten_thousand_rows_of_ten_variables_take_seconds() -> None:
    text = "a < c, b < d, e < a, f < d, g = a, c <= h, i > 10, j = 5, a > 10, b > 10, e > 10"
    query = query_of("S(a b e g i); T(c d f h j)", text, whole=False, dense="*")
    (violation, *_) = list_violations(query)
    began = time.process_time()
    assert len(build_schedule(query, violation, 10_000)) == 10_000
    assert time.process_time() - began < 10


def test_what_cannot_be_scheduled_is_refused() -> None:
    query = query_of("S(a); T(c)", "a < c, a > 10", distinct=False)
    (violation, *_) = list_violations(query, "count")
    with pytest.raises(ValueError, match="at least one row"):
        build_schedule(query, violation, 0)
    turned = replace(violation, joins=(Join(1, 0, violation.joins[0].gap),))
    with pytest.raises(ValueError, match="count"):
        build_schedule(query, turned, 3)
    contradiction = replace(query, bounds=(*query.bounds, Bound(1, "<", 5)))
    with pytest.raises(ValueError, match="contradictory"):
        build_schedule(contradiction, violation, 3)


def test_a_finite_variable_never_moves() -> None:
    query = query_of("S(a p)", "a = p, a > 10", "a", finite="p")
    with pytest.raises(ValueError, match="p takes only finitely many values"):
        build_schedule(query, Violation("C1", "output", 0, variable=0, gap=1), 3)


@dataclass(frozen=True)
class Family:
    """What random queries are made of; `between` puts all variables between two constants."""

    whole: bool = True
    dense: float = 0.0
    finite: float = 0.0
    lines: int = 1
    between: bool = False


FAMILIES = {
    "whole": Family(),
    "dense": Family(whole=False, dense=1.0),
    "mixed": Family(whole=False, dense=0.6, finite=0.1),
    "finite": Family(finite=0.2),
    "between": Family(whole=False, dense=0.75, between=True),
    "two lines": Family(whole=False, dense=0.7, lines=2),
}


class Numbers(random.Random):
    """Random queries, contradictory ones too; nothing is taken from the package but its values."""

    def query(self, family: Family) -> Conjunctive:
        streams = self.choice((1, 2, 2, 2, 3, 3))
        variables = tuple(
            Variable(
                source,
                f"{source}{number}",
                self.randrange(family.lines),
                dense=self.random() < family.dense,
                finite=self.random() < family.finite,
            )
            for source in range(streams)
            for number in range(self.choice((1, 2, 2, 3)))
        )
        constants = self.sample((-3, 0, 1, 2, 5, 10**20), self.choice((0, 1, 1, 2, 3)))
        bounds = self._between(variables) if family.between else self._bounds(variables, constants)
        return Conjunctive(
            tuple("STU"[:streams]),
            variables,
            tuple(self._comparisons(variables)),
            tuple(bounds),
            (self.randrange(len(variables)),) if self.random() < 0.3 else (),
            distinct=self.random() < 0.75,
            windowed=frozenset({0}) if self.random() < 0.1 else frozenset(),
            lines=(Line(family.whole),) * family.lines,
        )

    def _between(self, variables: tuple[Variable, ...]) -> Iterator[Bound]:
        for number in range(len(variables)):
            yield Bound(number, ">", 10)
            yield Bound(number, "<", 20)

    def _comparisons(self, variables: tuple[Variable, ...]) -> Iterator[Comparison]:
        for _ in range(self.randrange(1, 8)):
            left, right = self.choices(range(len(variables)), k=2)
            if left != right and variables[left].line == variables[right].line:
                operators: list[Comparator] = ["<", "<", "<=", "<=", "="]
                yield Comparison(left, self.choice(operators), right)

    def _bounds(self, variables: tuple[Variable, ...], constants: list[int]) -> Iterator[Bound]:
        operators: list[BoundComparator] = ["<", "<=", "=", ">=", ">", "<", ">"]
        for _ in range(self.randrange(5) if constants else 0):
            variable = self.randrange(len(variables))
            yield Bound(variable, self.choice(operators), self.choice(constants))


def at_fault(query: Conjunctive, watched: int) -> Iterator[Violation]:
    """All that the checker finds, also for the extrema of a variable."""
    closure = compute_closure(query)
    yield from find_violations(query, closure)
    if closure.roams[watched].any():
        yield from find_extremum_violations(query, watched, "maximum", closure)
        yield from find_extremum_violations(query, watched, "minimum", closure)


@pytest.mark.parametrize("family", FAMILIES)
def test_whatever_is_at_fault_has_a_schedule(family: str) -> None:
    numbers = Numbers(seed(list(FAMILIES).index(family)))
    seen: Counter[str] = Counter()
    for _ in range(case_count(2_000)):
        query = numbers.query(FAMILIES[family])
        for violation in at_fault(query, numbers.randrange(len(query.variables))):
            check(query, violation, build_schedule(query, violation, 5))
            seen[violation.pattern] += 1
    assert len(seen) == 8, seen
    assert min(seen.values()) >= at_least(10), seen
