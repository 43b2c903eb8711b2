"""Clauses over four INT attributes, in SQL and in the logic of z3 at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import z3

from headgate.schema import INT, Attribute, Stream
from tests.strategies import Dice, pick

INTS = Stream("ints", tuple(Attribute(name, INT) for name in "abcd"))
VALUES = {name: z3.Int(name) for name in "abcd"}
NULLS = {name: z3.Bool(f"{name} is null") for name in "abcd"}
OPERATORS: dict[str, Callable[[z3.ArithRef, z3.ArithRef | int], z3.BoolRef]] = {
    "=": lambda a, b: z3.And(a <= b, a >= b),
    "<>": lambda a, b: z3.Or(a < b, a > b),
    "<": z3.ArithRef.__lt__,
    "<=": z3.ArithRef.__le__,
    ">": z3.ArithRef.__gt__,
    ">=": z3.ArithRef.__ge__,
}
CONSTANTS = (0, 1, 2, 3, 5, -1, 2**31 - 1, -(2**31), 2**31)


Logic = Callable[[], z3.BoolRef]


@dataclass(frozen=True)
class Formula:
    """A clause, and in z3's logic when it is TRUE and when FALSE; NULL is neither.

    The logic is written only where it is asked for, since z3 is slow to build.
    """

    text: str
    true: Logic
    false: Logic


class Formulas:
    """Clauses over four INT attributes, in SQL and in logic at once."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    def formula(self, depth: int) -> Formula:
        kind = self.dice.below(8) if depth else 0
        if kind < 2:
            return self.atom()
        if kind < 7:
            parts = [self.formula(depth - 1) for _ in range(2 + self.dice.below(2))]
            return conjunction(parts) if kind < 5 else disjunction(parts)
        part = self.formula(depth - 1)
        if self.dice.below(2):
            return Formula(f"NOT ({part.text})", part.false, part.true)
        return Formula(
            f"({part.text}) IS NULL",
            lambda: z3.Not(z3.Or(part.true(), part.false())),
            lambda: z3.Or(part.true(), part.false()),
        )

    def atom(self) -> Formula:
        name, kind = pick(self.dice, "abcd"), self.dice.below(8)
        value, null = VALUES[name], NULLS[name]
        if kind == 7:
            return Formula(f"{name} IS NULL", lambda: null, lambda: z3.Not(null))
        if kind == 6:
            low, high = pick(self.dice, CONSTANTS), pick(self.dice, CONSTANTS)
            text = f"{name} BETWEEN {low} AND {high}"
            return known(text, lambda: z3.And(value >= low, value <= high), null)
        operator = pick(self.dice, tuple(OPERATORS))
        compared = OPERATORS[operator]
        if kind < 3:
            constant = pick(self.dice, CONSTANTS)
            return known(f"{name} {operator} {constant}", lambda: compared(value, constant), null)
        other = pick(self.dice, "abcd")
        test = partial(compared, value, VALUES[other])
        return known(f"{name} {operator} {other}", test, null, NULLS[other])


def conjunction(parts: list[Formula]) -> Formula:
    text = " AND ".join(f"({part.text})" for part in parts)
    return Formula(
        text,
        lambda: z3.And(*(part.true() for part in parts)),
        lambda: z3.Or(*(part.false() for part in parts)),
    )


def disjunction(parts: list[Formula]) -> Formula:
    text = " OR ".join(f"({part.text})" for part in parts)
    return Formula(
        text,
        lambda: z3.Or(*(part.true() for part in parts)),
        lambda: z3.And(*(part.false() for part in parts)),
    )


def known(text: str, test: Logic, *nulls: z3.BoolRef) -> Formula:
    """A test that is NULL where one of its attributes is."""
    return Formula(
        text,
        lambda: z3.And(test(), *map(z3.Not, nulls)),
        lambda: z3.And(z3.Not(test()), *map(z3.Not, nulls)),
    )


LIMITS = [z3.And(value >= -(2**31), value < 2**31) for value in VALUES.values()]


def is_possible(formula: Formula) -> bool:
    """Does z3 find values for which the formula is TRUE?"""
    solver = z3.Solver()
    solver.add(*LIMITS, formula.true())
    answer = solver.check()
    assert answer != z3.unknown
    return answer == z3.sat
