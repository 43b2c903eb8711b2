"""Statements of the language as a grammar; `grammar` has it in full, and the conditions.

Where sqlglot lacks a construct, it is given a text of the same length without it, so that offsets
stay: `last_rows(s, 100)` becomes `s`, and the name of a declared aggregate a name that is nobody's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from headgate.errors import SqlSyntaxError, TypeMismatch
from headgate.schema import Category
from headgate.sql.calls import AGGREGATES, LAST_ROWS
from headgate.sql.grammar import UNSUPPORTED, Extent, Grammar
from headgate.sql.lexer import Token
from headgate.sql.words import RESERVED

_TYPES = frozenset(
    "BIGINT BOOLEAN DATE DEC DECIMAL DOUBLE INT INTEGER LONG NUMERIC STRING TIMESTAMP".split()
)
_ALL_TYPES = "BOOLEAN, INT, BIGINT, DECIMAL(p, s), DOUBLE, STRING, DATE and TIMESTAMP"
_NEAREST = {
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
MAX_SOURCES = 64
MAX_ROWS = 1_000_000_000
_HOW_LAST_ROWS = "write last_rows(s, 100)"
_WHOLE = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class QueryText:
    """A CREATE QUERY as sqlglot may read it, and where its parts stand, in their order.

    `rows` are those of the sources; `*` alone is no output.
    """

    text: str
    outputs: list[Extent]
    sources: list[Extent]
    rows: list[int | None]
    tests: list[Extent]
    groups: list[Extent]


@dataclass(frozen=True, slots=True)
class AggregateText:
    """The parts of a CREATE AGGREGATE, and its text without comments."""

    text: str
    name: Token
    argument: Extent
    result: Extent
    category: Category
    duplicate_sensitive: bool


def check_query(text: str, declared: frozenset[str]) -> QueryText:
    """Raises unless the text is a CREATE QUERY; `declared` are aggregates in lower case."""
    grammar = _Statement(text, declared)
    grammar.query()
    return QueryText(
        grammar.as_table(),
        grammar.outputs,
        grammar.sources,
        grammar.rows,
        grammar.tests,
        grammar.groups,
    )


def check_stream(text: str) -> str:
    """The text as sqlglot may read it; raises unless it is a CREATE STREAM statement."""
    grammar = _Statement(text)
    grammar.stream()
    return grammar.as_table()


def check_aggregate(text: str) -> AggregateText:
    """The parts of the text; raises unless it is a CREATE AGGREGATE statement."""
    grammar = _Statement(text)
    return grammar.aggregate()


class _Statement(Grammar):
    def __init__(self, text: str, declared: frozenset[str] = frozenset()) -> None:
        super().__init__(text)
        self.declared = declared
        self.outputs: list[Extent] = []
        self.sources: list[Extent] = []
        self.rows: list[int | None] = []
        self.groups: list[Extent] = []

    def replace(self, place: int, text: str) -> None:
        """Let sqlglot see this in a token's place, which is no shorter."""
        token = self.tokens[place]
        self.tokens[place] = token._replace(text=text.ljust(len(token.text)))

    def as_table(self) -> str:
        """The text at its end, with a keyword that sqlglot knows."""
        self.replace(1, "TABLE")
        return self.end()

    # Queries

    def query(self) -> None:
        self.place = 2
        self.name("a name for the query")
        self.expect("AS")
        self.expect("SELECT")
        self.clause = "SELECT"
        self.accept("DISTINCT")
        if not self.accept("*"):
            self.listed(lambda: self.noted(self.output, self.outputs))
        self.expect("FROM")
        self.clause = "FROM"
        self.listed(lambda: self.noted(self.source_stream, self.sources), MAX_SOURCES)
        self.clause = "condition"
        if self.accept("WHERE"):
            self.condition()
        if self.accept("GROUP"):
            self.expect("BY")
            self.listed(lambda: self.noted(lambda: self.name("an attribute"), self.groups))

    def noted(self, part: Callable[[], None], extents: list[Extent]) -> None:
        """Step over a part, and note where it stood."""
        start = self.place
        part()
        extents.append(self.extent(start))

    def output(self) -> None:
        start = self.place
        self.name("an attribute or an aggregate")
        if self.peek() == "(":
            self.call(start)
        self.alias()

    def call(self, start: int) -> None:
        """What follows the name of an aggregate."""
        if self.place > start + 1:
            raise self.unsupported("a function has a plain name")
        name = self.tokens[start]
        own = name.name.lower() in self.declared
        if not own and (name.kind == "quoted" or name.word not in AGGREGATES):
            raise self.refused(name)
        self.place += 1
        if self.peek() == "*" and (own or name.word != "COUNT"):
            hint = "`*` goes with COUNT; name an attribute"
            raise self.unsupported(f"{name.text}(*) is not supported", hint)
        if not self.accept("*"):
            self.accept("DISTINCT")
            self.name("an attribute")
        self.expect(")")
        if own:
            self.replace(start, "_" * len(name.text))

    def source_stream(self) -> None:
        if self.peek() == "(":
            self.place += 1
            raise self.unsupported("a subquery is not supported")
        if self.peek(1) == "(":
            self.rows.append(self.last_rows())
        else:
            self.name("a stream")
            self.rows.append(None)
        self.alias()

    def last_rows(self) -> int:
        """`last_rows(stream, count)`, of which sqlglot sees the stream."""
        start = self.place
        name = self.tokens[start]
        if name.name.lower() != LAST_ROWS:
            raise self.refused(name)
        self.place += 2
        self.name("a stream")
        comma = self.place
        if not self.accept(","):
            message = f"{LAST_ROWS} takes a stream and a count"
            raise self.error(SqlSyntaxError, message, _HOW_LAST_ROWS)
        rows = self.row_count()
        self.close(start + 1)
        for place in (start, start + 1, comma, comma + 1, comma + 2):
            self.replace(place, "")
        return rows

    def row_count(self) -> int:
        token = self.token()
        whole = token is not None and _WHOLE.fullmatch(token.text)
        rows = int(whole[0]) if whole else 0
        if not 1 <= rows <= MAX_ROWS:
            message = f"the count of {LAST_ROWS} is a whole number from 1 to {MAX_ROWS:,}"
            raise self.error(TypeMismatch, message, _HOW_LAST_ROWS)
        self.place += 1
        return rows

    def alias(self) -> None:
        """`AS name`, or a name alone where no clause begins."""
        if self.accept("AS"):
            self.name_part("a name")
        elif self.kind() == "quoted" or (
            self.kind() == "word" and self.peek() not in RESERVED | UNSUPPORTED
        ):
            self.place += 1

    # Declarations

    def aggregate(self) -> AggregateText:
        self.clause = "declaration"
        self.place = 2
        self.name_part("a name for the aggregate")
        name = self.tokens[2]
        self.expect("(")
        argument = self.type()
        if self.peek() == ",":
            raise self.unsupported("an aggregate takes one argument")
        self.expect(")")
        self.expect("RETURNS")
        result = self.type()
        category = _CATEGORIES.get(self.peek())
        if category is None:
            hint = "HOLISTIC promises nothing"
            raise self.unexpected("DISTRIBUTIVE, ALGEBRAIC or HOLISTIC", hint)
        self.place += 1
        sensitive = True
        if self.accept("DUPLICATE"):
            sensitive = self.accept("SENSITIVE")
            if not sensitive and not self.accept("INSENSITIVE"):
                raise self.unexpected("SENSITIVE or INSENSITIVE")
        text = self.end("the end")
        return AggregateText(text, name, argument, result, category, sensitive)

    def stream(self) -> None:
        self.clause = "declaration"
        self.place = 2
        self.name("a name for the stream")
        self.expect("(")
        if self.peek() == ")":
            raise self.unexpected("an attribute with a type")
        self.listed(self.attribute)
        self.expect(")")

    def attribute(self) -> None:
        self.name("an attribute with a type")
        self.type()
        while self.constraint():
            pass

    def type(self) -> Extent:
        start = self.place
        if self.peek() not in _TYPES:
            if self.kind() != "word":
                raise self.unexpected("a type")
            what = f"type {self.peek()} is not supported"
            raise self.unsupported(what, _NEAREST.get(self.peek(), f"the types are {_ALL_TYPES}"))
        self.place += 1
        if self.accept("("):
            self.listed(self.parameter)
            self.expect(")")
        return self.extent(start)

    def parameter(self) -> None:
        if not self.accept_kind("number"):
            raise self.unexpected("a number")

    def constraint(self) -> bool:
        if self.accept("NOT"):
            self.expect("NULL")
        elif self.accept("CHECK"):
            self.expect("(")
            self.condition()
            self.expect(")")
        elif self.accept("COMMENT"):
            if not self.accept_kind("string"):
                raise self.unexpected("a string")
        elif self.peek() not in (",", ")"):
            raise self.unexpected("NOT NULL, CHECK or the next attribute")
        else:
            return False
        return True
