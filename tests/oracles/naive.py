r"""The meaning of a WHERE clause, from its text alone, written without the product.

A parser of Spark's grammar by hand, and three-valued logic over Python's exact numbers. Nothing is
normalised, nothing is fast; every clause is what the contract says, word for word.

>>> naive("a > 3.5 OR b IS NULL", {"a": 4, "b": None}, {"a": "INT", "b": "STRING"})
True
>>> naive(r"b LIKE '50\\%%' AND a <> 1", {"a": None, "b": "50% off"}, {"a": "INT", "b": "STRING"})
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]
Types = Mapping[str, str]
Truth = bool | None
Meaning = Callable[[Row], Truth]


class NotUnderstoodError(ValueError):
    """Text outside the language of this oracle."""


def naive(text: str, row: Row, types: Types) -> Truth:
    """TRUE, FALSE or NULL; `types` gives each attribute's SQL type by name."""
    return meaning(text, types)(row)


def meaning(text: str, types: Types) -> Meaning:
    """The clause as a function of a row, for texts that meet many rows."""
    parser = Parser(text, types)
    found = parser.condition_of(parser.disjunction())
    parser.end()
    return found


# What stands in an expression before it is a condition


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str


@dataclass(frozen=True)
class Literal:
    """`kind` is number, double, string, date, timestamp, boolean or null; `content` its text."""

    kind: str
    content: str


@dataclass(frozen=True)
class Condition:
    truth: Meaning


Expression = Attribute | Literal | Condition

TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<string>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:L|BD|D)?(?![\w]))
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<sign><=|>=|<>|!=|==|[=<>(),.!+-])""",
    re.VERBOSE | re.DOTALL,
)
OPERATORS = {"=", "==", "<>", "!=", "<", "<=", ">", ">="}
WORDS = set(
    "AND OR NOT IN BETWEEN LIKE ILIKE RLIKE ESCAPE IS NULL TRUE FALSE COALESCE CAST AS".split()
)


class Parser:
    """Spark's grammar: NOT binds looser than a comparison and tighter than AND, AND than OR."""

    def __init__(self, text: str, types: Types) -> None:
        self.types = {name.lower(): (name, type_) for name, type_ in types.items()}
        self.tokens = list(tokenize(text))
        self.at = 0

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def skip(self, *words: str) -> bool:
        """Take these words or signs if they all stand here."""
        here = [self.peek(n) for n in range(len(words))]
        if all(kind in ("word", "sign") and text.upper() == word
               for (kind, text), word in zip(here, words, strict=True)):  # fmt: skip
            self.at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        if not self.skip(*words):
            raise NotUnderstoodError(f"{' '.join(words)} expected, not {self.peek()[1]!r}")

    def end(self) -> None:
        if self.peek()[0] != "end":
            raise NotUnderstoodError(f"{self.peek()[1]!r} stands behind the end")

    def disjunction(self) -> Expression:
        parts = [self.conjunction()]
        while self.skip("OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else self.join(parts, winner=True)

    def conjunction(self) -> Expression:
        parts = [self.negation()]
        while self.skip("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else self.join(parts, winner=False)

    def join(self, parts: list[Expression], *, winner: bool) -> Condition:
        """AND, where FALSE wins over NULL over TRUE; OR, where TRUE wins."""
        meanings = [self.condition_of(part) for part in parts]

        def truth(row: Row) -> Truth:
            truths = [each(row) for each in meanings]
            if winner in truths:
                return winner
            return None if None in truths else not winner

        return Condition(truth)

    def negation(self) -> Expression:
        if not self.skip("NOT") and not self.skip("!"):
            return self.predicate()
        inner = self.condition_of(self.negation())
        return Condition(lambda row: opposite(inner(row)))

    def predicate(self) -> Expression:
        left = self.value()
        kind, sign = self.peek()
        if kind == "sign" and sign in OPERATORS:
            self.take()
            left = self.comparison(left, sign, self.value())
        if self.skip("IS"):
            return self.test(left)
        negated = self.skip("NOT")
        if self.skip("IN"):
            return self.maybe_negated(self.membership(left), negated)
        if self.skip("BETWEEN"):
            low = self.value()
            self.expect("AND")
            first = self.comparison(left, ">=", low)
            both: list[Expression] = [first, self.comparison(left, "<=", self.value())]
            return self.maybe_negated(self.join(both, winner=False), negated)
        for word in ("LIKE", "ILIKE", "RLIKE"):
            if self.skip(word):
                return self.maybe_negated(self.pattern(left, word), negated)
        if negated:
            raise NotUnderstoodError("NOT before nothing that it negates")
        return left

    def maybe_negated(self, condition: Condition, negated: bool) -> Condition:
        if not negated:
            return condition
        return Condition(lambda row: opposite(condition.truth(row)))

    def comparison(self, left: Expression, sign: str, right: Expression) -> Condition:
        if isinstance(left, Condition) or isinstance(right, Condition):
            raise NotUnderstoodError("conditions are not compared")
        key_left, key_right = key_reader(left, right), key_reader(right, left)

        def truth(row: Row) -> Truth:
            a, b = key_left(row), key_right(row)
            return None if a is None or b is None else holds(a, sign, b)

        return Condition(truth)

    def membership(self, left: Expression) -> Condition:
        """`a IN (x, y)` is `a = x OR a = y`."""
        self.expect("(")
        options: list[Expression] = [self.comparison(left, "=", self.value())]
        while self.skip(","):
            options.append(self.comparison(left, "=", self.value()))
        self.expect(")")
        return self.join(options, winner=True)

    def pattern(self, left: Expression, kind: str) -> Condition:
        pattern = self.value()
        escape = "\\"
        if self.skip("ESCAPE"):
            character = self.value()
            if not isinstance(character, Literal) or len(character.content) != 1:
                raise NotUnderstoodError("ESCAPE takes one character")
            escape = character.content
        if isinstance(pattern, Literal) and pattern.kind == "null":
            return Condition(lambda row: None)
        if not isinstance(left, Attribute) or left.type != "STRING":
            raise NotUnderstoodError(f"{kind} tests a STRING")
        if not isinstance(pattern, Literal) or pattern.kind != "string":
            raise NotUnderstoodError(f"{kind} needs a string")
        if kind == "RLIKE":
            return Condition(regular(left.name, pattern.content))
        lower = kind == "ILIKE"
        pieces = like_pieces(pattern.content.lower() if lower else pattern.content, escape)
        name = left.name

        def truth(row: Row) -> Truth:
            text = row[name]
            if text is None:
                return None
            return like(text.lower() if lower else text, pieces)

        return Condition(truth)

    def test(self, left: Expression) -> Condition:
        negated = self.skip("NOT")
        for word, wanted in (("NULL", None), ("TRUE", True), ("FALSE", False)):
            if self.skip(word):
                break
        else:
            raise NotUnderstoodError("IS takes NULL, TRUE or FALSE")
        if isinstance(left, Attribute) and wanted is None:
            name = left.name
            return Condition(lambda row: (row[name] is None) != negated)
        inner = self.condition_of(left)
        return Condition(lambda row: (inner(row) is wanted) != negated)

    def value(self) -> Expression:
        """An operand: literal, attribute, COALESCE or something in parentheses."""
        if self.skip("("):
            inner = self.disjunction()
            self.expect(")")
            return inner
        if self.skip("-"):
            return minus(self.value())
        if self.skip("+"):
            return self.value()
        kind, text = self.take()
        if kind == "number":
            return number_literal(text)
        if kind in ("string", "raw"):
            return Literal("string", text[2:-1] if kind == "raw" else unescape(text))
        if kind == "name" or (kind == "word" and text.upper() not in WORDS):
            return self.named(kind, text)
        return self.keyword(text.upper())

    def keyword(self, word: str) -> Expression:
        if word in ("TRUE", "FALSE"):
            return Literal("boolean", word)
        if word == "NULL":
            return Literal("null", "")
        if word == "COALESCE":
            return self.coalesce()
        if word == "CAST":
            self.expect("(")
            content = self.value()
            self.expect("AS", "DOUBLE", ")")
            if isinstance(content, Literal) and content.kind == "string":
                return Literal("double", content.content)
        raise NotUnderstoodError(f"{word!r} is not an operand")

    def coalesce(self) -> Condition:
        self.expect("(")
        inner = self.condition_of(self.disjunction())
        self.expect(",")
        default = self.keyword(self.take()[1].upper())
        self.expect(")")
        if not isinstance(default, Literal) or default.kind != "boolean":
            raise NotUnderstoodError("COALESCE ends in TRUE or FALSE")
        instead = default.content == "TRUE"

        def truth(row: Row) -> Truth:
            found = inner(row)
            return instead if found is None else found

        return Condition(truth)

    def named(self, kind: str, text: str) -> Expression:
        """DATE '…' and TIMESTAMP '…', or an attribute with its dots."""
        word = text.upper()
        if kind == "word" and word in ("DATE", "TIMESTAMP") and self.peek()[0] == "string":
            return Literal(word.lower(), unescape(self.take()[1]))
        parts = [bare(kind, text)]
        while self.skip("."):
            parts.append(bare(*self.take()))
        for name in (".".join(parts), ".".join(parts[1:])):  # the stream's name may stand before
            if name.lower() in self.types:
                return Attribute(*self.types[name.lower()])
        raise NotUnderstoodError(f"no attribute {'.'.join(parts)!r}")

    def condition_of(self, expression: Expression) -> Meaning:
        """The truth of an expression that stands as a condition."""
        if isinstance(expression, Condition):
            return expression.truth
        if isinstance(expression, Attribute) and expression.type == "BOOLEAN":
            name = expression.name
            return lambda row: row[name]
        if isinstance(expression, Literal) and expression.kind in ("boolean", "null"):
            constant = None if expression.kind == "null" else expression.content == "TRUE"
            return lambda row: constant
        raise NotUnderstoodError("this is not a condition")


def tokenize(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise NotUnderstoodError(f"no token at {text[at : at + 10]!r}")
        at = match.end()
        if match.lastgroup != "space":
            yield str(match.lastgroup), match.group()


def bare(kind: str, text: str) -> str:
    if kind == "name":
        return text[1:-1].replace("``", "`")
    if kind != "word":
        raise NotUnderstoodError("a name is expected")
    return text


def unescape(quoted: str) -> str:
    r"""A string literal as Spark reads it: `\n`, `\u0041`, `\101`, `''`; `\%` keeps its backslash.

    >>> unescape(r"'it''s \x \% \\'")
    "it's x \\% \\"
    """
    quote, body = quoted[0], quoted[1:-1]
    special = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
    result, at = "", 0
    while at < len(body):
        if body[at] == quote:
            result, at = result + quote, at + 2
        elif body[at] != "\\":
            result, at = result + body[at], at + 1
        elif code := re.match(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})", body[at:]):
            result, at = result + chr(int(code[1] or code[2], 16)), at + code.end()
        elif octal := re.match(r"\\([01][0-7]{2})", body[at:]):
            result, at = result + chr(int(octal[1], 8)), at + 4
        else:
            following = body[at + 1]
            kept = "\\" + following if following in "%_" else special.get(following, following)
            result, at = result + kept, at + 2
    return result


def number_literal(text: str) -> Literal:
    if text.endswith("D") and not text.endswith("BD"):
        return Literal("double", text[:-1])
    return Literal("number", text.removesuffix("BD").removesuffix("L"))


def minus(operand: Expression) -> Literal:
    if not isinstance(operand, Literal) or operand.kind not in ("number", "double"):
        raise NotUnderstoodError("only numbers have a sign")
    text = operand.content
    return Literal(operand.kind, text[1:] if text.startswith("-") else "-" + text)


# Values as keys that Python orders exactly


def key_reader(operand: Attribute | Literal, other: Attribute | Literal) -> Callable[[Row], Any]:
    """How to get the operand's key from a row, beside this other operand."""
    if "null" in (operand.kind if isinstance(operand, Literal) else "",
                  other.kind if isinstance(other, Literal) else ""):  # fmt: skip
        return lambda row: None
    if family(operand, other) != family(other, operand):
        raise NotUnderstoodError(f"{operand} is not compared with {other}")
    if isinstance(operand, Literal):
        constant = literal_key(operand, other)
        return lambda row: constant
    name = operand.name

    def read(row: Row) -> Any:
        value = row[name]
        return None if value is None else value_key(value)

    return read


def family(operand: Attribute | Literal, other: Attribute | Literal) -> str:
    """What an operand is compared as; a string beside a date or timestamp is read as one."""
    written = operand.type if isinstance(operand, Attribute) else operand.kind.upper()
    if written.startswith(("INT", "BIGINT", "DECIMAL", "DOUBLE", "NUMBER")):
        return "number"
    if written in ("DATE", "TIMESTAMP"):
        return "time"
    is_text = isinstance(operand, Literal) and written == "STRING"
    if is_text and isinstance(other, Attribute) and other.type in ("DATE", "TIMESTAMP"):
        return "time"
    return written


def literal_key(literal: Literal, other: Attribute | Literal) -> Any:
    beside = other.type if isinstance(other, Attribute) else ""
    text = literal.content
    if literal.kind == "double" or (
        literal.kind == "number"
        and beside == "DOUBLE"
        and re.search("[.eE]", text)
        and not math.isinf(float(text))
    ):
        return value_key(float(text))
    if literal.kind == "number":
        return (0, Fraction(text))
    if literal.kind == "boolean":
        return int(text == "TRUE")
    if literal.kind == "string" and beside not in ("DATE", "TIMESTAMP"):
        return text.encode()
    return clock(text.strip())


def value_key(value: Any) -> Any:
    """Numbers become (rank, number): rank ±1 is an infinity, 2 is NaN."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        return (2 if math.isnan(value) else 1 if value > 0 else -1, 0)
    if isinstance(value, int | float | Decimal):
        return (0, Fraction(value))
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime.min) // timedelta(microseconds=1)
    assert isinstance(value, date)
    return (value.toordinal() - 1) * 86_400_000_000


def clock(text: str) -> int:
    """Microseconds since 0001-01-01 of `2024-12-31[( |T)23:59[:59[.999999]]][Z|+01:00]`, in UTC."""
    match = re.fullmatch(
        r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?"
        r"(Z|UTC|([+-])(\d{2}):(\d{2}))?",
        text,
    )
    if match is None:
        raise NotUnderstoodError(f"{text!r} is no time")
    year, month, day, hour, minute, second, fraction, _, sign, off_hour, off_minute = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - 1
    except ValueError as error:
        raise NotUnderstoodError(str(error)) from None
    minutes = int(hour or 0) * 60 + int(minute or 0)
    if sign:
        offset = int(off_hour) * 60 + int(off_minute)
        minutes += offset if sign == "-" else -offset
    micros = int((fraction or "").ljust(6, "0"))
    return ((days * 1440 + minutes) * 60 + int(second or 0)) * 1_000_000 + micros


def holds(a: Any, sign: str, b: Any) -> bool:
    if sign in ("=", "=="):
        return bool(a == b)
    if sign in ("<>", "!="):
        return bool(a != b)
    if sign in ("<", "<="):
        return bool(a < b or (sign == "<=" and a == b))
    return bool(a > b or (sign == ">=" and a == b))


def opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


# Patterns


def like_pieces(pattern: str, escape: str) -> list[tuple[str, str]]:
    """Each character of a pattern: `one`, `many` or a literal."""
    pieces: list[tuple[str, str]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("_", "%", escape) or not following:
                raise NotUnderstoodError(f"a stray escape in {pattern!r}")
            pieces.append(("literal", following))
        elif character in "_%":
            pieces.append(("one" if character == "_" else "many", character))
        else:
            pieces.append(("literal", character))
    return pieces


def like(text: str, pieces: list[tuple[str, str]]) -> bool:
    """By the definition: `%` takes nothing, or one character more."""
    if not pieces:
        return text == ""
    kind, character = pieces[0]
    if kind == "many":
        return like(text, pieces[1:]) or (text != "" and like(text[1:], pieces))
    return text != "" and kind in ("one", "literal") and (
        kind == "one" or text[0] == character
    ) and like(text[1:], pieces[1:])  # fmt: skip


def regular(name: str, pattern: str) -> Meaning:
    """RLIKE for patterns that Java and Python's `re` read alike; the tests use no others."""
    compiled = re.compile(pattern, re.ASCII)

    def truth(row: Row) -> Truth:
        text = row[name]
        return None if text is None else compiled.search(text) is not None

    return truth
