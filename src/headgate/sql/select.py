"""CREATE QUERY, from text to a bound query, and where each of its parts stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from headgate.errors import (
    Position,
    SqlSyntaxError,
    TooLarge,
    TypeMismatch,
    UnknownName,
    UnsupportedSql,
    did_you_mean,
)
from headgate.predicate import TRUE, Atom, Column, Predicate
from headgate.schema import Schema, Stream
from headgate.sql.binder import Binder, Node, WrittenTest
from headgate.sql.cursor import TEST_ENDS, Cursor, Extent
from headgate.sql.functions import AGGREGATES, LAST_ROWS
from headgate.sql.literals import add_article
from headgate.sql.parser import parse_select_tree
from headgate.sql.query import Aggregate, Origin, Output, Query, Source
from headgate.sql.scope import Scope

MAX_SOURCES = 64
MAX_ROWS = 1_000_000_000
_HOW_LAST_ROWS = "write last_rows(s, 100)"
_WHOLE = re.compile(r"[0-9]+")
_OUTPUT = "an attribute or an aggregate"


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query and where its parts stand, each in the order of the text.

    `groups` are the columns of GROUP BY as written, the same one twice too. `*` is no output.
    """

    query: Query
    tests: list[WrittenTest]
    outputs: list[Extent]
    sources: list[Extent]
    groups: list[tuple[Column, Extent]]


def bind_query(text: str, schema: Schema) -> BoundQuery:
    """Bind CREATE QUERY name AS SELECT … FROM … [WHERE …] [GROUP BY …]."""
    cursor = Cursor(text, frozenset(a.name.lower() for a in schema.aggregates))
    cursor.place = 2
    name = cursor.read_plain_name("a name for the query")
    cursor.expect("AS")
    if cursor.peek() != "SELECT":
        raise cursor.refuse_token("SELECT")
    return _Select(Binder(cursor, Scope(())), schema).bind(name)


