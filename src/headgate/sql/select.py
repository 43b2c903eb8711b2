"""CREATE QUERY, from text to a bound query, and what was bound where."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headgate.errors import (
    SqlSyntaxError,
    TypeMismatch,
    UnknownName,
    UnsupportedSql,
    did_you_mean,
)
from headgate.predicate import TRUE, Atom, Column, Predicate
from headgate.schema import Schema, Stream
from headgate.sql.dialect import parse
from headgate.sql.lexer import tokens
from headgate.sql.literals import article
from headgate.sql.query import Aggregate, AggregateFunction, Output, Query, Source
from headgate.sql.scope import Scope
from headgate.sql.statement_grammar import QueryText, check_query
from headgate.sql.where import Binder

_AGGREGATES: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
    exp.Avg: "AVG",
    exp.Median: "MEDIAN",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A query, where its parts stand, and the atoms of each test that its WHERE writes.

    `groups` are the columns of GROUP BY as written, the same one twice too.
    """

    query: Query
    written: QueryText
    tests: list[tuple[Atom, ...]]
    groups: tuple[Column, ...]


def bind_query(text: str, schema: Schema) -> Bound:
    """CREATE QUERY name AS SELECT … FROM … [WHERE …] [GROUP BY …]."""
    written = check_query(text, frozenset(a.name.lower() for a in schema.aggregates))
    create = parse(written.text)
    binder = Binder(text, Scope(()))
    binder.only(create, "this", "kind", "expression")
    select = create.args.get("expression")
    if not isinstance(create.this, exp.Table) or not isinstance(select, exp.Select):
        raise binder.error(SqlSyntaxError, create, "CREATE QUERY name AS SELECT … is expected")
    binder.only(select, "expressions", "from_", "joins", "where", "group", "distinct", "kind")
    return _Select(binder, schema, select, written).bound(binder.plain_name(create.this))


