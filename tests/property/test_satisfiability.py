"""Satisfiability: "yes" shows a row, "no" is confirmed by z3, "unknown" is rare."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from headgate.predicate import Column, decide_satisfiability, evaluate
from headgate.schema import Schema, Stream
from headgate.sql import Script, parse_where
from tests.boundaries import STREAM, Row
from tests.boundaries import VALUES as CHOICES
from tests.corpus import SHARDS, SIZE, cases
from tests.oracles.formulas import INTS, Formula, Formulas, conjunction, is_possible
from tests.scale import case_count, seed
from tests.strategies import Clauses, Seeded


def check(formula: Formula) -> str:
    """The answer, confirmed: a "yes" by its row, a "no" by z3."""
    predicate = parse_where(formula.text, INTS)
    satisfiability = decide_satisfiability(predicate)
    if satisfiability.answer == "yes":
        assert satisfiability.witness is not None
        assert evaluate(predicate, satisfiability.witness) is True, formula.text
    if satisfiability.answer == "no":
        assert not is_possible(formula), formula.text
    return satisfiability.answer


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_satisfiable(shard: int) -> None:
    """On integers with comparisons among them, every "no" is z3's too, and few stay open."""
    dice, count = Seeded(seed(shard)), case_count(500)
    answers = Counter(check(Formulas(dice).formula(3)) for _ in range(count))
    assert answers["yes"] > count // 4
    assert answers["no"] > count // 40
    assert answers["unknown"] <= count // 100


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_contradictions(shard: int) -> None:
    """The same for long conjunctions, most of which contradict themselves."""
    dice, count = Seeded(seed(shard) + 100), case_count(250)
    answers = Counter(
        check(conjunction([Formulas(dice).formula(1) for _ in range(4 + dice.below(5))]))
        for _ in range(count)
    )
    assert answers["no"] > count // 4
    assert answers["unknown"] <= count // 50


@pytest.mark.parametrize("shard", SHARDS)
def test_witness_is_true(shard: int) -> None:
    """Over all types, a "yes" carries a row for which the predicate is TRUE, with all its columns,
    each of its type; and no row that is TRUE ever meets a "no"."""
    answers = Counter[str]()
    for case in cases(shard):
        satisfiability = decide_satisfiability(case.predicate)
        answers[satisfiability.answer] += 1
        if satisfiability.answer == "yes":
            assert satisfiability.witness is not None
            assert evaluate(case.predicate, satisfiability.witness) is True, case.text
        if any(evaluate(case.predicate, row) is True for row in case.rows):
            assert satisfiability.answer != "no", case.text
        assert (satisfiability.answer == "yes") != bool(satisfiability.reason), case.text
    assert answers["unknown"] <= case_count(SIZE) // 50, answers


SMALL = (("side",), ("side", "client.name"), ("qty", "ratio"), ("price", "wide"), ("day", "seen"))


@pytest.mark.parametrize("names", SMALL)
def test_oracle_no_row_contradicts_a_no(names: tuple[str, ...]) -> None:
    """On one or two attributes, a "no" means that of all the values near the constants none,
    NULL included, makes the clause TRUE."""
    attributes = [STREAM[name] for name in names]
    universe: list[Row] = [
        dict(zip(names, values, strict=True))
        for values in product(*((None, *CHOICES[a.type.sql]) for a in attributes))
    ]
    dice, refuted = Seeded(seed(len(names))), 0
    for _ in range(case_count(600)):
        clauses = Clauses(dice, attributes)
        clauses.palette = attributes
        text = " AND ".join(f"({clauses.condition(1)})" for _ in range(2 + dice.below(2)))
        predicate = parse_where(text, STREAM)
        if decide_satisfiability(predicate).answer == "no":
            refuted += 1
            assert not any(evaluate(predicate, row) is True for row in universe), text
    assert refuted > case_count(50)