class _Select:
    """The clauses of one SELECT; the binder gets its scope from FROM."""

    def __init__(self, binder: Binder, schema: Schema) -> None:
        self.binder = binder
        self.cursor = binder.cursor
        self.schema = schema
        self.sources: list[Source] = []
        self.source_extents: list[Extent] = []
        self.output_extents: list[Extent] = []
        self.groups: list[tuple[Column, Extent]] = []

    def bind(self, name: str) -> BoundQuery:
        """Bind all clauses; FROM comes first, since the others speak of its streams."""
        cursor, binder = self.cursor, self.binder
        select, from_ = cursor.place, self.find_from()
        cursor.place = from_ + 1
        binder.scope = self.bind_from()
        behind = cursor.place
        tree: Any = parse_select_tree(cursor.tokens[select : from_ + 1], cursor.tokens[behind:])
        while isinstance(tree, exp.SetOperation):
            tree = tree.this  # the second SELECT is refused where the first one ends
        # From here on the cursor walks the clauses in the order of the text, except FROM, which is
        # done.
        parts = tree.args if isinstance(tree, exp.Select) else {}
        cursor.place, cursor.clause = select + 1, "SELECT"
        distinct = cursor.accept("DISTINCT")
        outputs = self.bind_outputs(parts.get("expressions") or [])
        cursor.expect("FROM")
        cursor.place, cursor.clause = behind, "condition"
        where = self.bind_where(parts.get("where"))
        self.bind_group_by(parts.get("group"))
        cursor.expect_end()
        group_by = tuple(dict.fromkeys(column for column, _ in self.groups))
        self.check_grouping(outputs, group_by)
        query = Query(name, tuple(self.sources), where, outputs, distinct, group_by)
        return BoundQuery(
            query, binder.tests, self.output_extents, self.source_extents, self.groups
        )

    def find_from(self) -> int:
        """Return the place of FROM, which sqlglot does not see, outside all parentheses."""
        cursor, place = self.cursor, self.cursor.place
        while place < len(cursor.tokens):
            if cursor.words[place] == "FROM":
                return place
            # On to the next token, over what stands in parentheses.
            place = cursor.closing.get(place, place) + 1
        # none: go on to where it is missing
        cursor.place += 2 if cursor.peek(1) == "DISTINCT" else 1
        while cursor.accept("*") or cursor.skip_value():
            cursor.place = cursor.closing.get(cursor.place, cursor.place - 1) + 1
            cursor.read_alias()
            if not cursor.accept(","):
                break
        raise cursor.refuse_token("FROM")

    def bind_from(self) -> Scope:
        """Bind the streams of FROM, and return them by alias."""
        self.cursor.clause = "FROM"
        streams: dict[str, tuple[str, Stream]] = {}
        while True:
            if len(streams) == MAX_SOURCES:
                raise self.cursor.make_error(TooLarge, f"there are more than {MAX_SOURCES} streams")
            start = self.cursor.place
            source, extent = self.bind_source()
            self.sources.append(source)
            self.source_extents.append(self.cursor.extent(start))
            if source.alias.lower() in streams:
                message = f"`{source.alias}` stands twice in FROM"
                hint = "give each its own alias: FROM s AS x, s AS y"
                raise self.cursor.make_error(UnsupportedSql, message, hint, extent=extent)
            streams[source.alias.lower()] = (source.alias, source.stream)
            if not self.cursor.accept(","):
                return Scope(tuple(streams.values()))

    def bind_source(self) -> tuple[Source, Extent]:
        """Bind `stream [AS alias]` or `last_rows(stream, count) [AS alias]`."""
        cursor = self.cursor
        if cursor.accept("("):
            raise cursor.refuse("a subquery is not supported")
        # The only call in FROM is last_rows.
        windowed = cursor.peek(1) == "("
        if windowed:
            if cursor.tokens[cursor.place].name.lower() != LAST_ROWS:
                cursor.place += 1
                raise cursor.refuse_call()
            cursor.place += 2
        start = cursor.place
        name = cursor.read_plain_name("a stream")
        extent = cursor.extent(start)
        stream = self.schema.get(name)
        if stream is None:
            hint = did_you_mean(name, self.schema.names)
            raise cursor.make_error(UnknownName, f"no stream `{name}`", hint, extent=extent)
        rows = None
        if windowed:
            if not cursor.accept(","):
                message = f"{LAST_ROWS} takes a stream and a count"
                raise cursor.make_error(SqlSyntaxError, message, _HOW_LAST_ROWS)
            rows = self.read_row_count()
            cursor.expect(")")
        return Source(stream, cursor.read_alias() or stream.name, rows), extent

    def read_row_count(self) -> int:
        whole = _WHOLE.fullmatch(self.cursor.peek())
        rows = int(whole[0]) if whole else 0
        if not 1 <= rows <= MAX_ROWS:
            message = f"the count of {LAST_ROWS} is a whole number from 1 to {MAX_ROWS:,}"
            raise self.cursor.make_error(TypeMismatch, message, _HOW_LAST_ROWS)
        self.cursor.place += 1
        return rows

    def bind_outputs(self, items: list[exp.Expr]) -> tuple[Output, ...]:
        """Bind the select list; nothing for `*`."""
        if self.cursor.accept("*"):
            return ()
        outputs: list[Output] = []
        names: set[str] = set()
        for item in self.iter_items(items, _OUTPUT):
            start = self.cursor.place
            output = self.bind_output(item)
            extent = self.cursor.extent(start)
            # Names of outputs ignore case, as all names do.
            if output.name.lower() in names:
                message, hint = f"two columns `{output.name}`", "rename one with AS"
                raise self.cursor.make_error(UnsupportedSql, message, hint, extent=extent)
            names.add(output.name.lower())
            outputs.append(output)
            self.output_extents.append(extent)
        return tuple(outputs)

    def iter_items(self, items: list[exp.Expr], expected: str) -> Iterator[Node]:
        """Yield the nodes of a list, and step over the commas between them."""
        yield items[0] if items else None
        for item in items[1:]:
            if not self.cursor.accept(","):
                return
            yield item
        if self.cursor.accept(","):
            raise self.cursor.refuse_operand(expected)  # sqlglot drops a comma that nothing follows

    def bind_output(self, item: Node) -> Output:
        """Bind `attribute [AS name]` or `aggregate(…) [AS name]`."""
        node = item.this if isinstance(item, exp.Alias) else item
        expression: Column | Aggregate
        if isinstance(node, exp.Anonymous):
            expression = self.bind_aggregate(node)
            name = _default_name(expression)
        else:
            expression = self.bind_attribute(node, _OUTPUT, "FROM")
            name = expression.name
        return Output(self.cursor.read_alias() or name, expression)

    def bind_attribute(self, node: Node, expected: str, then: str) -> Column:
        """Bind an attribute by its name, without parentheses."""
        if not isinstance(node, exp.Column | exp.Dot):
            raise self.binder.refuse_node(node, expected, then)
        return self.binder.bind_column(expected)

    def bind_aggregate(self, node: exp.Anonymous) -> Aggregate:
        """Bind a call of a built-in aggregate or of one that the user declared."""
        cursor = self.cursor
        token = cursor.tokens[cursor.place]
        declared = self.schema.aggregate(token.name)
        if token.kind not in ("word", "quoted"):
            raise cursor.refuse_operand(_OUTPUT)
        cursor.place += 1
        if declared is None and (token.kind == "quoted" or token.word not in AGGREGATES):
            raise cursor.refuse_call()
        cursor.expect("(")
        # Only COUNT takes a star; it has no argument then.
        if cursor.peek() == "*":
            if declared is not None or token.word != "COUNT":
                hint = "`*` goes with COUNT; name an attribute"
                raise cursor.refuse(f"{token.text}(*) is not supported", hint)
            cursor.place += 1
            cursor.expect(")")
            return Aggregate("COUNT")
        distinct = cursor.accept("DISTINCT")
        argument: Any = node.expressions[0] if node.expressions else None
        # sqlglot puts DISTINCT between a call and its argument.
        if isinstance(argument, exp.Distinct):
            argument = argument.expressions[0] if argument.expressions else None
        start = cursor.place
        column = self.bind_attribute(argument, "an attribute", ")")
        extent = cursor.extent(start)
        cursor.expect(")")
        if declared is not None:
            # Any type of the family will do: an aggregate of DOUBLE takes an INT.
            if column.type.family != declared.argument.family:
                takes, actual = add_article(declared.argument.sql), add_article(column.type.sql)
                message = f"{declared.name} takes {takes}; `{column.key}` is {actual}"
                raise cursor.make_error(TypeMismatch, message, extent=extent)
            return Aggregate(declared.name, column, distinct, declared)
        function = token.word
        if function in ("SUM", "AVG", "MEDIAN") and not column.type.numeric:
            message = f"{function} needs a number; `{column.key}` is {add_article(column.type.sql)}"
            raise cursor.make_error(TypeMismatch, message, extent=extent)
        # MIN and MAX are the same with DISTINCT
        return Aggregate(function, column, distinct and function not in ("MIN", "MAX"))

    def bind_where(self, node: exp.Where | None) -> Predicate:
        if not self.cursor.accept("WHERE"):
            return TRUE
        return self.binder.bind(node.this if node is not None else None)

    def bind_group_by(self, node: exp.Group | None) -> None:
        if not self.cursor.accept("GROUP"):
            return
        self.cursor.expect("BY")
        for item in self.iter_items(node.expressions if node is not None else [], "an attribute"):
            start = self.cursor.place
            column = self.bind_attribute(item, "an attribute", TEST_ENDS)
            self.groups.append((column, self.cursor.extent(start)))

    def check_grouping(self, outputs: tuple[Output, ...], group_by: tuple[Column, ...]) -> None:
        """Refuse columns that are neither grouped nor aggregated, where there are groups."""
        if not group_by and not any(isinstance(o.expression, Aggregate) for o in outputs):
            return
        # Refused whatever GROUP BY lists.
        if not outputs:
            message = "`*` does not go with GROUP BY"
            raise self.cursor.make_error(UnsupportedSql, message, extent=self.groups[0][1])
        for output, extent in zip(outputs, self.output_extents, strict=True):
            if isinstance(output.expression, Column) and output.expression not in group_by:
                message = f"`{output.expression.key}` is neither grouped nor aggregated"
                hint = "add it to GROUP BY"
                raise self.cursor.make_error(UnsupportedSql, message, hint, extent=extent)


