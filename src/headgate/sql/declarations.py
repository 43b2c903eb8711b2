"""CREATE STREAM and CREATE AGGREGATE, from text to what they declare."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headgate.errors import SqlSyntaxError, TypeMismatch, UnknownName, UnsupportedSql, shorten
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Attribute,
    DecimalType,
    DeclaredAggregate,
    Schema,
    Stream,
    Timestamp,
    Type,
    ValueSet,
)
from headgate.sql.calls import AGGREGATES
from headgate.sql.dialect import parse
from headgate.sql.domain import domain_of
from headgate.sql.grammar import Extent
from headgate.sql.lexer import fail
from headgate.sql.literals import article
from headgate.sql.scope import Scope
from headgate.sql.statement_grammar import check_aggregate, check_stream
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


@dataclass(frozen=True)
class Declarations:
    """Binds the declarations of a script: to a schema so far, in a time zone."""

    schema: Schema
    zone: str

    def stream(self, text: str) -> Stream:
        """CREATE STREAM name (attribute TYPE [NOT NULL] [CHECK (…)], …)."""
        create = parse(check_stream(text))
        binder = Binder(text, Scope(()))
        binder.only(create, "this", "kind")
        schema = create.this
        if not isinstance(create, exp.Create) or not isinstance(schema, exp.Schema):
            raise binder.error(SqlSyntaxError, create, "CREATE STREAM needs a list of attributes")
        binder.only(schema, "this", "expressions")
        name = binder.plain_name(schema.this)
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

    def aggregate(self, text: str) -> DeclaredAggregate:
        """CREATE AGGREGATE name (TYPE) RETURNS TYPE category [DUPLICATE …]."""
        written = check_aggregate(text)
        name, token = written.name.name, written.name
        problem = ""
        if name.upper() in AGGREGATES:
            problem = f"aggregate {name} is built in"
        elif self.schema.aggregate(name) is not None:
            problem = f"aggregate {name} is declared twice"
        if problem:
            hint = "give yours another name"
            raise fail(UnsupportedSql, text, token.start, len(token.text), problem, hint)
        return DeclaredAggregate(
            name,
            self.type_at(written.text, written.argument),
            self.type_at(written.text, written.result),
            written.category,
            written.duplicate_sensitive,
        )

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

    def type_at(self, text: str, extent: Extent) -> Type:
        """The type that stands alone at a place of the text."""
        start, end = extent
        node = parse(" " * start + text[start:end], exp.DataType)
        if not isinstance(node, exp.DataType):
            raise fail(SqlSyntaxError, text, start, end - start, "a type is expected here")
        return self.type(Binder(text, Scope(())), node)

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
