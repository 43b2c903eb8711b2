"""Statements one after the other: declarations and queries, from text to bound objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headgate.errors import Position, SqlError, SqlSyntaxError, UnknownName, UnsupportedSql
from headgate.predicate import Predicate
from headgate.schema import DeclaredAggregate, Schema, Stream
from headgate.sql import fast
from headgate.sql.declarations import Declarations
from headgate.sql.lexer import fail, statements, tokens
from headgate.sql.query import Origin, Query, Source
from headgate.sql.scope import Scope
from headgate.sql.select import bind_query

_TIME_ZONE = re.compile(r"\s*SET\s+TIME\s+ZONE\s+'([^']*)'\s*", re.IGNORECASE)
_PLAIN_QUERY = re.compile(
    r"\s*CREATE\s+QUERY\s+([A-Za-z_]\w*|`[^`]+`)\s+AS\s+SELECT\s+\*\s+FROM\s+([A-Za-z_]\w*)\s+"
    r"WHERE\s+(\S.*)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_QUERY_NAME = re.compile(r"\s*CREATE\s+QUERY\s+([A-Za-z_]\w*|`[^`]+`)", re.IGNORECASE)
_HOLDS = "a file of queries holds CREATE STREAM, CREATE AGGREGATE, CREATE QUERY and SET TIME ZONE"

Declared = Query | Stream | DeclaredAggregate


@dataclass(frozen=True, slots=True)
class Rejected:
    """A statement that was not accepted: the error, and the query's id where it is known."""

    error: SqlError
    id: str | None = None


@dataclass
class Script:
    """Reads statements one after the other; each sees what was declared before it."""

    schema: Schema
    zone: str = "UTC"
    place: Position = field(default_factory=Position)  # where the statement just read begins
    _known: dict[str, tuple[Scope, dict[str, Predicate]]] = field(default_factory=dict, repr=False)

    def read(self, text: str, file: str | None = None) -> Iterator[Declared | Rejected]:
        """What each statement declares. Streams and aggregates are added to the schema on the way.

        Queries that are no filters know where they come from.
        """
        lines = _Lines(text, file)
        for start, statement in statements(text):
            self.place = lines.position(start)
            try:
                found = self.statement(statement)
            except SqlError as error:
                yield Rejected(error.shift_to(self.place), _id_in(statement))
                continue
            if isinstance(found, Stream):
                self.schema = self.schema.with_streams((found,))
            elif isinstance(found, DeclaredAggregate):
                self.schema = self.schema.with_aggregates((found,))
            elif isinstance(found, Query) and found.kind != "filter":
                found = replace(found, origin=Origin(statement, self.place))
            if found is not None:
                yield found

    def statement(self, text: str) -> Declared | None:
        """One statement; None for SET TIME ZONE."""
        plain = _PLAIN_QUERY.fullmatch(text)
        if plain:
            query = self.plain_query(plain)
            if query is not None:
                return query
        words = [token for token, _ in zip(tokens(text), range(2), strict=False)]
        kind = " ".join(token.word for token in words)
        if kind == "CREATE STREAM":
            return Declarations(self.schema, self.zone).stream(text)
        if kind == "CREATE AGGREGATE":
            return Declarations(self.schema, self.zone).aggregate(text)
        if kind == "CREATE QUERY":
            return bind_query(text, self.schema).query
        if kind == "SET TIME":
            self.zone = self.time_zone(text)
            return None
        start, end = (words[0].start, words[-1].end) if words else (0, len(text))
        what = f"{kind} is not supported"
        raise fail(UnsupportedSql, text, start, end - start, what, _HOLDS, topic=what)

    def plain_query(self, plain: re.Match[str]) -> Query | None:
        """CREATE QUERY … SELECT * FROM … WHERE …, where the fast parser can read it."""
        stream = self.schema.get(plain[2])
        if stream is None:
            return None
        scope, atoms = self._known.setdefault(stream.name, (Scope.of(stream), {}))
        where = fast.condition(plain[3], scope, atoms)
        if where is None:
            return None
        name = plain[1].strip("`")
        return Query(name, (Source(stream.name, stream.name),), where)

    def time_zone(self, text: str) -> str:
        match = _TIME_ZONE.fullmatch(text)
        if match is None:
            hint = "write SET TIME ZONE 'Europe/Berlin'"
            raise fail(SqlSyntaxError, text, 0, len(text), "SET TIME ZONE needs a zone", hint)
        try:
            ZoneInfo(match[1])
        except (ZoneInfoNotFoundError, ValueError, OSError):
            hint = "zones have names such as Europe/Berlin"
            raise fail(
                UnknownName, text, match.start(1), len(match[1]), f"no time zone `{match[1]}`", hint
            ) from None
        return match[1]


class _Lines:
    """Positions in a text that are asked for from top to bottom."""

    def __init__(self, text: str, file: str | None) -> None:
        self.text = text
        self.file = file
        self.line, self.start = 1, 0

    def position(self, offset: int) -> Position:
        self.line += self.text.count("\n", self.start, offset)
        self.start = offset
        column = offset - self.text.rfind("\n", 0, offset)
        return Position(self.file, self.line, column)


def _id_in(statement: str) -> str | None:
    match = _QUERY_NAME.match(statement)
    return match[1].strip("`") if match else None