def _default_name(aggregate: Aggregate) -> str:
    """Return the name of an aggregate without an alias."""
    inner = aggregate.argument.name if aggregate.argument else "*"
    function = aggregate.function if aggregate.declared else aggregate.function.lower()
    return f"{function}({'DISTINCT ' if aggregate.distinct else ''}{inner})"


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of a statement as it was written, and where it begins."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a query's parts; all empty for a query that was not read from a statement.

    `conditions` has every atom of WHERE, in its order, with the test that says it; a test that says
    two, such as `a BETWEEN b AND c`, stands twice. `outputs` are by name, `sources` by alias.
    """

    conditions: tuple[tuple[Atom, Place], ...] = ()
    outputs: Mapping[str, Place] = field(default_factory=dict)
    groups: Mapping[Column, Place] = field(default_factory=dict)
    sources: Mapping[str, Place] = field(default_factory=dict)


def find_places(query: Query) -> Places:
    """Return where the parts of a query stand, by reading its statement again.

    >>> from headgate.sql import Script
    >>> from headgate.schema import Schema
    >>> script = Script(Schema())
    >>> _, query = script.read('''CREATE STREAM s (a INT);
    ... CREATE QUERY q AS SELECT DISTINCT a
    ... FROM last_rows(s, 9) WHERE a > 3''', "x.sql")
    >>> place = find_places(query).sources["s"]
    >>> place.text, str(place.position)
    ('last_rows(s, 9)', 'x.sql:3:6')
    """
    origin = query.origin
    if origin is None:
        return Places()
    bound = bind_query(origin.text, query.schema)
    place = _make_locator(origin)
    # A column may stand twice in GROUP BY; its first place is reported.
    groups: dict[Column, Place] = {}
    for column, extent in bound.groups:
        groups.setdefault(column, place(extent))
    outputs = zip(bound.query.outputs, bound.outputs, strict=True)
    sources = zip(bound.query.sources, bound.sources, strict=True)
    return Places(
        tuple((atom, place(test.extent)) for test in bound.tests for atom in test.atoms),
        {output.name: place(extent) for output, extent in outputs},
        groups,
        {source.alias: place(extent) for source, extent in sources},
    )


def _make_locator(origin: Origin) -> Callable[[Extent], Place]:
    """Return a function from offsets to places; lines are counted once for thousands of tests."""
    text = origin.text
    # Offsets at which lines begin; a search among them gives the line of an offset.
    lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(extent: Extent) -> Place:
        start, end = extent
        line = bisect_right(lines, start)
        inside = Position(None, line, start - lines[line - 1] + 1)
        return Place(text[start:end], inside.after(origin.position))

    return place
