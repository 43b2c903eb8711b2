"""DuckDB as a second opinion: clauses in pairs, ours and one that means the same in DuckDB.

DuckDB differs from our contract in places, so the pairs keep to where both say the same:

- DOUBLE meets only DOUBLE, because DuckDB widens all other numbers to it and rounds (so does Spark;
  we are exact), and numbers beside it are doubles as written;
- LIKE always says ESCAPE, because DuckDB has no escape character by default;
- ILIKE patterns are ASCII, because DuckDB lowers letter by letter (`ΣΑΣ` to `σασ`, not `σας`);
- timestamps are written in UTC without an offset, because DuckDB's TIMESTAMP has no zone;
- no text holds NUL, which DuckDB's literals cannot write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from headgate.schema import BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Attribute
from tests.boundaries import STREAM, VALUES, Row
from tests.strategies import Dice, pick

OPERATORS = ("=", "<", "<=", ">", ">=", "<>")
EXACT_NUMBERS = (
    "0 1 -1 3 4 0.5 3.5 -0.5 0.1 0.005 2147483647 2147483648 9007199254740992 9007199254740993 "
    "9007199254740992.0000000001 9223372036854775807 9223372036854775808 99999999.99 99999999.995 "
    "0.1000000001 9999999999999999999999999999.9999999999"
).split()
DOUBLES = "0.0 -0.0 0.1 0.30000000000000004 1.0 3.5 1e308 5e-324 9007199254740992.0 -1.0".split()
SPECIAL = ("NaN", "Infinity", "-Infinity")
PATTERNS = ("a%", "%b", "%", "_", "", "a_b", "%a%b%", "ä%", "a|%b", "a||", "%|%", "_\n_", "a𝄞_")
REGEXES = ("a", "^a", "a+b", "[a-c]", "a|z", "(ab)+", "[0-9]{2}")
TEXTS = tuple(str(text) for text in VALUES["STRING"] if "\0" not in str(text))


@dataclass(frozen=True)
class Pair:
    ours: str
    duck: str

    def under(self, form: str) -> Pair:
        return Pair(form.format(self.ours), form.format(self.duck))

    def combine(self, form: str, *others: Pair) -> Pair:
        """All of these in a form with a place for each."""
        parts = (self, *others)
        return Pair(form.format(*(p.ours for p in parts)), form.format(*(p.duck for p in parts)))


def both(text: str) -> Pair:
    return Pair(text, text)


class Pairs:
    """The part of the language that both share."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.palette: list[Attribute] = []

    def where(self) -> Pair:
        self.palette = [pick(self.dice, STREAM.attributes) for _ in range(1 + self.dice.below(3))]
        return self.condition(3)

    def condition(self, depth: int) -> Pair:
        kind = self.dice.below(10) if depth else 0
        if kind < 3:
            return self.atom()
        if kind < 8:
            form = "({}) AND ({})" if kind < 6 else "({}) OR ({})"
            return self.condition(depth - 1).combine(form, self.condition(depth - 1))
        inner = self.condition(depth - 1)
        if kind == 8:
            return inner.under("NOT ({})")
        tests = ("({}) IS TRUE", "({}) IS NOT FALSE", "({}) IS NULL", "COALESCE({}, TRUE)")
        return inner.under(pick(self.dice, tests))

    def atom(self) -> Pair:
        attribute = pick(self.dice, self.palette)
        kind = self.dice.below(10)
        if kind < 3 or (kind > 7 and attribute.type not in (STRING, BOOLEAN)):
            return self.compared(attribute, self.literal(attribute))
        if kind < 5:
            form = pick(self.dice, ("{} IN ({}, {})", "{} NOT IN ({}, {})"))
            return self.combine_literals(attribute, form)
        if kind < 6:
            form = pick(self.dice, ("{} BETWEEN {} AND {}", "{} NOT BETWEEN {} AND {}"))
            return self.combine_literals(attribute, form)
        if kind < 7:
            return self.operand(attribute).under(pick(self.dice, ("{} IS NULL", "{} IS NOT NULL")))
        if kind < 8:
            other = pick(self.dice, [a for a in STREAM if comparable(a, attribute)])
            return self.compared(attribute, self.operand(other))
        return self.pattern(attribute) if attribute.type == STRING else self.operand(attribute)

    def compared(self, attribute: Attribute, right: Pair) -> Pair:
        return self.operand(attribute).combine(f"{{}} {pick(self.dice, OPERATORS)} {{}}", right)

    def combine_literals(self, attribute: Attribute, form: str) -> Pair:
        literals = self.literal(attribute), self.literal(attribute)
        return self.operand(attribute).combine(form, *literals)

    def operand(self, attribute: Attribute) -> Pair:
        return Pair(attribute.name, f'"{attribute.name}"')

    def literal(self, attribute: Attribute) -> Pair:
        kind = attribute.type
        if self.dice.below(12) == 11:
            return both("NULL")
        if kind == BOOLEAN:
            return both(pick(self.dice, ("TRUE", "FALSE")))
        if kind == DOUBLE:
            if self.dice.below(4) == 3:
                return both(f"CAST('{pick(self.dice, SPECIAL)}' AS DOUBLE)")
            return both(pick(self.dice, DOUBLES))
        if kind == STRING:
            return text_pair(pick(self.dice, TEXTS))
        if kind in (DATE, TIMESTAMP):
            return self.time()
        return both(pick(self.dice, EXACT_NUMBERS))

    def time(self) -> Pair:
        if self.dice.below(2):
            return both(f"DATE '{pick(self.dice, VALUES['DATE'])}'")
        moment = pick(self.dice, VALUES["TIMESTAMP"])
        assert isinstance(moment, datetime)
        clock = moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
        return both(f"TIMESTAMP '{clock}'")

    def pattern(self, attribute: Attribute) -> Pair:
        column, kind = self.operand(attribute), self.dice.below(6)
        if kind == 5:
            regex = text_pair(pick(self.dice, REGEXES))
            duck = f"regexp_matches({column.duck}, {regex.duck})"
            return Pair(f"{column.ours} RLIKE {regex.ours}", duck)
        text = text_pair(pick(self.dice, PATTERNS))
        word = pick(self.dice, ("", "NOT ")) + (
            "ILIKE" if kind > 2 and text.ours.isascii() else "LIKE"
        )
        return column.combine(f"{{}} {word} {{}} ESCAPE '|'", text)


