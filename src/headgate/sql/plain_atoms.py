"""Atoms in their commonest spelling, straight from text to cuts: `price >= 10.50` is a cut at 1050.

Most atoms of a large rule set are `name operator literal`, one space apart, with a literal of the
attribute's own type. For these the general way builds ten objects to learn two numbers. Whatever is
unusual, also a value at a limit of its type, gives None and goes the general way; a property test
holds both equal.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from headgate.predicate import Column, IsNull, Predicate, Within
from headgate.schema import Date, DecimalType, Double, Integer, String, Type, ValueSet
from headgate.schema.types import EPOCH_DAY
from headgate.sql.lexer import MAX_LITERAL

Read = Callable[[str], Any]
Cuts = tuple[tuple[Any, ...], bool]
LONGEST_NUMBER = 40
MAX_DIGITS = 15  # whole numbers up to here are doubles, too


class Unusual(ValueError):
    """Not written in the commonest way."""


class PlainColumn(NamedTuple):
    """A column, and how its literals are read straight to ordinals; `step` leads to the next."""

    column: Column
    read: Read
    step: Any


def plain_column(column: Column) -> PlainColumn | None:
    """None for a type whose literals go the general way."""
    reader = _READERS.get(type(column.type))
    if reader is None:
        return None
    return PlainColumn(column, reader(column.type), "\0" if reader is _string else 1)


def plain_atom(known: PlainColumn, operator: str, operand: str) -> Predicate | None:
    """`known operator operand`, if that is said in the commonest way.

    >>> from headgate.schema import INT
    >>> qty = plain_column(Column("qty", INT))
    >>> plain_atom(qty, ">", "3").values.cuts, plain_atom(qty, ">", "3.5")
    ((4,), None)
    """
    if operator == "IS":
        negated = _NULL_TESTS.get(operand)
        return None if negated is None else IsNull(known.column, negated)
    try:
        cuts, starts_inside = _cuts(operator, operand, known)
    except ValueError:
        return None
    return Within(known.column, ValueSet(cuts, starts_inside))


def _cuts(operator: str, operand: str, known: PlainColumn) -> Cuts:
    _, read, step = known
    if operator in ("=", "<>"):
        at = read(operand)
        return (at, at + step), operator == "<>"
    if operator in (">=", "<"):
        return (read(operand),), operator == "<"
    if operator in (">", "<="):
        return (read(operand) + step,), operator == "<="
    if operator == "BETWEEN" and step == 1:
        low, _, high = operand.partition(" AND ")
        first, last = read(low), read(high)
        if first > last:
            raise Unusual
        return (first, last + 1), False
    if operator == "IN":
        return _listed({read(literal) for literal in operand[1:-1].split(", ")}, step), False
    raise Unusual


def _listed(ordinals: set[Any], step: Any) -> tuple[Any, ...]:
    cuts: list[Any] = []
    for ordinal in sorted(ordinals):
        if cuts and cuts[-1] == ordinal:
            cuts[-1] = ordinal + step
        else:
            cuts += (ordinal, ordinal + step)
    return tuple(cuts)


def _integer(type_: Integer) -> Read:
    low, high = type_.minimum, type_.maximum

    def read(text: str) -> int:
        if len(text) > LONGEST_NUMBER:
            raise Unusual
        ordinal = int(text)
        if not low < ordinal < high:
            raise Unusual
        return ordinal

    return read


def _decimal(type_: DecimalType) -> Read:
    scale, high = type_.scale, type_.maximum

    def read(text: str) -> int:
        if len(text) > LONGEST_NUMBER:
            raise Unusual
        whole, _, part = text.partition(".")
        ordinal = int(whole + part.ljust(scale, "0"))
        if len(part) > scale or not -high < ordinal < high:
            raise Unusual
        return ordinal

    return read


def _double(type_: Double) -> Read:
    ordinal = type_.ordinal

    def read(text: str) -> int:
        # no name such as `nan`, no exponent, and no whole number that a double cannot hold
        if len(text) > MAX_DIGITS or not text[-1].isdecimal() or "E" in text.upper():
            raise Unusual
        return ordinal(float(text))

    return read


def _string(_: String) -> Read:
    def read(text: str) -> str:
        # '' is a limit of the type, and a list may have been torn apart inside quotes
        if not 3 <= len(text) <= MAX_LITERAL or text[0] != "'" or text[-1] != "'":
            raise Unusual
        if text.count("'") != 2:
            raise Unusual
        return text[1:-1]

    return read


def _date(_: Date) -> Read:
    def read(text: str) -> int:
        if len(text) != 17 or text[:6] != "DATE '" or not text[6:10].isdecimal():
            raise Unusual
        if text[6:10] in ("0001", "9999") or text[10] != "-" or text[13] != "-":
            raise Unusual
        return date.fromisoformat(text[6:16]).toordinal() - EPOCH_DAY

    return read


_READERS: dict[type[Type], Callable[[Any], Read]] = {
    Integer: _integer,
    DecimalType: _decimal,
    Double: _double,
    String: _string,
    Date: _date,
}
_NULL_TESTS = {"NULL": False, "NOT NULL": True}
