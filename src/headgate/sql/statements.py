"""Statements: CREATE STREAM, CREATE QUERY and SET TIME ZONE, from text to bound objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from headgate.errors import (
    Position,
    SqlError,
    SqlSyntaxError,
    TypeMismatch,
    UnknownName,
    UnsupportedSql,
    did_you_mean,
    shorten,
)
from headgate.predicate import TRUE, Column, Predicate
from headgate.query import Aggregate, AggregateFunction, Output, Query, Source
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Attribute,
    DecimalType,
    Schema,
    Stream,
    Timestamp,
    Type,
    ValueSet,
)
from headgate.sql import fast
from headgate.sql.dialect import parse
from headgate.sql.domain import domain_of
from headgate.sql.grammar import check_query, check_stream
from headgate.sql.lexer import Token, fail, statements, tokens
from headgate.sql.literals import article
from headgate.sql.scope import Scope
from headgate.sql.where import Binder

_KIND = exp.DataType.Type
_TYPES: dict[Any, Type] = {
    _KIND.BOOLEAN: BOOLEAN,
    _KIND.INT: INT,
    _KIND.BIGINT: BIGINT,
    _KIND.DOUBLE: DOUBLE,
    _KIND.TEXT: STRING,
    _KIND.DATE: DATE,
}
_AGGREGATES: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
    exp.Avg: "AVG",
    exp.Median: "MEDIAN",
}
_TIME_ZONE = re.compile(r"\s*SET\s+TIME\s+ZONE\s+'([^']*)'\s*", re.IGNORECASE)
_PLAIN_QUERY = re.compile(
    r"\s*CREATE\s+QUERY\s+([A-Za-z_]\w*|`[^`]+`)\s+AS\s+SELECT\s+\*\s+FROM\s+([A-Za-z_]\w*)\s+"
    r"WHERE\s+(\S.*)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_QUERY_NAME = re.compile(r"\s*CREATE\s+QUERY\s+([A-Za-z_]\w*|`[^`]+`)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A statement that was not accepted: the error, and the query's id where it is known."""

    error: SqlError
    id: str | None = None


