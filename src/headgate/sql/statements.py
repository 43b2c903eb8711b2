"""Read WHERE clauses, and scripts of declarations and queries, into bound objects.

Plain conditions go through `fast_path`; what it declines goes through sqlglot and `binder`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headgate.errors import Position, SqlError, SqlSyntaxError, UnknownName, UnsupportedSql
from headgate.predicate import Predicate
from headgate.schema import DeclaredAggregate, Schema, Stream
from headgate.sql.binder import parse_condition
from headgate.sql.declarations import Declarations
from headgate.sql.fast_path import FastPath
from headgate.sql.lexer import error_at, statements, tokens
from headgate.sql.query import BAD_ID_TOPIC, Origin, Query, Source, find_id_problem
from headgate.sql.scope import Scope
from headgate.sql.select import bind_query

_TIME_ZONE = re.compile(r"\s*SET\s+TIME\s+ZONE\s+'([^']*)'\s*", re.IGNORECASE)
_PLAIN_QUERY = re.compile(
    r"\s*CREATE\s+QUERY\s+([A-Za-z_]\w*|`[^`]+`)\s+AS\s+SELECT\s+\*\s+FROM\s+([A-Za-z_]\w*)\s+"
    r"WHERE\s+(\S.*)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_QUERY_NAME = re.compile(r"\s*CREATE\s+QUERY\s+([A-Za-z_]\w*|`[^`]+`)", re.IGNORECASE)
_STATEMENTS = (
    "a file of queries holds CREATE STREAM, CREATE AGGREGATE, CREATE QUERY and SET TIME ZONE"
)

Declared = Query | Stream | DeclaredAggregate


class WhereReader:
    """A reader of the WHERE clauses of one stream; it remembers the atoms that it has seen.

    `sources` is the FROM of all queries on the stream, which share it.
    """

    def __init__(self, stream: Stream) -> None:
        self.sources = (Source(stream, stream.name),)
        self.scope = Scope.of(stream)
        self._fast_path = FastPath(self.scope)

    def read(self, text: str) -> Predicate:
        """Return the predicate that the text means; raise an SqlError where it means none."""
        plain = self.read_plain(text)
        return parse_condition(text, self.scope) if plain is None else plain

    def read_plain(self, text: str) -> Predicate | None:
        """Return the predicate of a plain condition; None where the fast path declines."""
        return self._fast_path.parse(text)


def parse_where(text: str, stream: Stream) -> Predicate:
    """Return the predicate that a WHERE clause on one stream means.

    Parameters
    ----------
    text
        The condition, without the word WHERE.
    stream
        The stream whose attributes the condition names.

    Returns
    -------
    Predicate
        The condition with every name resolved and every literal typed.

    Raises
    ------
    SqlError
        Where the text is no condition on this stream; the error has the line and the column.

    Examples
    --------
    >>> from headgate.predicate import simplify
    >>> from headgate.schema import INT, Attribute
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> between = parse_where("qty > 3 AND qty <= 9", trades)
    >>> simplify(between) == parse_where("qty BETWEEN 4 AND 9", trades)
    True
    """
    return WhereReader(stream).read(text)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A statement that was not accepted: the error, and the query's id where it is known."""

    error: SqlError
    id: str | None = None


