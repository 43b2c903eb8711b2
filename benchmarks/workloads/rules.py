"""WHERE clauses like those of alert rules: a few predicates each, over hundreds of attributes.

Constants are such as people choose: one of forty words, a whole number below a thousand, a day of
five years, but also prices to the cent and account numbers, of which hardly two are the same. Every
attribute is as likely as any other. So of a million clauses no two are the same, and half of their
five million predicates have occurred before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta

from benchmarks.workloads.dice import Dice, repeat_by_weight
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Attribute,
    DecimalType,
    Stream,
    Type,
)

PRICE = DecimalType(10, 2)
TYPES: tuple[Type, ...] = (INT, STRING, DOUBLE, PRICE, STRING, BIGINT, DATE, INT, STRING, BOOLEAN)
WORDS = (
    "alpha amber atlas basin birch cedar coast coral delta drift ember fjord flint grove harbor "
    "heron inlet ivory jetty karst lagoon larch marsh mesa north ocean pearl quartz reef river "
    "shoal slate spruce summit tidal umber valley willow yarrow zephyr"
).split()
FIRST_DAY = date(2020, 1, 1)
DAYS = 5 * 365

GROUPED = 0.25  # of the clauses have an OR in parentheses
NEGATED = 0.12  # of the clauses have a NOT before a predicate or before their OR
ORDERED = repeat_by_weight(
    {"=": 5, "<>": 1, "<": 2, "<=": 2, ">": 2, ">=": 2, "BETWEEN": 3, "IN": 2, "IS NULL": 1}
)
TEXTUAL = repeat_by_weight({"=": 8, "<>": 2, "IN": 4, "NOT IN": 1, "LIKE": 4, "IS NULL": 1})
LOGICAL = repeat_by_weight({"=": 9, "IS NULL": 1})

Writer = Callable[[str, Dice], str]
Constant = Callable[[float], str]  # a fraction of the way through the type's usual values


def make_rule_stream(attributes: int = 400) -> Stream:
    """Return the stream `events` with attributes a0, a1, …, whose types repeat every ten.

    >>> [attribute.type.sql for attribute in make_rule_stream(4)]
    ['INT', 'STRING', 'DOUBLE', 'DECIMAL(10, 2)']
    """
    named = (Attribute(f"a{i}", TYPES[i % len(TYPES)]) for i in range(attributes))
    return Stream("events", tuple(named))


def generate_where_clauses(
    count: int, attributes: int = 400, predicates: tuple[int, int] = (3, 7), *, seed: int
) -> Iterator[str]:
    """Yield `count` WHERE clauses on the stream of rules, of so many predicates from–to.

    Law: the first n clauses of a seed are the same whatever the count.

    >>> next(generate_where_clauses(1, seed=3))
    "a94 LIKE 'mesa%' AND a173 <= 1597.39 AND a293 = 3912.28"
    """
    dice = Dice(seed)
    writers = [(f"a{i}", _writer(TYPES[i % len(TYPES)])) for i in range(attributes)]
    for _ in range(count):
        parts = []
        for _ in range(dice.whole(*predicates)):
            name, write = dice.one_of(writers)
            parts.append(write(name, dice))
        yield _join_predicates(parts, dice)


def _join_predicates(parts: list[str], dice: Dice) -> str:
    """Join predicates by AND, two or three of them first by OR, now and then one negated."""
    if len(parts) > 2 and dice.chance(GROUPED):
        size = dice.whole(2, 3)
        either = f"({' OR '.join(parts[:size])})"
        others = parts[size:]
        parts = [either, *others] if dice.chance(0.5) else [*others, either]
    if dice.chance(NEGATED):
        at = dice.whole(0, len(parts) - 1)
        parts[at] = f"NOT {parts[at]}"
    return " AND ".join(parts)


def _writer(type_: Type) -> Writer:
    """Write predicates on an attribute of a type."""
    constant = _CONSTANTS[type_]
    operators = TEXTUAL if type_ == STRING else LOGICAL if type_ == BOOLEAN else ORDERED
    return lambda name, dice: _predicate(name, dice.one_of(operators), constant, dice)


def _predicate(name: str, operator: str, constant: Constant, dice: Dice) -> str:
    if operator == "IS NULL":
        return f"{name} IS NOT NULL" if dice.chance(0.5) else f"{name} IS NULL"
    if operator == "LIKE":
        word = dice.one_of(WORDS)
        return f"{name} LIKE '{dice.one_of((f'{word}%', f'%{word}', f'%{word[:3]}%'))}'"
    if operator in ("IN", "NOT IN"):
        listed = ", ".join(constant(dice.fraction()) for _ in range(dice.whole(2, 5)))
        return f"{name} {operator} ({listed})"
    if operator == "BETWEEN":
        low, high = sorted((dice.fraction(), dice.fraction()))
        return f"{name} BETWEEN {constant(low)} AND {constant(high)}"
    return f"{name} {operator} {constant(dice.fraction())}"


_CONSTANTS: dict[Type, Constant] = {
    INT: lambda at: str(int(1_000 * at)),
    BIGINT: lambda at: str(int(10**12 * at)),
    DOUBLE: lambda at: f"{100 * at:.1f}",
    PRICE: lambda at: f"{10_000 * at:.2f}",
    STRING: lambda at: f"'{WORDS[int(len(WORDS) * at)]}'",
    DATE: lambda at: f"DATE '{FIRST_DAY + timedelta(int(DAYS * at))}'",
    BOOLEAN: lambda at: "TRUE" if at < 0.5 else "FALSE",
}
