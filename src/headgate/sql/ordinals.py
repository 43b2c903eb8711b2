"""Literals of plain conditions read straight as ordinals, which count the values of a type.

`headgate.schema.types` says how. A literal that is not written in the commonest way is left to
`conditions`, as is a value at a limit of its type.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from headgate.predicate import Column
from headgate.schema import Date, DecimalType, Double, Integer, String, Type
from headgate.schema.types import EPOCH_DAY
from headgate.sql.lexer import MAX_LITERAL

MAX_NUMBER_LENGTH = 40
MAX_DOUBLE_DIGITS = 15  # whole numbers of so many digits are doubles, too

ReadOrdinal = Callable[[str], Any]


class _Uncommon(ValueError):
    """A literal that is not written in the commonest way."""


class OrdinalColumn(NamedTuple):
    """A column, and how its literals are read as ordinals; `step` leads to the next one."""

    column: Column
    read: ReadOrdinal
    step: Any


def make_ordinal_column(column: Column) -> OrdinalColumn | None:
    """Return how the literals of a column are read; None for a type that goes the general way."""
    make_reader = _ORDINAL_READERS.get(type(column.type))
    if make_reader is None:
        return None
    step = "\0" if make_reader is _string_reader else 1
    return OrdinalColumn(column, make_reader(column.type), step)


def find_cuts(operator: str, operand: str, known: OrdinalColumn) -> tuple[tuple[Any, ...], bool]:
    """Return where the set of values begins and ends by turns, and whether it holds the least."""
    _, read, step = known
    # Cuts are where membership changes: a point has one at itself and one at its successor, and the
    # complement has the same cuts but starts inside.
    if operator in ("=", "<>"):
        ordinal = read(operand)
        return (ordinal, ordinal + step), operator == "<>"
    if operator in (">=", "<"):
        return (read(operand),), operator == "<"
    # Above a value begins at its successor.
    if operator in (">", "<="):
        return (read(operand) + step,), operator == "<="
    # BETWEEN of texts is left to the general way; so is one that holds nothing.
    if operator == "BETWEEN" and step == 1:
        low, _, high = operand.partition(" AND ")
        first, last = read(low), read(high)
        if first > last:
            raise _Uncommon
        return (first, last + 1), False
    if operator == "IN":
        return _find_point_cuts(
            {read(literal) for literal in operand[1:-1].split(", ")}, step
        ), False
    raise _Uncommon


def _find_point_cuts(ordinals: set[Any], step: Any) -> tuple[Any, ...]:
    """Return the cuts around points; neighbours share an interval."""
    cuts: list[Any] = []
    for ordinal in sorted(ordinals):
        if cuts and cuts[-1] == ordinal:
            cuts[-1] = ordinal + step
        else:
            cuts += (ordinal, ordinal + step)
    return tuple(cuts)


def _integer_reader(type_: Integer) -> ReadOrdinal:
    low, high = type_.minimum, type_.maximum

    def read(text: str) -> int:
        if len(text) > MAX_NUMBER_LENGTH:
            raise _Uncommon
        ordinal = int(text)
        # A cut at a limit of the type would be an infinite end, which the general way knows.
        if not low < ordinal < high:
            raise _Uncommon
        return ordinal

    return read


def _decimal_reader(type_: DecimalType) -> ReadOrdinal:
    scale, high = type_.scale, type_.maximum

    def read(text: str) -> int:
        if len(text) > MAX_NUMBER_LENGTH:
            raise _Uncommon
        # The unscaled number: `10.5` at scale 2 is 1050.
        whole, _, part = text.partition(".")
        ordinal = int(whole + part.ljust(scale, "0"))
        if len(part) > scale or not -high < ordinal < high:
            raise _Uncommon
        return ordinal

    return read


def _double_reader(type_: Double) -> ReadOrdinal:
    ordinal = type_.ordinal

    def read(text: str) -> int:
        # no name such as `nan`, no exponent, and no whole number that a double cannot hold
        if len(text) > MAX_DOUBLE_DIGITS or not text[-1].isdecimal() or "E" in text.upper():
            raise _Uncommon
        return ordinal(float(text))

    return read


def _string_reader(_: String) -> ReadOrdinal:
    def read(text: str) -> str:
        # '' is a limit of the type, and a list may have been torn apart inside quotes
        if not 3 <= len(text) <= MAX_LITERAL or text[0] != "'" or text[-1] != "'":
            raise _Uncommon
        if text.count("'") != 2:
            raise _Uncommon
        return text[1:-1]

    return read


def _date_reader(_: Date) -> ReadOrdinal:
    def read(text: str) -> int:
        if len(text) != 17 or text[:6] != "DATE '" or not text[6:10].isdecimal():
            raise _Uncommon
        # In these years are the first and the last date, the limits of the type.
        if text[6:10] in ("0001", "9999") or text[10] != "-" or text[13] != "-":
            raise _Uncommon
        return date.fromisoformat(text[6:16]).toordinal() - EPOCH_DAY

    return read


_ORDINAL_READERS: dict[type[Type], Callable[[Any], ReadOrdinal]] = {
    Integer: _integer_reader,
    DecimalType: _decimal_reader,
    Double: _double_reader,
    String: _string_reader,
    Date: _date_reader,
}
