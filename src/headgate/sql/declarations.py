"""CREATE STREAM and CREATE AGGREGATE, from text to what they declare."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.errors import TypeMismatch, UnknownName, UnsupportedSql, shorten
from headgate.predicate import (
    FALSE,
    TRUE,
    And,
    Constant,
    IsNull,
    Or,
    Predicate,
    Within,
    conjunction,
    disjunction,
    simplify,
    to_monotone,
)
from headgate.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    EVERYTHING,
    INT,
    NOTHING,
    STRING,
    Attribute,
    Category,
    DecimalType,
    DeclaredAggregate,
    Schema,
    Stream,
    Timestamp,
    Type,
    ValueSet,
)
from headgate.sql.binder import Binder
from headgate.sql.cursor import Cursor
from headgate.sql.functions import AGGREGATES
from headgate.sql.literals import add_article
from headgate.sql.parser import parse_condition_tree
from headgate.sql.scope import Scope

_DECIMAL_NAMES = frozenset(("DEC", "DECIMAL", "NUMERIC"))
# Types without parameters, under all their names. `read_type` makes DECIMAL and TIMESTAMP.
_TYPES: dict[str, Type] = {
    "BIGINT": BIGINT,
    "BOOLEAN": BOOLEAN,
    "DATE": DATE,
    "DOUBLE": DOUBLE,
    "INT": INT,
    "INTEGER": INT,
    "LONG": BIGINT,
    "STRING": STRING,
}
_ALL_TYPES = "BOOLEAN, INT, BIGINT, DECIMAL(p, s), DOUBLE, STRING, DATE and TIMESTAMP"
_HINTS_BY_TYPE = {
    "BYTE": "use INT",
    "CHAR": "use STRING",
    "FLOAT": "use DOUBLE",
    "REAL": "use DOUBLE",
    "SHORT": "use INT",
    "SMALLINT": "use INT",
    "STRUCT": "declare its fields as attributes with dotted names",
    "TEXT": "use STRING",
    "TIMESTAMP_LTZ": "use TIMESTAMP",
    "TIMESTAMP_NTZ": "use TIMESTAMP, which is read in the declared zone",
    "TINYINT": "use INT",
    "VARCHAR": "use STRING",
}
_CATEGORIES: dict[str, Category] = {
    "DISTRIBUTIVE": "distributive",
    "ALGEBRAIC": "algebraic",
    "HOLISTIC": "holistic",
}


@dataclass(frozen=True)
class Declarations:
    """A reader of the declarations of a script, given its schema so far and a time zone."""

    schema: Schema
    zone: str

    def read_stream(self, text: str) -> Stream:
        """Read CREATE STREAM name (attribute TYPE [NOT NULL] [CHECK (…)] [COMMENT '…'], …)."""
        cursor = _start_cursor(text)
        name = cursor.read_plain_name("a name for the stream")
        if self.schema.get(name) is not None:
            message = f"stream {name} is declared twice"
            raise cursor.make_error(UnsupportedSql, message, extent=cursor.extent(2))
        cursor.expect("(")
        attributes: dict[str, Attribute] = {}
        while not attributes or cursor.accept(","):
            attribute = self.read_attribute(cursor, attributes)
            attributes[attribute.name.lower()] = attribute
        cursor.expect(")")
        cursor.expect_end("the end")
        return Stream(name, tuple(attributes.values()))

    def read_aggregate(self, text: str) -> DeclaredAggregate:
        """Read CREATE AGGREGATE name (TYPE) RETURNS TYPE category [DUPLICATE …]."""
        cursor = _start_cursor(text)
        name = cursor.read_name_part("a name for the aggregate")
        problem = ""
        if name.upper() in AGGREGATES:
            problem = f"aggregate {name} is built in"
        elif self.schema.aggregate(name) is not None:
            problem = f"aggregate {name} is declared twice"
        if problem:
            hint = "give yours another name"
            raise cursor.make_error(UnsupportedSql, problem, hint, extent=cursor.extent(2))
        cursor.expect("(")
        argument = self.read_type(cursor)
        if cursor.peek() == ",":
            raise cursor.refuse("an aggregate takes one argument")
        cursor.expect(")")
        cursor.expect("RETURNS")
        result = self.read_type(cursor)
        category = _CATEGORIES.get(cursor.peek())
        if category is None:
            hint = "HOLISTIC promises nothing"
            raise cursor.refuse_token("DISTRIBUTIVE, ALGEBRAIC or HOLISTIC", hint)
        cursor.place += 1
        # An aggregate of which nothing is said counts duplicates.
        sensitive = True
        if cursor.accept("DUPLICATE"):
            sensitive = cursor.accept("SENSITIVE")
            if not sensitive and not cursor.accept("INSENSITIVE"):
                raise cursor.refuse_token("SENSITIVE or INSENSITIVE")
        cursor.expect_end("the end")
        return DeclaredAggregate(name, argument, result, category, sensitive)

    def read_attribute(self, cursor: Cursor, known: dict[str, Attribute]) -> Attribute:
        """Read `name TYPE` and the constraints behind it."""
        start = cursor.place
        name = ".".join(cursor.read_name("an attribute with a type"))
        if name.lower() in known:
            message = f"attribute `{name}` is declared twice"
            raise cursor.make_error(UnsupportedSql, message, extent=cursor.extent(start))
        attribute = Attribute(name, self.read_type(cursor))
        while cursor.peek() not in (",", ")"):
            attribute = self.read_constraint(cursor, attribute)
        return attribute

    def read_type(self, cursor: Cursor) -> Type:
        """Read a type and its parameters."""
        name = cursor.peek()
        if name not in _TYPES and name not in _DECIMAL_NAMES and name != "TIMESTAMP":
            if cursor.kind() != "word":
                raise cursor.refuse_token("a type")
            hint = _HINTS_BY_TYPE.get(name, f"the types are {_ALL_TYPES}")
            raise cursor.refuse(f"type {name} is not supported", hint)
        cursor.place += 1
        # Parameters are read for every type, so that INT(11) gets a message of its own.
        start = cursor.place + 1  # of the parameters
        parameters: list[str] = []
        if cursor.accept("("):
            while not parameters or cursor.accept(","):
                parameters.append(cursor.peek())
                if not cursor.accept_kind("number"):
                    raise cursor.refuse_token("a number")
            extent = cursor.extent(start)
            cursor.expect(")")
        if name in _DECIMAL_NAMES:
            decimal = _make_decimal(parameters)
            if decimal is not None:
                return decimal
            message = f"DECIMAL({', '.join(shorten(p, 20) for p in parameters)}) does not exist"
            hint = "DECIMAL(p, s) has 1 to 38 digits, s of them behind the point"
            raise cursor.make_error(TypeMismatch, message, hint, extent=extent)
        if parameters:
            message = f"{add_article(name)} takes no parameters"
            raise cursor.make_error(TypeMismatch, message, extent=extent)
        return Timestamp(self.zone) if name == "TIMESTAMP" else _TYPES[name]

    def read_constraint(self, cursor: Cursor, attribute: Attribute) -> Attribute:
        """Read NOT NULL, CHECK or COMMENT, and return the attribute with it."""
        if cursor.accept("NOT"):
            cursor.expect("NULL")
            return Attribute(attribute.name, attribute.type, attribute.domain, nullable=False)
        if cursor.accept("CHECK"):
            # All CHECKs of an attribute hold together.
            domain = attribute.domain.intersection(self.read_check(cursor, attribute))
            return Attribute(attribute.name, attribute.type, domain, attribute.nullable)
        # A comment is read and dropped.
        if not cursor.accept("COMMENT"):
            raise cursor.refuse_token("NOT NULL, CHECK or the next attribute")
        if not cursor.accept_kind("string"):
            raise cursor.refuse_token("a string")
        return attribute

    def read_check(self, cursor: Cursor, attribute: Attribute) -> ValueSet:
        """Read `(condition)`, and return the values that it leaves to the attribute."""
        opened = cursor.place
        cursor.expect("(")
        cursor.clause = "condition"
        # sqlglot sees only what is inside the parentheses of the CHECK; the binder walks on with
        # the same cursor, so that errors have their place in the statement.
        tree = parse_condition_tree(cursor.tokens[cursor.place : cursor.closing[opened]])
        binder = Binder(cursor, Scope.of(Stream("…", (attribute,))))
        try:
            domain = find_domain(binder.bind(tree))
        except UnknownName as error:
            message = f"the CHECK of `{attribute.name}` speaks of that attribute only"
            raise UnknownName(message, text=error.text, position=error.position) from None
        if domain is None:
            message = f"this CHECK does not limit `{attribute.name}` to a set of values"
            hint = "compare it with constants, or list its values with IN"
            extent = cursor.extent(opened + 1)
            raise cursor.make_error(UnsupportedSql, message, hint, extent=extent)
        cursor.expect(")")
        # Behind the CHECK come types again, which may have parentheses.
        cursor.clause = "declaration"
        return domain


def _start_cursor(text: str) -> Cursor:
    """Return a cursor behind the two words that say what is declared."""
    cursor = Cursor(text)
    cursor.place, cursor.clause = 2, "declaration"
    return cursor


def _make_decimal(parameters: list[str]) -> DecimalType | None:
    """Return DECIMAL(precision, scale); None where there is no such type."""
    if len(parameters) > 2 or not all(re.fullmatch("[0-9]{1,2}", p) for p in parameters):
        return None
    # DECIMAL is DECIMAL(10, 0), and DECIMAL(p) is DECIMAL(p, 0), as in Spark.
    precision, scale = [*map(int, parameters), *(10, 0)[len(parameters) :]]
    if not 1 <= precision <= 38 or scale > precision:
        return None
    return DecimalType(precision, scale)


def find_domain(check: Predicate) -> ValueSet | None:
    """Return the non-NULL values for which a CHECK is TRUE; None if no set says it.

    NULL passes every CHECK, so only values count: `a > 0 OR a IS NULL` allows what `a > 0` does.
    """
    # A condition on one attribute is now one set or a constant. What stays larger has patterns.
    allowed = simplify(_remove_null_tests(to_monotone(check)), only_true=True)
    if isinstance(allowed, Within):
        return allowed.values
    if isinstance(allowed, Constant):
        return EVERYTHING if allowed.value else NOTHING
    return None


def _remove_null_tests(check: Predicate) -> Predicate:
    if isinstance(check, And):
        return conjunction(_remove_null_tests(part) for part in check.parts)
    if isinstance(check, Or):
        return disjunction(_remove_null_tests(part) for part in check.parts)
    if isinstance(check, IsNull):
        return TRUE if check.negated else FALSE
    return check