@pytest.mark.parametrize(
    "text, answer",
    [
        ("side LIKE 'a%' AND side = 'az'", "yes"),
        ("side LIKE 'a%' AND side > 'az'", "yes"),
        ("side LIKE 'a%' AND side >= 'b'", "no"),
        ("side LIKE 'a%' AND side < 'a'", "no"),
        ("side LIKE '\U0010ffff%' AND side > '\U0010ffff'", "yes"),
        ("side LIKE 'ab' AND side <> 'ab'", "no"),
        ("side NOT LIKE 'a%' AND side = 'b'", "yes"),
        ("side < ''", "no"),
        ("ratio > CAST('Infinity' AS DOUBLE)", "yes"),
        ("ratio > CAST('NaN' AS DOUBLE)", "no"),
        ("qty > volume AND volume > 2147483646", "no"),
        ("ratio = volume AND volume = 9007199254740993", "no"),
        ("price = ratio AND ratio = 0.005", "no"),
        ("day = seen AND seen = '2024-02-29 12:30:00'", "no"),
        ("day = seen AND seen = '2024-02-29'", "yes"),
        ("flag AND NOT flag", "no"),
        ("flag = open AND open <> flag", "no"),
        ("(qty > 3) IS NULL AND qty IS NOT NULL", "no"),
        ("qty IS NULL AND lots = 1", "yes"),
        ("NULL OR FALSE", "no"),
        ("TRUE", "yes"),
    ],
)
def test_answers(text: str, answer: str) -> None:
    """Answers that can be checked by eye, over all types."""
    predicate = parse_where(text, STREAM)
    satisfiability = decide_satisfiability(predicate)
    assert satisfiability.answer == answer
    assert answer == "no" or evaluate(predicate, satisfiability.witness or {}) is True


def test_domains_count() -> None:
    """A CHECK leaves fewer values, and the answer knows."""
    text = "CREATE STREAM s (side STRING CHECK (side IN ('buy', 'sell')), qty INT CHECK (qty > 0))"
    (stream,) = Script(Schema()).read(text)
    assert isinstance(stream, Stream)
    domains = {Column(a.name, a.type): a.domain for a in stream}
    for where, answer in (
        ("side = 'hold'", "no"),
        ("side LIKE 'h%'", "no"),
        ("side <> 'buy' AND side <> 'sell'", "no"),
        ("side > 'buy'", "yes"),
        ("qty <= 0", "no"),
        ("qty <= 0 OR qty IS NULL", "yes"),
    ):
        satisfiability = decide_satisfiability(parse_where(where, stream), domains)
        assert satisfiability.answer == answer, where


def test_no_row_without_a_required_value() -> None:
    """A NOT NULL column whose CHECK allows nothing leaves no row, also where OR avoids it."""
    text = "CREATE STREAM s (a INT NOT NULL CHECK (a > 3 AND a < 2), b INT)"
    (stream,) = Script(Schema()).read(text)
    assert isinstance(stream, Stream)
    column = Column("a", stream["a"].type)
    where = parse_where("a = 1 OR b = 1", stream)
    result = decide_satisfiability(where, {column: stream["a"].domain}, [column])
    assert result.answer == "no"
    assert "`a`" in result.reason


def test_a_small_budget_is_no_answer() -> None:
    """Past its budget the search says so, and never "no"."""
    text = " AND ".join(f"(a <> {n} OR b <> {n} OR c = d)" for n in range(12)) + " AND a <> a"
    satisfiability = decide_satisfiability(parse_where(text, INTS), budget=5)
    assert satisfiability.answer in ("unknown", "no")
    assert satisfiability.answer == "unknown" or "budget" not in satisfiability.reason
    hard = " AND ".join(f"(a = {n} OR b = {n} OR c = {n})" for n in range(40))
    satisfiability = decide_satisfiability(parse_where(hard, INTS), budget=100)
    assert satisfiability.answer == "unknown"
    assert "100 steps" in satisfiability.reason
