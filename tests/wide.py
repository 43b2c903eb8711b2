"""Values of wide cardinality: hundreds of each type, of which constants and rows are both drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from random import Random
from struct import pack, unpack

from headgate.schema import Attribute, Value
from headgate.sql import render_literal
from tests.boundaries import STREAM, VALUES, Row
from tests.oracles.duck import Pair, Pairs, both, text_pair
from tests.scale import seed
from tests.strategies import Clauses, Dice, pick

EACH = 300
LETTERS = ("a", "b", "B", "ab", "z", "ä", "Ä", "ß", "σ", "ς", "Σ", "e\u0301", "%", "_", "'", "\\")
ASTRAL = ("𝄞", "\uffff", "\U0010ffff", "\ue000", "1", "\n")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _double(random: Random) -> float:
    """Any bits, so any magnitude, or one near 1."""
    result: float = unpack("<d", pack("<Q", random.getrandbits(64)))[0]
    return random.random() * 4 - 1 if math.isnan(result) or random.random() < 0.5 else result


def _decimal(digits: int, scale: int) -> Callable[[Random], Decimal]:
    def draw(random: Random) -> Decimal:
        whole = random.randrange(10 ** random.randint(1, digits)) * random.choice((1, -1))
        return Decimal(f"{whole}E-{scale}")

    return draw


def _text(random: Random) -> str:
    return "".join(random.choices(LETTERS + ASTRAL, k=random.randint(1, 6)))


def _moment(random: Random) -> datetime:
    return EPOCH + timedelta(microseconds=random.randrange(-(10**15), 10**16))


DRAWS: dict[str, Callable[[Random], Value]] = {
    "INT": lambda random: random.randrange(-(2**31), 2**31) >> random.randint(0, 30),
    "BIGINT": lambda random: random.randrange(-(2**63), 2**63) >> random.randint(0, 62),
    "DECIMAL(10, 2)": _decimal(10, 2),
    "DECIMAL(38, 10)": _decimal(38, 10),
    "DOUBLE": _double,
    "STRING": _text,
    "DATE": lambda random: date.fromordinal(random.randint(1, date.max.toordinal())),
    "TIMESTAMP": _moment,
}


@lru_cache(maxsize=1)
def pools() -> dict[str, tuple[Value, ...]]:
    """For each SQL type the values at its boundaries, and hundreds of others."""
    random = Random(seed(38))
    return {
        sql: (*known, *(DRAWS[sql](random) for _ in range(EACH if sql in DRAWS else 0)))
        for sql, known in VALUES.items()
    }


def any_value(dice: Dice, attribute: Attribute) -> Value:
    """One of the boundaries, or one of the others."""
    sql = attribute.type.sql
    return pick(dice, VALUES[sql]) if dice.below(3) == 0 else pick(dice, pools()[sql])


def wide_row(dice: Dice) -> Row:
    """A row in which each attribute has a value, or is NULL, or is absent."""
    collected: Row = {}
    for attribute in STREAM:
        kind = dice.below(12)
        if kind > 0:
            collected[attribute.name] = None if kind == 1 else any_value(dice, attribute)
    return collected


class WideClauses(Clauses):
    """The whole grammar, with constants of wide cardinality among those at the boundaries."""

    def literal(self, attribute: Attribute) -> str:
        if self.dice.below(2):
            return super().literal(attribute)
        return render_literal(any_value(self.dice, attribute))


class WidePairs(Pairs):
    """The part of it that DuckDB shares."""

    def literal(self, attribute: Attribute) -> Pair:
        if self.dice.below(2):
            return super().literal(attribute)
        value = any_value(self.dice, attribute)
        if isinstance(value, datetime):
            return both(f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'")
        if isinstance(value, float):
            return both(_exponential(value))
        if isinstance(value, str):
            return text_pair(value.replace("\0", ""))
        return both(render_literal(value))


def _exponential(value: float) -> str:
    """A double that DuckDB reads as one: without an exponent it would be a decimal."""
    if not math.isfinite(value):
        return f"CAST('{'NaN' if math.isnan(value) else f'{value}inity'.title()}' AS DOUBLE)"
    return repr(value) if "e" in repr(value) else f"{value!r}e0"
