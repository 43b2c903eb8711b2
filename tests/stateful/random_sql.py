"""Random queries in SQL, and rows near their constants; about half of them are bounded."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from headgate.predicate import Row
from headgate.predicate.satisfiability import pick_example
from headgate.queries import Query
from headgate.schema import (
    Attribute,
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    Schema,
    String,
    Timestamp,
    Type,
)
from headgate.sql import Rejected, Script
from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from tests.stateful.random_queries import Family, queries

FAMILIES: dict[str, tuple[str, ...]] = {
    "integers": ("INT", "INT", "BIGINT"),
    "numbers": ("INT", "BIGINT", "DECIMAL(6, 1)", "DECIMAL(7, 2)", "DOUBLE", "DOUBLE"),
    "times": ("DATE", "TIMESTAMP"),
    "texts": ("STRING",),
    "flags": ("BOOLEAN", "INT"),
}
OPERATORS = ("<", "<", "<=", "<=", "=", ">", ">=", "<>")
STREAMS = ("s", "t", "u")
PATTERNS = ("a%", "%b", "_", "b%", "%c%", "ab")
NULLS = ("IS NULL", "IS NOT NULL")
TEXTS = ("", "a", "ab", "b", "bc", "c", "cc", "d", "é")
DAY = date(2024, 2, 28)


@dataclass(frozen=True)
class Statement:
    """A query, and the text that it was read from."""

    text: str
    query: Query
    schema: Schema
    near: tuple[int, ...] = tuple(range(-2, 12))


def statements(seed: int, count: int) -> Iterator[Statement]:
    """So many queries that are accepted."""
    numbers = random.Random(seed)
    result = 0
    while result < count:
        text = _Writer(numbers).text()
        script = Script(Schema())
        read = list(script.read(text))
        empty = any(a.domain.is_empty for stream in script.schema for a in stream)
        if not empty and not any(isinstance(each, Rejected) for each in read):
            query = next(each for each in read if isinstance(each, Query))
            yield Statement(text, query, script.schema)
            result += 1


def statements_of_cores(family: Family, seed: int, count: int) -> Iterator[Statement]:
    """Random conjunctive queries written in SQL: what is dense is DOUBLE, all else is INT.

    Every stream has an attribute `k` that is always 1, so that something can be put out.
    """
    numbers = random.Random(seed)
    for core in queries(family, seed, count):
        text = ";\n".join((*_streams_of(core, numbers), _query_of(core, numbers)))
        script = Script(Schema())
        query = next(each for each in script.read(text + ";") if isinstance(each, Query))
        constants = {bound.constant for bound in core.bounds} or {3}
        near = {constant + by for constant in constants for by in range(-2, 4)}
        yield Statement(text, query, script.schema, tuple(sorted(near)))


def _streams_of(core: Conjunctive, numbers: random.Random) -> Iterator[str]:
    """A stream for each occurrence, or for all occurrences of one name."""
    for name in dict.fromkeys(core.streams):
        parts = {"k": "k INT NOT NULL CHECK (k = 1)"}
        for variable in core.variables:
            if core.streams[variable.source] == name:
                values = ", ".join(map(str, numbers.sample(range(24), 3)))
                check = f" CHECK ({variable.name} IN ({values}))" if variable.finite else ""
                type_ = "DOUBLE" if variable.dense else "INT"
                parts.setdefault(variable.name, f"{variable.name} {type_}{check}")
        yield f"CREATE STREAM {name} ({', '.join(parts.values())})"


def _query_of(core: Conjunctive, numbers: random.Random) -> str:
    names = [f"x{v.source}.{v.name}" for v in core.variables]
    atoms = [f"{names[c.left]} {c.operator} {names[c.right]}" for c in core.comparisons]
    atoms += [f"{names[b.variable]} {b.operator} {b.constant}" for b in core.bounds]
    sources = ", ".join(
        f"last_rows({stream}, 2) AS x{n}" if n in core.windowed else f"{stream} AS x{n}"
        for n, stream in enumerate(core.streams)
    )
    outputs = dict.fromkeys(core.outputs)
    wanted = ", ".join(["x0.k", *(f"{names[output]} AS o{output}" for output in outputs)])
    select = f"SELECT {'DISTINCT ' * core.distinct}{wanted}"
    if numbers.random() < 0.25:
        select = f"SELECT {numbers.choice(('MIN', 'MAX'))}({numbers.choice(names)}) AS g"
    where = f" WHERE {' AND '.join(atoms)}" if atoms else ""
    one = len(core.streams) == 1
    text = f"CREATE QUERY q AS {select} FROM {sources}{where}"
    return text.replace("x0.", "") if one else text


def rows(
    statement: Statement, numbers: random.Random, streams: Sequence[str], count: int
) -> Iterator[tuple[str, Row]]:
    """Rows of these streams in any order, of few different values, so that many are equal."""
    near = [numbers.choice(statement.near) for _ in range(numbers.choice((2, 3, 5)))]
    for _ in range(count):
        stream = statement.schema.stream(numbers.choice(streams))
        yield stream.name, {a.name: _value_of(numbers, a, near) for a in stream}


def _value_of(numbers: random.Random, attribute: Attribute, near: Sequence[int]) -> Any:
    if attribute.nullable and numbers.random() < 0.05:
        return None
    for attempt in range(50):
        whole = numbers.choice(near) if attempt < 5 else numbers.randrange(-2, 24)
        value = _value(numbers, attribute.type, whole)
        if attribute.type.ordinal(value) in attribute.domain:
            return value
    return attribute.type.value(pick_example(attribute.domain, attribute.type))


def _value(numbers: random.Random, type_: Type, whole: int) -> Any:
    """A value near the constants of `_Writer`, seldom an extreme one."""
    if numbers.random() < 0.02 and not isinstance(type_, String | Boolean | Date | Timestamp):
        return numbers.choice([type_.value(o) for o in (type_.minimum, type_.maximum)])
    if isinstance(type_, Integer):
        return whole
    if isinstance(type_, DecimalType):
        return Decimal(whole) + Decimal(numbers.choice((0, 0, 5))) / 10
    if isinstance(type_, Double):
        special = (math.nan, math.inf, -0.0, 0.1, 2.25)
        fraction = numbers.choice((0.0, 0.0, 0.5, 0.25))
        return numbers.choice(special) if numbers.random() < 0.05 else whole + fraction
    if isinstance(type_, Date):
        return DAY + timedelta(days=whole)
    if isinstance(type_, Timestamp):
        moment = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
        return moment + timedelta(days=whole, hours=numbers.choice((0, 5, 5, 12)))
    if isinstance(type_, Boolean):
        return numbers.random() < 0.5
    return TEXTS[whole % len(TEXTS)] + numbers.choice(("", "", "x"))


class _Writer:
    """Writes one CREATE STREAM for each stream, and one CREATE QUERY."""

    def __init__(self, numbers: random.Random) -> None:
        self.numbers = numbers
        self.family = numbers.choices(tuple(FAMILIES), (5, 4, 2, 2, 1))[0]
        self.types = {
            stream: {name: numbers.choice(FAMILIES[self.family]) for name in "abcd"}
            for stream in STREAMS
        }
        count = numbers.choices((1, 2, 3), (2, 7, 3))[0]
        self.streams = [self.choice(STREAMS) if self.chance(0.3) else s for s in STREAMS[:count]]
        self.aliases = "xyz"[:count]
        self.held: list[str] = []
        self.hidden = {column: numbers.randrange(0, 9) for column, _ in self.columns()}

    def chance(self, share: float) -> bool:
        return self.numbers.random() < share

    def choice(self, options: Any) -> Any:
        return self.numbers.choice(options)

    def text(self) -> str:
        declared = [self.stream(stream) for stream in STREAMS]
        where = " AND ".join(dict.fromkeys(self.conditions()))
        select, group = self.select()
        sources = ", ".join(
            self.source(s, a) for s, a in zip(self.streams, self.aliases, strict=True)
        )
        where = f" WHERE {where}" if where else ""
        if self.family == "times" and self.chance(0.5):
            declared.insert(0, "SET TIME ZONE 'America/New_York'")
        return ";\n".join((*declared, f"CREATE QUERY q AS {select} FROM {sources}{where}{group};"))

    def stream(self, name: str) -> str:
        parts = []
        for attribute, type_ in self.types[name].items():
            check = ""
            if self.chance(0.12):
                check = f" CHECK ({self.bound(attribute, type_)})"
            null = " NOT NULL" if self.chance(0.1) else ""
            parts.append(f"{attribute} {type_}{null}{check}")
        return f"CREATE STREAM {name} ({', '.join(parts)})"

    def source(self, stream: str, alias: str) -> str:
        if self.chance(0.12):
            return f"last_rows({stream}, {self.choice((1, 2, 3))}) AS {alias}"
        return f"{stream} AS {alias}"

    def columns(self) -> list[tuple[str, str]]:
        collected = []
        for stream, alias in zip(self.streams, self.aliases, strict=True):
            prefix = f"{alias}." if len(self.aliases) > 1 else ""
            collected += [(prefix + name, type_) for name, type_ in self.types[stream].items()]
        return collected

    def conditions(self) -> Iterator[str]:
        columns = self.columns()
        if self.family == "flags":
            columns = [(c, t) for c, t in columns if t == "INT"] or columns
        if len(self.aliases) > 1 and self.chance(0.5):
            yield from self.one_below_the_other(columns)
            return
        used = self.numbers.sample(columns, min(len(columns), self.choice((2, 3, 4, 5))))
        likely = self.choice((0.4, 0.7, 0.9))
        for column, type_ in used:
            if self.chance(likely):
                yield self.either(lambda c=column, t=type_: self.bound(c, t, hold=True))
        for _ in range(self.numbers.choices(range(5), (2, 5, 5, 3, 1))[0]):
            yield self.either(lambda: self.comparison(used))

    def one_below_the_other(self, columns: list[tuple[str, str]]) -> Iterator[str]:
        """A few attributes of a stream, all of them below a few of another one."""
        few = self.choice((1, 2, 2, 3))
        lows = [c for c in columns if c[0].startswith("x.")][:few]
        highs = [c for c in columns if c[0].startswith("y.")][: self.choice((1, 2, 2, 3))]
        operators = self.choice((("<",), ("<=",), ("<", "<=")))
        everywhere = self.choice((0.8, 1.0))
        for low, _ in lows:
            for high, _ in highs:
                if self.chance(everywhere):
                    yield f"{low} {self.choice(operators)} {high}"
        likely = self.choice((0, 0, 0.2, 0.8, 1.0))
        for column, type_ in (*lows, *highs):
            self.hidden[column] = 2 if column.startswith("x.") else 6
            if self.chance(likely):
                yield self.bound(column, type_, hold=True)
        others = [c for c in columns if c not in (*lows, *highs)]
        for column, type_ in self.numbers.sample(others, min(2, len(others))):
            if self.chance(0.5):
                yield self.bound(column, type_, hold=True)
        if self.chance(0.2):
            yield self.comparison(columns)

    def either(self, write: Any) -> str:
        """A condition, or seldom two of which one holds."""
        first = write()
        if self.chance(0.1):
            column, type_ = self.choice(self.columns())
            other = write() if self.chance(0.5) else self.bound(column, type_)
            return f"({first} OR {other})"
        return str(first)

    def comparison(self, used: list[tuple[str, str]]) -> str:
        (left, one), (right, two) = self.choice(used), self.choice(used)
        if left == right or ("BOOLEAN" in (one, two) and one != two):
            return self.bound(left, one)
        return f"{left} {self.operator(self.hidden[left], self.hidden[right])} {right}"

    def operator(self, left: int, right: int) -> str:
        """One that holds of the hidden numbers, with few exceptions."""
        if self.chance(0.05):
            return str(self.choice(OPERATORS))
        if left == right:
            return str(self.choice(("<=", "=", "=", ">=")))
        return str(self.choice(("<", "<", "<=", "<>") if left < right else (">", ">", ">=", "<>")))

    def bound(self, column: str, type_: str, *, hold: bool = False) -> str:
        here = self.hidden.get(column, 4) if self.chance(0.95) else self.numbers.randrange(0, 9)
        low, high = self.numbers.randint(0, here), self.numbers.randint(here, 8)
        first, second = self.literal(type_, low), self.literal(type_, high)
        exact = self.literal(type_, here)
        way = self.numbers.randrange(10)
        if way < 4:
            self.held += [column] * hold
            return f"{column} = {exact}"
        if way < 5:
            self.held += [column] * hold
            return f"{column} IN ({exact}, {second})"
        if way < 7:
            self.held += [column] * (hold and type_ not in ("DOUBLE", "STRING"))
            return f"{column} BETWEEN {first} AND {second}"
        if way == 7 and hold:
            return str(self.choice([f"{column} {rest}" for rest in (f"<> {first}", *NULLS)]))
        if type_ == "STRING" and self.chance(0.4):
            return f"{column} {self.choice(('', 'NOT '))}LIKE '{self.choice(PATTERNS)}'"
        if self.chance(0.5):
            return f"{column} {self.choice(('>', '>='))} {first}"
        return f"{column} {self.choice(('<', '<='))} {second}"

    def literal(self, type_: str, number: int) -> str:
        if type_ == "BOOLEAN":
            return "TRUE" if number % 2 else "FALSE"
        if type_ == "STRING":
            return f"'{TEXTS[number % len(TEXTS)]}'"
        if self.family == "times":
            day = DAY + timedelta(days=number)
            clock = self.choice(("00:00:00", "12:00:00"))
            return f"TIMESTAMP '{day} {clock}'" if type_ == "TIMESTAMP" else f"DATE '{day}'"
        if type_ == "INT" or self.chance(0.6):
            return str(number)
        return f"{number}.{self.choice(('5', '25', '1'))}"

    def select(self) -> tuple[str, str]:
        """Mostly outputs that conditions hold, since any other decides the verdict by itself."""
        held = list(dict.fromkeys(self.held))
        wanted = [c for c in held if self.chance(0.5)][:2]
        if self.chance(0.3) or not held:
            return self.aggregates(wanted)
        if self.chance(0.12):
            wanted.append(self.choice(self.columns())[0])
        distinct = "DISTINCT " if self.chance(0.65) else ""
        return f"SELECT {distinct}{', '.join(wanted or held[:1])}", ""

    def aggregates(self, wanted: list[str]) -> tuple[str, str]:
        groups = wanted[: self.choice((0, 1, 2))]
        result = list(groups)
        for number in range(self.choice((1, 1, 2))):
            result.append(f"{self.aggregate()} AS g{number}")
        return f"SELECT {', '.join(result)}", f" GROUP BY {', '.join(groups)}" if groups else ""

    def aggregate(self) -> str:
        column, type_ = self.choice(self.columns())
        if self.held and self.chance(0.4):
            column = self.choice(self.held)
            type_ = dict(self.columns())[column]
        simple = ("COUNT(*)", f"COUNT({column})", f"MIN({column})", f"MAX({column})")
        if self.chance(0.5) or type_ in ("STRING", "BOOLEAN", "DATE", "TIMESTAMP"):
            return str(self.choice((*simple, f"COUNT(DISTINCT {column})")))
        return str(self.choice([f"{f}({column})" for f in ("SUM", "AVG", "MEDIAN")]))