def comparable(left: Attribute, right: Attribute) -> bool:
    """May the two meet in DuckDB without rounding?"""
    kinds = {left.type, right.type}
    if kinds <= {DATE, TIMESTAMP} or len(kinds) == 1:
        return True
    return DOUBLE not in kinds and left.type.numeric and right.type.numeric


def text_pair(value: str) -> Pair:
    quoted = value.replace("'", "''")
    return Pair("'" + quoted.replace("\\", "\\\\") + "'", f"'{quoted}'")


def table_of(rows: Sequence[Row]) -> duckdb.DuckDBPyConnection:
    """A database whose table `trades` holds these rows, in the order of `place`."""
    connection = duckdb.connect()
    types = {TIMESTAMP.sql: "TIMESTAMP", STRING.sql: "VARCHAR"}
    columns = ", ".join(f'"{a.name}" {types.get(a.type.sql, a.type.sql)}' for a in STREAM)
    connection.execute(f"CREATE TABLE trades (place INT, {columns})")
    marks = ", ".join("?" * (len(STREAM.attributes) + 1))
    connection.executemany(
        f"INSERT INTO trades VALUES ({marks})",
        [[place, *map(stored, row.values())] for place, row in enumerate(rows)],
    )
    return connection


def stored(value: object) -> object:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def truths(
    connection: duckdb.DuckDBPyConnection, clauses: Sequence[str]
) -> list[tuple[object, ...]]:
    """For each row, the truth value of each clause."""
    listed = ", ".join(f"({clause})" for clause in clauses)
    return connection.execute(f"SELECT {listed} FROM trades ORDER BY place").fetchall()