@dataclass(frozen=True, slots=True)
class _Select:
    """The clauses of one SELECT; the binder gets its scope from FROM."""

    binder: Binder
    schema: Schema
    select: exp.Select
    written: QueryText

    def bound(self, name: str) -> Bound:
        binder, select = self.binder, self.select
        binder.scope = self.scope()
        where = select.args.get("where")
        condition: Predicate = binder.condition(where.this) if where else TRUE
        groups = self.groups()
        outputs = self.outputs()
        group_by = tuple(dict.fromkeys(groups))
        self.check_grouping(outputs, group_by)
        streams = zip(binder.scope.sources, self.written.rows, strict=True)
        query = Query(
            id=name,
            sources=tuple(Source(stream, alias, rows) for (alias, stream), rows in streams),
            where=condition,
            outputs=outputs,
            distinct=select.args.get("distinct") is not None,
            group_by=group_by,
        )
        return Bound(query, self.written, binder.bound, groups)

    def scope(self) -> Scope:
        """The streams of FROM by alias."""
        tables = [self.select.args["from_"].this]
        tables += [join.this for join in self.select.args.get("joins") or ()]
        sources: dict[str, tuple[str, Stream]] = {}
        for table in tables:
            alias, stream = self.source(table)
            if alias.lower() in sources:
                message = f"`{alias}` stands twice in FROM"
                hint = "give each its own alias: FROM s AS x, s AS y"
                raise self.binder.error(UnsupportedSql, table, message, hint)
            sources[alias.lower()] = (alias, stream)
        return Scope(tuple(sources.values()))

    def source(self, table: exp.Expr) -> tuple[str, Stream]:
        if not isinstance(table, exp.Table):
            raise self.binder.unsupported(table)
        self.binder.only(table, "this", "alias")
        name = self.binder.plain_name(table)
        stream = self.schema.get(name)
        if stream is None:
            hint = did_you_mean(name, self.schema.names)
            raise self.binder.error(UnknownName, table, f"no stream `{name}`", hint)
        return table.alias or stream.name, stream

    def groups(self) -> tuple[Column, ...]:
        group = self.select.args.get("group")
        if group is None:
            return ()
        self.binder.only(group, "expressions")
        return tuple(self.binder.tested(item) for item in group.expressions)

    def outputs(self) -> tuple[Output, ...]:
        """The select list; nothing for `*` alone."""
        items = self.select.expressions
        if len(items) == 1 and isinstance(items[0], exp.Star):
            self.binder.only(items[0])
            return ()
        outputs = tuple(self.output(item) for item in items)
        seen: set[str] = set()
        for output, item in zip(outputs, items, strict=True):
            if output.name.lower() in seen:
                message = f"two columns `{output.name}`"
                raise self.binder.error(UnsupportedSql, item, message, "rename one with AS")
            seen.add(output.name.lower())
        return outputs

    def output(self, item: exp.Expr) -> Output:
        alias = item.alias if isinstance(item, exp.Alias) else ""
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Anonymous) or type(node) in _AGGREGATES:
            own = isinstance(node, exp.Anonymous)
            aggregate = self.declared(node) if own else self.built_in(node)
            return Output(alias or _written(aggregate), aggregate)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and node.is_star):
            hint = "or name the attributes"
            raise self.binder.error(UnsupportedSql, item, "`*` stands alone", hint)
        column = self.binder.tested(node)
        return Output(alias or column.name, column)

    def built_in(self, node: exp.Expr) -> Aggregate:
        """COUNT, SUM, MIN, MAX, AVG or MEDIAN."""
        self.binder.only(node, "this", "big_int")
        function = _AGGREGATES[type(node)]
        if isinstance(node.this, exp.Star):
            return Aggregate("COUNT")
        column, distinct = self.argument(node.this)
        if function in ("SUM", "AVG", "MEDIAN") and not column.type.numeric:
            message = f"{function} needs a number; `{column.key}` is {article(column.type.sql)}"
            raise self.binder.error(TypeMismatch, node.this, message)
        if function in ("MIN", "MAX"):
            distinct = False  # DISTINCT changes nothing there
        return Aggregate(function, column, distinct)

    def declared(self, node: exp.Expr) -> Aggregate:
        """One of the user's, by the name that stands where the node does."""
        self.binder.only(node, "this", "expressions")
        start, end = int(node.meta["start"]), int(node.meta["end"]) + 1
        (name,) = tokens(self.binder.text[start:end])
        declared = self.schema.aggregate(name.name)
        if declared is None:
            raise self.binder.unsupported(node)
        column, distinct = self.argument(node.expressions[0])
        if column.type.family != declared.argument.family:
            takes, given = article(declared.argument.sql), article(column.type.sql)
            message = f"{declared.name} takes {takes}; `{column.key}` is {given}"
            raise self.binder.error(TypeMismatch, node.expressions[0], message)
        return Aggregate(declared.name, column, distinct, declared)

    def argument(self, node: exp.Expr) -> tuple[Column, bool]:
        """The attribute that is aggregated, and whether it says DISTINCT."""
        if not isinstance(node, exp.Distinct):
            return self.binder.tested(node), False
        self.binder.only(node, "expressions")
        if len(node.expressions) != 1:
            raise self.binder.error(UnsupportedSql, node, "DISTINCT takes one attribute here")
        return self.binder.tested(node.expressions[0]), True

    def check_grouping(self, outputs: tuple[Output, ...], group_by: tuple[Column, ...]) -> None:
        """Beside aggregates, only grouped columns may be selected."""
        grouped = bool(group_by) or any(isinstance(o.expression, Aggregate) for o in outputs)
        if not grouped:
            return
        if not outputs:
            message = "`*` does not go with GROUP BY"
            raise self.binder.error(UnsupportedSql, self.select, message)
        for output, item in zip(outputs, self.select.expressions, strict=True):
            if isinstance(output.expression, Column) and output.expression not in group_by:
                message = f"`{output.expression.key}` is neither grouped nor aggregated"
                raise self.binder.error(UnsupportedSql, item, message, "add it to GROUP BY")


def _written(aggregate: Aggregate) -> str:
    """The name of an aggregate without an alias."""
    inner = aggregate.argument.name if aggregate.argument else "*"
    function = aggregate.function if aggregate.declared else aggregate.function.lower()
    return f"{function}({'DISTINCT ' if aggregate.distinct else ''}{inner})"
