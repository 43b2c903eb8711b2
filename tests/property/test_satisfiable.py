"""Satisfiability: "yes" shows a row, "no" is confirmed by z3, "unknown" is rare."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
import z3

from headgate.predicate import Column, evaluate, satisfiable
from headgate.schema import INT, Attribute, Schema, Stream
from headgate.sql import Script, parse_where
from tests.corpus import SHARDS, cases
from tests.scale import many, seed
from tests.strategies import Dice, Seeded, pick

INTS = Stream("ints", tuple(Attribute(name, INT) for name in "abcd"))
VALUES = {name: z3.Int(name) for name in "abcd"}
NULLS = {name: z3.Bool(f"{name} is null") for name in "abcd"}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
CONSTANTS = (0, 1, 2, 3, 5, -1, 2**31 - 1, -(2**31), 2**31)


@dataclass(frozen=True)
class Formula:
    """A clause, and when it is TRUE and when FALSE; NULL is neither."""

    text: str
    true: z3.BoolRef
    false: z3.BoolRef


class Formulas:
    """Clauses over four INT attributes, in SQL and in z3's logic at once."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    def formula(self, depth: int) -> Formula:
        kind = self.dice.below(8) if depth else 0
        if kind < 2:
            return self.atom()
        if kind < 7:
            parts = [self.formula(depth - 1) for _ in range(2 + self.dice.below(2))]
            word = "AND" if kind < 5 else "OR"
            text = f" {word} ".join(f"({part.text})" for part in parts)
            true, false = [p.true for p in parts], [p.false for p in parts]
            if word == "AND":
                return Formula(text, z3.And(*true), z3.Or(*false))
            return Formula(text, z3.Or(*true), z3.And(*false))
        part = self.formula(depth - 1)
        if self.dice.below(2):
            return Formula(f"NOT ({part.text})", part.false, part.true)
        unknown = z3.And(z3.Not(part.true), z3.Not(part.false))
        return Formula(f"({part.text}) IS NULL", unknown, z3.Not(unknown))

    def atom(self) -> Formula:
        name, kind = pick(self.dice, "abcd"), self.dice.below(8)
        value, null = VALUES[name], NULLS[name]
        if kind == 7:
            return Formula(f"{name} IS NULL", null, z3.Not(null))
        if kind == 6:
            low, high = pick(self.dice, CONSTANTS), pick(self.dice, CONSTANTS)
            text = f"{name} BETWEEN {low} AND {high}"
            return known(text, z3.And(value >= low, value <= high), [null])
        operator = pick(self.dice, OPERATORS)
        if kind < 3:
            constant = pick(self.dice, CONSTANTS)
            return known(
                f"{name} {operator} {constant}", compared(value, operator, constant), [null]
            )
        other = pick(self.dice, "abcd")
        test = compared(value, operator, VALUES[other])
        return known(f"{name} {operator} {other}", test, [null, NULLS[other]])


def compared(left: z3.ArithRef, operator: str, right: z3.ArithRef | int) -> z3.BoolRef:
    tests = {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return tests[operator]


def known(text: str, test: z3.BoolRef, nulls: list[z3.BoolRef]) -> Formula:
    """A test that is NULL where one of its attributes is."""
    present = [z3.Not(null) for null in nulls]
    return Formula(text, z3.And(test, *present), z3.And(z3.Not(test), *present))


LIMITS = [z3.And(value >= -(2**31), value < 2**31) for value in VALUES.values()]


def z3_says(formula: Formula) -> bool:
    solver = z3.Solver()
    solver.add(*LIMITS, formula.true)
    answer = solver.check()
    assert answer != z3.unknown
    return bool(answer == z3.sat)


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_satisfiable(shard: int) -> None:
    """On integers with comparisons among them, every answer is z3's, and few stay open."""
    dice, answers = Seeded(seed(shard)), Counter[str]()
    for _ in range(many(400)):
        formula = Formulas(dice).formula(3)
        found = satisfiable(parse_where(formula.text, INTS))
        answers[found.answer] += 1
        if found.answer == "yes":
            assert found.witness is not None
            assert evaluate(parse_where(formula.text, INTS), found.witness) is True, formula.text
        assert found.answer == "unknown" or (found.answer == "yes") == z3_says(formula), (
            formula.text
        )
    assert answers["no"] > many(40)
    assert answers["yes"] > many(100)
    assert answers["unknown"] <= many(400) // 100


@pytest.mark.parametrize("shard", SHARDS)
def test_oracle_contradictions(shard: int) -> None:
    """The same for long conjunctions, most of which contradict themselves."""
    dice, answers = Seeded(seed(shard) + 100), Counter[str]()
    for _ in range(many(150)):
        parts = [Formulas(dice).formula(1) for _ in range(4 + dice.below(5))]
        text = " AND ".join(f"({part.text})" for part in parts)
        whole = Formula(text, z3.And(*(p.true for p in parts)), z3.Or(*(p.false for p in parts)))
        found = satisfiable(parse_where(text, INTS))
        answers[found.answer] += 1
        assert found.answer == "unknown" or (found.answer == "yes") == z3_says(whole), text
    assert answers["no"] > many(30)
    assert answers["unknown"] <= many(150) // 20


@pytest.mark.parametrize("shard", SHARDS)
def test_witness_is_true(shard: int) -> None:
    """Over all types, a "yes" carries a row for which the predicate is TRUE, with all its columns,
    each of its type; and no row that is TRUE ever meets a "no"."""
    answers = Counter[str]()
    for case in cases(shard):
        found = satisfiable(case.predicate)
        answers[found.answer] += 1
        if found.answer == "yes":
            assert found.witness is not None
            assert evaluate(case.predicate, found.witness) is True, case.text
        if any(evaluate(case.predicate, row) is True for row in case.rows):
            assert found.answer != "no", case.text
        assert (found.answer == "yes") != bool(found.reason), case.text
    assert answers["unknown"] <= len(cases(shard)) // 50, answers


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
        found = satisfiable(parse_where(where, stream), domains)
        assert found.answer == answer, where


def test_a_small_budget_is_no_answer() -> None:
    """Past its budget the search says so, and never "no"."""
    text = " AND ".join(f"(a <> {n} OR b <> {n} OR c = d)" for n in range(12)) + " AND a <> a"
    found = satisfiable(parse_where(text, INTS), budget=5)
    assert found.answer in ("unknown", "no")
    assert found.answer == "unknown" or "budget" not in found.reason
    hard = " AND ".join(f"(a = {n} OR b = {n} OR c = {n})" for n in range(40))
    found = satisfiable(parse_where(hard, INTS), budget=100)
    assert found.answer == "unknown"
    assert "100 steps" in found.reason
