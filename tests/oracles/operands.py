"""Attributes and literals of the naive oracle, as keys that Python orders exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]


class NotUnderstoodError(ValueError):
    """Text outside the language of this oracle."""


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str


@dataclass(frozen=True)
class Literal:
    """`kind` is number, double, string, date, timestamp, boolean or null; `content` its text."""

    kind: str
    content: str


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
            result, at = result + code_point(code[1] or code[2]), at + code.end()
        elif octal := re.match(r"\\([01][0-7]{2})", body[at:]):
            result, at = result + chr(int(octal[1], 8)), at + 4
        else:
            following = body[at + 1]
            kept = "\\" + following if following in "%_" else special.get(following, following)
            result, at = result + kept, at + 2
    return re.sub("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]", whole_character, result)


def code_point(digits: str) -> str:
    if int(digits, 16) > 0x10FFFF:
        raise NotUnderstoodError(f"no character has the number {digits}")
    return chr(int(digits, 16))


def whole_character(halves: re.Match[str]) -> str:
    """Two surrogates are a character; one alone becomes `?`, as when Java writes UTF-8."""
    try:
        return halves[0].encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return "?"


def number_literal(text: str) -> Literal:
    if text.endswith("D") and not text.endswith("BD"):
        return Literal("double", text[:-1])
    return Literal("number", text.removesuffix("BD").removesuffix("L"))


def key_reader(operand: Attribute | Literal, other: Attribute | Literal) -> Callable[[Row], Any]:
    """How to get the operand's key from a row, beside this other operand."""
    if Literal("null", "") in (operand, other):
        return always(None)
    if family(operand, other) != family(other, operand):
        raise NotUnderstoodError(f"{operand} is not compared with {other}")
    if isinstance(operand, Literal):
        return always(literal_key(operand, other))
    name = operand.name

    def read(row: Row) -> Any:
        value = row[name]
        return None if value is None else value_key(value)

    return read


def always(constant: Any) -> Callable[[Row], Any]:
    """A function of a row that does not look at it."""
    return lambda _: constant


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
    other_type = other.type if isinstance(other, Attribute) else ""
    text = literal.content
    if literal.kind == "double" or (
        literal.kind == "number"
        and other_type == "DOUBLE"
        and re.search("[.eE]", text)
        and not math.isinf(float(text))
    ):
        return value_key(float(text))
    if literal.kind == "number":
        return (0, Fraction(text))
    if literal.kind == "boolean":
        return int(text == "TRUE")
    if literal.kind == "string" and other_type not in ("DATE", "TIMESTAMP"):
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
        r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6})0*)?)?)?"
        r"\s*(Z|UTC|([+-])(\d{2})(?::?(\d{2}))?)?",
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
        offset = int(off_hour) * 60 + int(off_minute or 0)
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
