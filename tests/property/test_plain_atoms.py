"""Atoms in their commonest spelling mean what the general way says they mean."""

from __future__ import annotations

from random import Random

from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Attribute,
    DecimalType,
    Stream,
)
from headgate.sql import fast
from headgate.sql.scope import Scope

TYPES = {
    "i": INT,
    "l": BIGINT,
    "d": DOUBLE,
    "e": DecimalType(10, 2),
    "w": DecimalType(38, 0),
    "z": DecimalType(2, 2),
    "s": STRING,
    "t": DATE,
    "m": TIMESTAMP,
    "b": BOOLEAN,
    "nan": DOUBLE,
    "infinity": INT,
    "E5": DOUBLE,
    "DATEX": DATE,
    "x.y": INT,
}
STREAM = Stream("stream", tuple(Attribute(name, type_) for name, type_ in TYPES.items()))
WHOLE = (0, 1, -1, 10, -(2**31), 2**31 - 1, 2**31, 2**31 - 2, 2**63 - 1, -(2**63), 2**63, 2**53)
WIDE = (2**53 + 1, 10**14, 10**15 - 1, 10**15, 10**16 + 1, 10**38 - 1, 10**38, 9999999999)
WRITTEN = (
    "0.0 -0 -0.0 00012 1.10 99999999.99 99999999.999 1E400 1e5 1.5E-3 1E0 -99999999.99 0.99 1.00 "
    "12345678901.12345 0.1234567890123456789 999999999999999.5 TRUE false NULL"
).split()
TEXTS = (
    "'a'",
    "''",
    "'b'",
    "'a b'",
    "'x, y'",
    "'é'",
    "' AND '",
    "'2020-01-01'",
    "'5'",
    "'\U0010ffff'",
)
TIMES = (
    "DATE '2020-01-01'", "DATE '2020-01-02'", "DATE '0001-01-01'", "DATE '9999-12-31'",
    "date '2020-01-01'", "DATE  '2020-01-01'", "DATE '2020-W01-1'", "DATE '2020-1-1'",
    "DATE '20200101  '", "DATE '2020-02-30'", "DATE '2020-001  '", "DATE '٢٠٢٠-01-01'",
    "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01'",
)  # fmt: skip


def literal(rng: Random) -> str:
    kind = rng.randrange(7)
    if kind == 0:
        return str(rng.choice(WHOLE + WIDE))
    if kind == 1:
        return str(rng.randint(-1000, 1000))
    if kind == 2:
        return f"{rng.uniform(-100, 100):.{rng.randint(1, 5)}f}"
    return rng.choice((WRITTEN, TEXTS, TIMES, list(TYPES))[kind - 3])


def atom(rng: Random) -> str:
    name, kind = rng.choice(list(TYPES)), rng.random()
    name = name.upper() if rng.random() < 0.1 else name
    if kind < 0.5:
        operator = rng.choice(("=", "<>", "<", "<=", ">", ">=", "!=", "=="))
        return f"{name} {operator} {literal(rng)}"
    if kind < 0.7:
        comma = rng.choice((", ", ", ", ",", " ,  "))
        listed = comma.join(literal(rng) for _ in range(rng.randint(1, 4)))
        return f"{name} {rng.choice(('', '', 'NOT '))}IN ({listed})"
    if kind < 0.9:
        return f"{name} BETWEEN {literal(rng)} AND {literal(rng)}"
    return f"{name} IS {rng.choice(('NULL', 'NOT NULL', 'null', 'NOT  NULL'))}"


def test_limits_hold_in_the_plain_way_too() -> None:
    """A literal over the limits is left to the general way, which leaves it to the guard."""
    scope = Scope.of(STREAM)
    for text in ("s = '" + "x" * 70_000 + "'", "i = " + "0" * 500 + "5", "e = " + "0" * 500 + "5"):
        assert fast.plain(text, scope) is None
        assert fast.condition(text, scope) is None


def test_agree_plain_and_general() -> None:
    """Wherever the plain way answers, the general way gives the same atom."""
    rng, scope, answered = Random(5), Scope.of(STREAM), 0
    for _ in range(60_000):
        text = atom(rng)
        plain = fast.plain(text, scope)
        if plain is not None:
            answered += 1
            assert plain == fast.general(text, scope), text
    assert answered > 6_000
