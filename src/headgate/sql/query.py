"""A bound query: every name resolved, every expression typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from headgate._display import render_fields
from headgate._slots import set_slots_directly
from headgate.errors import Position, shorten
from headgate.predicate import Column, Predicate
from headgate.schema import (
    BIGINT,
    DOUBLE,
    Attribute,
    Category,
    DecimalType,
    DeclaredAggregate,
    Double,
    Schema,
    Stream,
    Type,
)

AggregateFunction = Literal["COUNT", "SUM", "MIN", "MAX", "AVG", "MEDIAN"]
Kind = Literal["filter", "window", "distinct", "join", "aggregate"]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A stream in FROM, under the alias by which the query calls it.

    Where `rows` is given, only the last so many rows count. All queries of a set share the objects
    of its streams, so that a million filters hold one. Sources compare by the name of the stream:
    to compare every attribute of it for each query would take longer than to load them.
    """

    stream: Stream
    alias: str
    rows: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and (self.stream.name, self.alias, self.rows) == (
            other.stream.name,
            other.alias,
            other.rows,
        )

    def __hash__(self) -> int:
        return hash((self.stream.name, self.alias, self.rows))


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a column, or COUNT(*) where there is no argument.

    The function is an `AggregateFunction`, or the name of a declared one.
    """

    function: str
    argument: Column | None = None
    distinct: bool = False
    declared: DeclaredAggregate | None = None

    @property
    def category(self) -> Category:
        """How the whole follows from its parts; with DISTINCT, all values may be needed."""
        # DISTINCT changes nothing for MIN and MAX, so they come first.
        if self.function in ("MIN", "MAX"):
            return "distributive"
        if self.distinct or self.function == "MEDIAN":
            return "holistic"
        if self.declared is not None:
            return self.declared.category
        return "algebraic" if self.function == "AVG" else "distributive"

    @property
    def duplicate_sensitive(self) -> bool:
        """Whether the result changes when a value comes a second time."""
        if self.distinct or self.function in ("MIN", "MAX"):
            return False
        return self.declared is None or self.declared.duplicate_sensitive

    @property
    def type(self) -> Type:
        """The type of the result, as declared or else as in Spark."""
        if self.declared is not None:
            return self.declared.result
        if self.function == "COUNT" or self.argument is None:
            return BIGINT
        argument = self.argument.type
        if self.function in ("MIN", "MAX"):
            return argument
        if self.function == "MEDIAN":
            return DOUBLE
        if isinstance(argument, DecimalType):
            # SUM has ten digits more before the point, AVG four more behind it.
            return _wider(argument, 10, 0) if self.function == "SUM" else _wider(argument, 4, 4)
        whole_sum = self.function == "SUM" and not isinstance(argument, Double)
        return BIGINT if whole_sum else DOUBLE


def _wider(type_: DecimalType, digits: int, scale: int) -> DecimalType:
    return DecimalType(min(38, type_.precision + digits), min(38, type_.scale + scale))


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result."""

    name: str
    expression: Column | Aggregate

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class Origin:
    """The text of the statement that a query was read from, and where it begins."""

    text: str
    position: Position


@set_slots_directly
@dataclass(frozen=True, slots=True)
class Query:
    """A standing query: every name resolved, every expression typed.

    Parameters
    ----------
    id
        The name of the query, unique in its set.
    sources
        The streams of FROM, each under its alias.
    where
        The condition; TRUE where the query has none.
    outputs
        The select list. None means all columns (`SELECT *`).
    distinct
        Whether equal rows are given once.
    group_by
        The columns of GROUP BY, each once.
    metadata
        JSON text that belongs to whoever registered the query.
    origin
        The statement that the query was read from, unless it is a filter: a million filters do not
        carry their texts.

    Examples
    --------
    >>> from headgate.sql import Script
    >>> text = "CREATE STREAM s (a INT); CREATE QUERY q AS SELECT COUNT(*) FROM s WHERE a > 3"
    >>> _, query = Script(Schema()).read(text)
    >>> query.id, query.kind, query.stream_name
    ('q', 'aggregate', 's')
    """

    id: str
    sources: tuple[Source, ...]
    where: Predicate
    outputs: tuple[Output, ...] = ()
    distinct: bool = False
    group_by: tuple[Column, ...] = ()
    metadata: str | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Query {self.id!r}: {shorten(self._sql, 200)}>"

    def _repr_html_(self) -> str:
        fields = {"kind": self.kind, "SQL": self._sql, "metadata": self.metadata}
        return render_fields(f"query {self.id}", fields)

    @property
    def _sql(self) -> str:
        # The renderer knows queries, so that it cannot be imported above.
        from headgate.sql.render import render_select

        return render_select(self)

    @property
    def kind(self) -> Kind:
        """The kind of query; a filter decides on each event alone, the others have state.

        A window is a selection from the last rows of one stream.
        """
        # The order decides: an aggregate over a join is an aggregate.
        if self.group_by or any(isinstance(o.expression, Aggregate) for o in self.outputs):
            return "aggregate"
        if len(self.sources) > 1:
            return "join"
        if self.distinct:
            return "distinct"
        return "filter" if self.sources[0].rows is None else "window"

    @property
    def stream_name(self) -> str:
        """The name of the first source's stream; the only one for a filter."""
        return self.sources[0].stream.name

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that the query reads, each once, in the order of FROM."""
        by_name = {source.stream.name: source.stream for source in self.sources}
        return tuple(by_name.values())

    @property
    def schema(self) -> Schema:
        """The streams and the declared aggregates that the query uses."""
        used = (o.expression for o in self.outputs if isinstance(o.expression, Aggregate))
        declared = dict.fromkeys(a.declared for a in used if a.declared is not None)
        return Schema(self.streams, tuple(declared))


MAX_ID_LENGTH = 1_000  # characters
BAD_ID_TOPIC = "an id that is empty, too long or has a NUL"  # what such errors are grouped by


def find_id_problem(query_id: str) -> str:
    """Return why a text cannot be the id of a query; an empty text if it can.

    >>> find_id_problem("Zoë's 1st rule"), find_id_problem("")
    ('', 'the id of a query is empty; give it a name')
    """
    if not query_id:
        return "the id of a query is empty; give it a name"
    if len(query_id) > MAX_ID_LENGTH:
        length = f"{len(query_id):,} characters; the most is {MAX_ID_LENGTH:,}"
        return f"the id `{shorten(query_id)}` has {length}"
    return (
        f"the id `{shorten(query_id)}` holds a NUL character; leave it out"
        if "\0" in query_id
        else ""
    )


def find_attribute(query: Query, column: Column) -> Attribute:
    """Return the attribute that a column of a query stands for."""
    # With one source columns carry no alias, and the first source is the only one.
    source = next(s for s in query.sources if column.source in ("", s.alias))
    return source.stream[column.name]
