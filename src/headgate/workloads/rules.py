"""WHERE clauses like those of alert rules: a few predicates each, over hundreds of attributes.

Every attribute is as likely as any other, and constants are drawn from wide ranges, so that few
clauses share a predicate: the hard case for a reader that remembers what it has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta

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
from headgate.workloads.dice import Dice, weighted

PRICE = DecimalType(10, 2)
TYPES: tuple[Type, ...] = (INT, STRING, DOUBLE, PRICE, STRING, BIGINT, DATE, INT, STRING, BOOLEAN)
WORDS = (
    "alpha amber atlas basin birch cedar coast coral delta drift ember fjord flint grove harbor "
    "heron inlet ivory jetty karst lagoon larch marsh mesa north ocean pearl quartz reef river "
    "shoal slate spruce summit tidal umber valley willow yarrow zephyr"
).split()
FIRST_DAY = date(2020, 1, 1)
DAYS = 2_000

GROUPED = 0.25  # of the clauses have an OR in parentheses
NEGATED = 0.12  # of the clauses have a NOT before a predicate or before their OR
ORDERED = weighted(
    {"=": 5, "<>": 1, "<": 2, "<=": 2, ">": 2, ">=": 2, "BETWEEN": 3, "IN": 2, "IS NULL": 1}
)
TEXTUAL = weighted({"=": 8, "<>": 2, "IN": 4, "NOT IN": 1, "LIKE": 4, "IS NULL": 1})
LOGICAL = weighted({"=": 9, "IS NULL": 1})


def rule_stream(attributes: int = 400) -> Stream:
    """The stream `events` with attributes a0, a1, …, whose types repeat every ten.

    >>> [attribute.type.sql for attribute in rule_stream(4)]
    ['INT', 'STRING', 'DOUBLE', 'DECIMAL(10, 2)']
    """
    named = (Attribute(f"a{i}", TYPES[i % len(TYPES)]) for i in range(attributes))
    return Stream("events", tuple(named))


def where_clauses(
    count: int, attributes: int = 400, predicates: tuple[int, int] = (3, 7), *, seed: int
) -> Iterator[str]:
    """`count` WHERE clauses on `rule_stream(attributes)`, of so many predicates from–to.

    Law: the first n clauses of a seed are the same whatever the count.

    >>> for clause in where_clauses(2, seed=3):
    ...     print(clause)
    """
    dice = Dice(seed)
    writers = [(f"a{i}", _writer(TYPES[i % len(TYPES)])) for i in range(attributes)]
    for _ in range(count):
        parts = []
        for _ in range(dice.whole(*predicates)):
            name, write = dice.one_of(writers)
            parts.append(write(name, dice))
        yield _joined(parts, dice)


def _joined(parts: list[str], dice: Dice) -> str:
    """All predicates by AND, or two or three of them first by OR; now and then one negated."""
    if len(parts) > 2 and dice.chance(GROUPED):
        size = dice.whole(2, 3)
        parts = [f"({' OR '.join(parts[:size])})", *parts[size:]]
        parts.append(parts.pop(0)) if dice.chance(0.5) else None
    if dice.chance(NEGATED):
        at = dice.whole(0, len(parts) - 1)
        parts[at] = f"NOT {parts[at]}"
    return " AND ".join(parts)


Writer = Callable[[str, Dice], str]


def _writer(type_: Type) -> Writer:
    """Writes predicates on an attribute of a type."""
    constant = _CONSTANTS[type_]
    operators = TEXTUAL if type_ == STRING else LOGICAL if type_ == BOOLEAN else ORDERED
    return lambda name, dice: _predicate(name, dice.one_of(operators), constant, dice)


def _predicate(name: str, operator: str, constant: Callable[[Dice], str], dice: Dice) -> str:
    if operator == "IS NULL":
        return f"{name} IS NOT NULL" if dice.chance(0.5) else f"{name} IS NULL"
    if operator == "LIKE":
        return f"{name} LIKE '{_pattern(dice)}'"
    if operator in ("IN", "NOT IN"):
        listed = ", ".join(constant(dice) for _ in range(dice.whole(2, 5)))
        return f"{name} {operator} ({listed})"
    if operator == "BETWEEN":
        return f"{name} BETWEEN {constant(dice)} AND {constant(dice)}"
    return f"{name} {operator} {constant(dice)}"


def _pattern(dice: Dice) -> str:
    word = dice.one_of(WORDS)
    return dice.one_of((f"{word}%", f"%{word}%", f"%-{dice.whole(0, 99)}", f"{word}-_"))


def _word(dice: Dice) -> str:
    return f"'{dice.one_of(WORDS)}-{dice.whole(0, 99)}'"


def _date(dice: Dice) -> str:
    return f"DATE '{FIRST_DAY + timedelta(dice.whole(0, DAYS))}'"


_CONSTANTS: dict[Type, Callable[[Dice], str]] = {
    INT: lambda dice: str(dice.whole(-100, 10_000)),
    BIGINT: lambda dice: str(dice.whole(0, 10**12)),
    DOUBLE: lambda dice: f"{100 * dice.fraction():.3f}",
    PRICE: lambda dice: f"{10_000 * dice.fraction():.2f}",
    STRING: _word,
    DATE: _date,
    BOOLEAN: lambda dice: "TRUE" if dice.chance(0.5) else "FALSE",
}