@dataclass
class Script:
    """Reads statements one after the other; each sees the streams declared before it."""

    schema: Schema
    zone: str = "UTC"
    place: Position = field(default_factory=Position)  # where the statement just read begins
    _known: dict[str, tuple[Scope, dict[str, Predicate]]] = field(default_factory=dict, repr=False)

    def read(self, text: str, file: str | None = None) -> Iterator[Query | Stream | Rejected]:
        """What each statement declares. Streams are added to the schema on the way."""
        lines = _Lines(text, file)
        for start, statement in statements(text):
            self.place = lines.position(start)
            try:
                found = self.statement(statement)
            except SqlError as error:
                yield Rejected(error.located(self.place), _id_in(statement))
                continue
            if isinstance(found, Stream):
                self.schema = self.schema.with_streams((found,))
            if found is not None:
                yield found

    def statement(self, text: str) -> Query | Stream | None:
        """One statement; None for SET TIME ZONE."""
        plain = _PLAIN_QUERY.fullmatch(text)
        if plain:
            query = self.plain_query(plain)
            if query is not None:
                return query
        words = [token for token, _ in zip(tokens(text), range(2), strict=False)]
        kind = " ".join(token.word for token in words)
        if kind == "CREATE STREAM":
            return self.stream(text, words[1])
        if kind == "CREATE QUERY":
            return self.query(text, words[1])
        if kind == "SET TIME":
            self.zone = self.time_zone(text)
            return None
        start, end = (words[0].start, words[-1].end) if words else (0, len(text))
        hint = "a file of queries holds CREATE STREAM, CREATE QUERY and SET TIME ZONE"
        what = f"{kind} is not supported"
        raise fail(UnsupportedSql, text, start, end - start, what, hint, topic=what)

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

    def stream(self, text: str, keyword: Token) -> Stream:
        """CREATE STREAM name (attribute TYPE [NOT NULL] [CHECK (…)], …)."""
        create = self.parsed(check_stream(text), keyword)
        binder = Binder(text, Scope(()))
        binder.only(create, "this", "kind")
        schema = create.this
        if not isinstance(schema, exp.Schema):
            raise binder.error(SqlSyntaxError, create, "CREATE STREAM needs a list of attributes")
        binder.only(schema, "this", "expressions")
        name = self.name(binder, schema.this)
        if self.schema.get(name) is not None:
            raise binder.error(UnsupportedSql, schema.this, f"stream {name} is declared twice")
        attributes: dict[str, Attribute] = {}
        for item in schema.expressions:
            attribute = self.attribute(binder, item)
            if attribute.name.lower() in attributes:
                message = f"attribute `{attribute.name}` is declared twice"
                raise binder.error(UnsupportedSql, item, message)
            attributes[attribute.name.lower()] = attribute
        return Stream(name, tuple(attributes.values()))

    def attribute(self, binder: Binder, item: exp.Expr) -> Attribute:
        if not isinstance(item, exp.ColumnDef) or item.args.get("kind") is None:
            hint = "write `price DECIMAL(10, 2)`, and CHECK behind the attribute that it limits"
            raise binder.error(UnsupportedSql, item, "an attribute with a type is expected", hint)
        binder.only(item, "this", "kind", "constraints")
        parts = sorted(item.this.find_all(exp.Identifier), key=lambda part: part.meta["start"])
        name = ".".join(part.name for part in parts)
        type_ = self.type(binder, item.args["kind"])
        attribute = Attribute(name, type_)
        for constraint in item.args.get("constraints") or ():
            attribute = self.constrained(binder, attribute, constraint)
        return attribute

    def type(self, binder: Binder, node: exp.DataType) -> Type:
        kind = node.this
        if kind in _TYPES and not node.expressions:
            return _TYPES[kind]
        if kind == _KIND.TIMESTAMPTZ:
            return Timestamp(self.zone)
        if kind == _KIND.DECIMAL:
            written = [parameter.name for parameter in node.expressions]
            if len(written) <= 2 and all(re.fullmatch(r"\d{1,2}", digits) for digits in written):
                precision, scale = [int(d) for d in written] + [10, 0][len(written) :]
                if 1 <= precision <= 38 and 0 <= scale <= precision:
                    return DecimalType(precision, scale)
            message = f"DECIMAL({', '.join(shorten(w, 20) for w in written)}) does not exist"
            hint = "DECIMAL(p, s) has 1 to 38 digits, s of them behind the point"
            raise binder.error(TypeMismatch, node.parent or node, message, hint)
        message = f"{article(str(getattr(kind, 'value', kind)))} takes no parameters"
        raise binder.error(TypeMismatch, node.parent or node, message)

    def constrained(self, binder: Binder, attribute: Attribute, node: exp.Expr) -> Attribute:
        kind = node.args.get("kind")
        if isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"):
            return Attribute(attribute.name, attribute.type, attribute.domain, nullable=False)
        if isinstance(kind, exp.CommentColumnConstraint):
            return attribute
        if not isinstance(kind, exp.CheckColumnConstraint):
            what = type(kind).__name__.removesuffix("ColumnConstraint").upper()
            raise binder.error(UnsupportedSql, node, f"{what} is not supported on an attribute")
        alone = Stream("…", (attribute,))
        checker = Binder(binder.text, Scope.of(alone))
        try:
            domain = domain_of(checker.condition(kind.this))
        except UnknownName as error:
            message = f"the CHECK of `{attribute.name}` speaks of that attribute only"
            raise UnknownName(message, text=error.text, position=error.position) from None
        if domain is None:
            message = f"this CHECK does not limit `{attribute.name}` to a set of values"
            hint = "compare it with constants, or list its values with IN"
            raise binder.error(UnsupportedSql, kind, message, hint)
        both: ValueSet = attribute.domain.intersection(domain)
        return Attribute(attribute.name, attribute.type, both, attribute.nullable)

    def query(self, text: str, keyword: Token) -> Query:
        """CREATE QUERY name AS SELECT … FROM … [WHERE …] [GROUP BY …]."""
        create = self.parsed(check_query(text), keyword)
        binder = Binder(text, Scope(()))
        binder.only(create, "this", "kind", "expression")
        select = create.args.get("expression")
        if not isinstance(create.this, exp.Table) or not isinstance(select, exp.Select):
            raise binder.error(SqlSyntaxError, create, "CREATE QUERY name AS SELECT … is expected")
        binder.only(select, "expressions", "from_", "joins", "where", "group", "distinct", "kind")
        binder.scope = self.scope(binder, select)
        where = select.args.get("where")
        condition: Predicate = binder.condition(where.this) if where else TRUE
        group_by = self.group_by(binder, select)
        outputs = self.outputs(binder, select)
        _check_grouping(binder, select, outputs, group_by)
        return Query(
            id=self.name(binder, create.this),
            sources=tuple(Source(stream.name, alias) for alias, stream in binder.scope.sources),
            where=condition,
            outputs=outputs,
            distinct=select.args.get("distinct") is not None,
            group_by=group_by,
        )

    def scope(self, binder: Binder, select: exp.Select) -> Scope:
        """The streams of FROM by alias."""
        tables = [select.args["from_"].this]
        tables += [join.this for join in select.args.get("joins") or ()]
        sources: dict[str, tuple[str, Stream]] = {}
        for table in tables:
            alias, stream = self.source(binder, table)
            if alias.lower() in sources:
                hint = "give each its own alias: FROM s AS x, s AS y"
                raise binder.error(UnsupportedSql, table, f"`{alias}` stands twice in FROM", hint)
            sources[alias.lower()] = (alias, stream)
        return Scope(tuple(sources.values()))

    def source(self, binder: Binder, table: exp.Expr) -> tuple[str, Stream]:
        if not isinstance(table, exp.Table):
            raise binder.unsupported(table)
        binder.only(table, "this", "alias")
        name = self.name(binder, table)
        stream = self.schema.get(name)
        if stream is None:
            hint = did_you_mean(name, self.schema.names)
            raise binder.error(UnknownName, table, f"no stream `{name}`", hint)
        return table.alias or stream.name, stream

    def name(self, binder: Binder, node: exp.Expr) -> str:
        """A name without dots in front."""
        identifier = node.this
        if not isinstance(identifier, exp.Identifier) or node.args.get("db"):
            raise binder.error(UnsupportedSql, node, "a plain name is expected here")
        return str(identifier.this)

    def parsed(self, text: str, keyword: Token) -> exp.Expr:
        """The statement with its keyword replaced by one that sqlglot knows, of the same length."""
        known = text[: keyword.start] + "TABLE".ljust(len(keyword.text)) + text[keyword.end :]
        create = parse(known)
        if not isinstance(create, exp.Create):
            raise SqlSyntaxError(f"CREATE {keyword.word} is not complete", text=text)
        return create

    def group_by(self, binder: Binder, select: exp.Select) -> tuple[Column, ...]:
        group = select.args.get("group")
        if group is None:
            return ()
        binder.only(group, "expressions")
        return tuple(dict.fromkeys(binder.tested(item) for item in group.expressions))

    def outputs(self, binder: Binder, select: exp.Select) -> tuple[Output, ...]:
        """The select list; nothing for `*` alone."""
        items = select.expressions
        if len(items) == 1 and isinstance(items[0], exp.Star):
            binder.only(items[0])
            return ()
        outputs = tuple(self.output(binder, item) for item in items)
        seen: set[str] = set()
        for output, item in zip(outputs, items, strict=True):
            if output.name.lower() in seen:
                hint = "rename one with AS"
                raise binder.error(UnsupportedSql, item, f"two columns `{output.name}`", hint)
            seen.add(output.name.lower())
        return outputs

    def output(self, binder: Binder, item: exp.Expr) -> Output:
        alias = item.alias if isinstance(item, exp.Alias) else ""
        node = item.this if isinstance(item, exp.Alias) else item
        if type(node) in _AGGREGATES:
            aggregate = self.aggregate(binder, node)
            return Output(alias or _written(aggregate), aggregate)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and node.is_star):
            raise binder.error(UnsupportedSql, item, "`*` stands alone", "or name the attributes")
        column = binder.tested(node)
        return Output(alias or column.name, column)

    def aggregate(self, binder: Binder, node: exp.Expr) -> Aggregate:
        binder.only(node, "this", "big_int")
        function, argument = _AGGREGATES[type(node)], node.this
        distinct = isinstance(argument, exp.Distinct)
        if distinct:
            binder.only(argument, "expressions")
            if len(argument.expressions) != 1:
                raise binder.error(UnsupportedSql, node, "DISTINCT takes one attribute here")
            argument = argument.expressions[0]
        if isinstance(argument, exp.Star):
            return Aggregate("COUNT")
        column = binder.tested(argument)
        if function in ("SUM", "AVG", "MEDIAN") and not column.type.numeric:
            message = f"{function} needs a number; `{column.key}` is {article(column.type.sql)}"
            raise binder.error(TypeMismatch, argument, message)
        if function in ("MIN", "MAX"):
            distinct = False  # DISTINCT changes nothing there
        return Aggregate(function, column, distinct)


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


def _check_grouping(
    binder: Binder, select: exp.Select, outputs: tuple[Output, ...], group_by: tuple[Column, ...]
) -> None:
    """Beside aggregates, only grouped columns may be selected."""
    grouped = bool(group_by) or any(isinstance(o.expression, Aggregate) for o in outputs)
    if not grouped:
        return
    if not outputs:
        raise binder.error(UnsupportedSql, select, "`*` does not go with GROUP BY")
    for output, item in zip(outputs, select.expressions, strict=True):
        if isinstance(output.expression, Column) and output.expression not in group_by:
            message = f"`{output.expression.key}` is neither grouped nor aggregated"
            raise binder.error(UnsupportedSql, item, message, "add it to GROUP BY")


def _written(aggregate: Aggregate) -> str:
    """The name of an aggregate without an alias."""
    inner = aggregate.argument.name if aggregate.argument else "*"
    return f"{aggregate.function.lower()}({'DISTINCT ' if aggregate.distinct else ''}{inner})"


def _id_in(statement: str) -> str | None:
    match = _QUERY_NAME.match(statement)
    return match[1].strip("`") if match else None