@dataclass
class Script:
    """A reader of statements, each of which sees what was declared before it."""

    schema: Schema
    zone: str = "UTC"
    place: Position = field(default_factory=Position)  # where the statement just read begins
    _readers: dict[str, WhereReader] = field(default_factory=dict, repr=False)

    def read(
        self,
        text: str,
        file: str | None = None,
        is_wanted: Callable[[str], bool] | None = None,
    ) -> Iterator[Declared | Rejected]:
        """Yield what each statement declares, and add streams and aggregates to the schema.

        Queries that are no filters know where they come from. Those whose id is not wanted are
        skipped unread.
        """
        lines = _Lines(text, file)
        for start, statement in statements(text):
            self.place = lines.position(start)
            if is_wanted is not None:
                query_id = _query_name(statement)
                if query_id is not None and not is_wanted(query_id):
                    continue
            try:
                declared = self.read_statement(statement)
                if isinstance(declared, Query) and (problem := find_id_problem(declared.id)):
                    raise SqlSyntaxError(problem, topic=BAD_ID_TOPIC)
            # A statement that is refused declares nothing, and the next one is read.
            except SqlError as error:
                yield Rejected(error.shift_to(self.place), _query_name(statement))
                continue
            if isinstance(declared, Stream):
                self.schema = self.schema.with_streams((declared,))
            elif isinstance(declared, DeclaredAggregate):
                self.schema = self.schema.with_aggregates((declared,))
            elif isinstance(declared, Query) and declared.kind != "filter":
                declared = replace(declared, origin=Origin(statement, self.place))
            if declared is not None:
                yield declared

    def read_statement(self, text: str) -> Declared | None:
        """Return what one statement declares; None for SET TIME ZONE."""
        # Most statements of a large file have this form; whatever the fast path declines is read
        # again below.
        plain = _PLAIN_QUERY.fullmatch(text)
        if plain:
            query = self._read_plain_query(plain)
            if query is not None:
                return query
        # The first two words say what kind of statement it is.
        words = [token for token, _ in zip(tokens(text), range(2), strict=False)]
        kind = " ".join(token.word for token in words)
        if kind == "CREATE STREAM":
            return Declarations(self.schema, self.zone).read_stream(text)
        if kind == "CREATE AGGREGATE":
            return Declarations(self.schema, self.zone).read_aggregate(text)
        if kind == "CREATE QUERY":
            return bind_query(text, self.schema).query
        if kind == "SET TIME":
            self.zone = _read_time_zone(text)
            return None
        start, end = (words[0].start, words[-1].end) if words else (0, len(text))
        message = f"{kind} is not supported"
        raise error_at(
            UnsupportedSql, text, start, end - start, message, _STATEMENTS, topic=message
        )

    def _read_plain_query(self, plain: re.Match[str]) -> Query | None:
        """Return CREATE QUERY … SELECT * FROM … WHERE … as a query, if the fast path reads it."""
        stream = self.schema.get(plain[2])
        if stream is None:
            return None
        # A stream is never declared again, so its reader and cache serve the whole script.
        reader = self._readers.get(stream.name)
        if reader is None:
            reader = self._readers[stream.name] = WhereReader(stream)
        where = reader.read_plain(plain[3])
        if where is None:
            return None
        return Query(plain[1].strip("`"), reader.sources, where)


def _read_time_zone(text: str) -> str:
    """Return the zone of SET TIME ZONE."""
    match = _TIME_ZONE.fullmatch(text)
    if match is None:
        hint = "write SET TIME ZONE 'Europe/Berlin'"
        raise error_at(SqlSyntaxError, text, 0, len(text), "SET TIME ZONE needs a zone", hint)
    zone = match[1]
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message, hint = f"no time zone `{zone}`", "zones have names such as Europe/Berlin"
        raise error_at(UnknownName, text, match.start(1), len(zone), message, hint) from None
    return zone


class _Lines:
    """Positions in a text, from top to bottom, so that its lines are counted once."""

    def __init__(self, text: str, file: str | None) -> None:
        self.text = text
        self.file = file
        self.line, self.start = 1, 0

    def position(self, offset: int) -> Position:
        """Return the line and column of an offset that is not before the last one."""
        self.line += self.text.count("\n", self.start, offset)
        self.start = offset
        column = offset - self.text.rfind("\n", 0, offset)
        return Position(self.file, self.line, column)


def _query_name(statement: str) -> str | None:
    match = _QUERY_NAME.match(statement)
    return match[1].strip("`") if match else None
