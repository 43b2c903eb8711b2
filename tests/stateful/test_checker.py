"""The fast checker: it agrees with the definition, keeps the laws, and is fast."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pytest

from headgate.stateful.analysis.theory import checker, definition
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
from headgate.stateful.analysis.theory.definition import iter_total_orders
from headgate.stateful.analysis.theory.relations import compute_order, keep_all
from tests.scale import at_least, case_count, seed
from tests.stateful.random_queries import FAMILIES, Family, queries

EXTREMA: tuple[Literal["maximum", "minimum"], ...] = ("maximum", "minimum")
COMPARATORS: tuple[Comparator, ...] = ("<", "<=", "=")
BOUND_COMPARATORS: tuple[BoundComparator, ...] = ("<", "<=", "=", ">=", ">")


@pytest.mark.parametrize("family", FAMILIES)
def test_agree_with_the_definition(family: str) -> None:
    """Both checkers give one verdict, and both verdicts occur often."""
    count, bounded = case_count(3_000), 0
    for query in queries(FAMILIES[family], seed(3), count):
        verdict = definition.is_bounded(query)
        assert checker.is_bounded(query) == verdict, query
        bounded += verdict
    assert 0.2 < bounded / count < 0.9


def test_agree_on_self_joins_without_distinct() -> None:
    """A stream that occurs twice and keeps duplicates counts as two."""
    for query in queries(Family(self_joins=True), seed(4), case_count(1_000)):
        preserving = replace(query, distinct=False)
        assert checker.is_bounded(preserving) == definition.is_bounded(preserving), query


def test_self_joins_prove_no_less_than_without() -> None:
    """With DISTINCT, leaving out covered occurrences only ever adds to what is bounded."""
    more = 0
    for query in queries(Family(self_joins=True), seed(5), case_count(1_000)):
        distinct = replace(query, distinct=True)
        verdict = definition.is_bounded(distinct)
        assert verdict or not checker.is_bounded(distinct), query
        more += verdict and not checker.is_bounded(distinct)
    assert more


@pytest.mark.parametrize("family", ["integers", "at most", "mixed", "windows", "two lines"])
def test_agree_on_extrema(family: str) -> None:
    """MAX and MIN, where the query itself is bounded: else Theorem 8.6 says no before C3 does."""
    count = 0
    for written in queries(FAMILIES[family], seed(6), case_count(600)):
        query = replace(written, distinct=True, outputs=())
        if not definition.is_bounded(query):
            continue
        closure = compute_closure(query)
        for variable in sorted({c.left for c in query.comparisons}):
            for pattern in EXTREMA:
                result = checker.find_extremum_violations(query, variable, pattern, closure)
                verdict = definition.is_extremum_bounded(query, variable, pattern)
                assert verdict == (next(result, None) is None), (query, variable, pattern)
                count += 1
    assert count > at_least(500)


@pytest.mark.parametrize("family", FAMILIES)
def test_agree_on_what_is_at_fault(family: str) -> None:
    """Both name the same streams for C1, and for C3 where no order makes sides of a join equal."""
    for query in queries(FAMILIES[family], seed(7), case_count(400)):
        if len(query.streams) == 1:
            continue
        ours = {(v.condition, v.source) for v in checker.find_violations(query)}
        theirs = {
            (violation.condition, violation.source)
            for order in iter_total_orders(query)
            for violation in definition.find_order_violations(order, keep_all(query))
        }
        if any(condition == "C2" for condition, _ in theirs):
            assert {s for c, s in ours if c == "C1"} == {s for c, s in theirs if c == "C1"}, query
        else:
            assert ours == theirs, query


def permuted(query: Conjunctive, numbers: random.Random) -> Conjunctive:
    """Other names, streams in another order, variables in another order."""
    sources = numbers.sample(range(len(query.streams)), len(query.streams))
    places = numbers.sample(range(len(query.variables)), len(query.variables))
    variables = [
        replace(variable, source=sources[variable.source], name=f"n{number}")
        for number, variable in enumerate(query.variables)
    ]
    comparisons = [
        replace(c, left=places[c.left], right=places[c.right]) for c in query.comparisons
    ]
    bounds = [replace(b, variable=places[b.variable]) for b in query.bounds]
    numbers.shuffle(comparisons)
    return replace(
        query,
        streams=tuple(f"x{number}" for number in range(len(query.streams))),
        variables=tuple(
            v for _, v in sorted(zip(places, variables, strict=True), key=lambda p: p[0])
        ),
        comparisons=tuple(comparisons),
        bounds=tuple(bounds[::-1]),
        outputs=tuple(places[output] for output in query.outputs),
        windowed=frozenset(sources[source] for source in query.windowed),
    )


def shifted(query: Conjunctive, numbers: random.Random) -> Conjunctive:
    distance = numbers.choice((-7, 1, 1 << 53, -(1 << 70)))
    bounds = (replace(bound, constant=bound.constant + distance) for bound in query.bounds)
    return replace(query, bounds=tuple(bounds))


def with_implied(query: Conjunctive, numbers: random.Random) -> Conjunctive:
    """One more comparison that follows, or a weaker bound with a constant of its own."""
    order = compute_order(query)
    pairs = [
        (x, y)
        for x in range(len(query.variables))
        for y in range(len(query.variables))
        if x != y and order.at_most[x] >> y & 1
    ]
    if query.bounds and (not pairs or numbers.random() < 0.5):
        bound = numbers.choice(query.bounds)
        far = numbers.choice((1, 2, 50))
        if bound.operator in ("<", "<=", "="):
            weaker = Bound(bound.variable, "<=", bound.constant + far)
        else:
            weaker = Bound(bound.variable, ">=", bound.constant - far)
        return replace(query, bounds=(*query.bounds, weaker))
    if not pairs:
        return query
    x, y = numbers.choice(pairs)
    operator: Comparator = "<" if order.below[x] >> y & 1 else "<="
    return replace(query, comparisons=(*query.comparisons, Comparison(x, operator, y)))


@pytest.mark.parametrize("change", [permuted, shifted, with_implied])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_verdict_stays(family: str, change: object) -> None:
    """Other names and orders, constants moved together and implied conditions decide nothing."""
    assert callable(change)
    numbers = random.Random(seed(8))
    for query in queries(FAMILIES[family], seed(8), case_count(300)):
        changed = change(query, numbers)
        assert checker.is_bounded(changed) == checker.is_bounded(query), (query, changed)


def _filters(query: Conjunctive, numbers: random.Random) -> Iterator[Conjunctive]:
    """The query with one more comparison within a stream, and with one more bound."""
    x, y = numbers.randrange(len(query.variables)), numbers.randrange(len(query.variables))
    one, other = query.variables[x], query.variables[y]
    if x != y and (one.source, one.line) == (other.source, other.line):
        comparison = Comparison(x, numbers.choice(COMPARATORS), y)
        yield replace(query, comparisons=(*query.comparisons, comparison))
    bound = Bound(x, numbers.choice(BOUND_COMPARATORS), numbers.randrange(-9, 33))
    yield replace(query, bounds=(*query.bounds, bound))


@pytest.mark.parametrize("family", FAMILIES)
def test_more_filters_and_windows_never_hurt(family: str) -> None:
    """Filters, row windows, and DISTINCT in a join never turn bounded into unbounded."""
    numbers = random.Random(seed(9))
    for query in queries(FAMILIES[family], seed(9), case_count(400)):
        if not checker.is_bounded(query):
            continue
        for filtered in _filters(query, numbers):
            assert checker.is_bounded(filtered), (query, filtered)
        window = numbers.randrange(len(query.streams))
        assert checker.is_bounded(replace(query, windowed=query.windowed | {window})), query
        if len(query.streams) > 1:
            assert checker.is_bounded(replace(query, distinct=True)), query


def wide(numbers: random.Random, *, whole: bool, distinct: bool) -> Conjunctive:
    """6 streams of 8 variables each, 40 comparisons and 20 bounds, that contradict nothing."""
    variables = tuple(Variable(v // 8, f"a{v % 8}", dense=not whole) for v in range(48))
    hidden = numbers.sample([value for value in range(480) if value % 10], 48)
    comparisons: list[Comparison] = []
    while len(comparisons) < 40:
        left, right = sorted(numbers.sample(range(48), 2), key=lambda v: hidden[v])
        comparisons.append(Comparison(left, numbers.choice(("<", "<=")), right))
    bounds = tuple(
        Bound(v, ">" if hidden[v] > 10 * constant else "<", 10 * constant)
        for v, constant in ((numbers.randrange(48), numbers.randrange(48)) for _ in range(20))
    )
    return Conjunctive(
        tuple("stuvwx"), variables, tuple(comparisons), bounds, (), distinct, lines=(Line(whole),)
    )


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("distinct", [True, False])
def test_wide_queries_take_less_than_a_second(whole: bool, distinct: bool) -> None:
    """6 streams, 48 variables, 60 conditions: the best of three, with all violations listed."""
    numbers = random.Random(11)
    for _ in range(3):
        query = wide(numbers, whole=whole, distinct=distinct)
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            violations = list(checker.find_violations(query))
            taken.append(time.perf_counter() - start)
        assert violations
        assert min(taken) < 1
