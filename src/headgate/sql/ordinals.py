"""Literals of plain conditions read straight as ordinals, which count the values of a type.

`headgate.schema.types` says how. A literal that is not written in the commonest way is left to
`conditions`, as is a value at a limit of its type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any

from headgate.predicate import Column, IsNull, Within
from headgate.schema import Date, DecimalType, Double, Integer, String, Type, ValueSet
from headgate.schema.types import EPOCH_DAY
from headgate.sql.lexer import MAX_LITERAL

MAX_NUMBER_LENGTH = 40
MAX_CACHED_LITERALS = 10_000  # of a type whose literals take longer to read than to find again
MAX_DOUBLE_DIGITS = 15  # whole numbers of so many digits are doubles, too

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)

ReadOrdinal = Callable[[str], Any]
TestReaders = dict[str, Callable[[str], Within | IsNull]]  # by operator

_NULL_TESTS = {"NULL": False, "NOT NULL": True}


class _Uncommon(ValueError):
    """A literal that is not written in the commonest way."""


def make_test_readers(column: Column) -> TestReaders:
    """Return how what follows a column and an operator is read; nothing for some types.

    >>> from headgate.schema import INT
    >>> make_test_readers(Column("qty", INT))[">"]("3").values.cuts
    (4,)
    """
    make_reader = _ORDINAL_READERS.get(type(column.type))
    if make_reader is None:
        return {}
    read = make_reader(column.type)
    step: Any = "\0" if make_reader is _string_reader else 1

    # Cuts are where membership changes: a point has one at itself and one at its successor, and the
    # complement has the same cuts but starts inside.
    def read_equal(operand: str) -> Within:
        ordinal = read(operand)
        return Within(column, ValueSet((ordinal, ordinal + step), False), "list")

    def read_different(operand: str) -> Within:
        ordinal = read(operand)
        return Within(column, ValueSet((ordinal, ordinal + step), True), "exclusion")

    def read_at_least(operand: str) -> Within:
        return Within(column, ValueSet((read(operand),), False))

    def read_less(operand: str) -> Within:
        return Within(column, ValueSet((read(operand),), True))

    # Above a value begins at its successor.
    def read_greater(operand: str) -> Within:
        return Within(column, ValueSet((read(operand) + step,), False))

    def read_at_most(operand: str) -> Within:
        return Within(column, ValueSet((read(operand) + step,), True))

    def read_between(operand: str) -> Within:
        low, _, high = operand.partition(" AND ")
        first, last = read(low), read(high)
        # One that holds nothing is left to the general way.
        if first > last:
            raise _Uncommon
        return Within(column, ValueSet((first, last + 1), False))

    def read_list(operand: str) -> Within:
        if operand[:1] != "(" or operand[-1:] != ")":
            raise _Uncommon
        points = sorted({*map(read, operand[1:-1].split(", "))})
        # around each point a cut at itself and one at its successor
        cuts = tuple([cut for point in points for cut in (point, point + step)])
        # neighbours share an interval
        if step == 1 and len({*cuts}) < len(cuts):
            cuts = _join_neighbours(cuts)
        return Within(column, ValueSet(cuts, False), "list")

    def read_null_test(operand: str) -> IsNull:
        if operand not in _NULL_TESTS:
            raise _Uncommon
        return IsNull(column, _NULL_TESTS[operand])

    readers: TestReaders = {
        "=": read_equal,
        "<>": read_different,
        ">=": read_at_least,
        "<": read_less,
        ">": read_greater,
        "<=": read_at_most,
        "IN": read_list,
        "IS": read_null_test,
    }
    # BETWEEN of texts is left to the general way.
    return readers if step == "\0" else {**readers, "BETWEEN": read_between}


def _join_neighbours(cuts: tuple[int, ...]) -> tuple[int, ...]:
    """Return ascending cuts without those that occur twice: there a range ends as one begins."""
    return tuple(cut for cut, count in Counter(cuts).items() if count == 1)


def _integer_reader(type_: Integer) -> ReadOrdinal:
    low, high = type_.minimum, type_.maximum

    def read(text: str) -> int:
        if not (text.isdigit() and text.isascii()) and (not _is_number(text) or "." in text):
            raise _Uncommon
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
        if not _is_number(text):
            raise _Uncommon
        # The unscaled number: `10.5` at scale 2 is 1050.
        whole, _, part = text.partition(".")
        ordinal = int(whole + part.ljust(scale, "0"))
        if len(part) > scale or not -high < ordinal < high:
            raise _Uncommon
        return ordinal

    return read


@lru_cache(maxsize=1)
def _double_reader(type_: Double) -> ReadOrdinal:
    ordinal = type_.ordinal

    @lru_cache(maxsize=MAX_CACHED_LITERALS)
    def read(text: str) -> int:
        # no whole number that a double cannot hold
        if len(text) > MAX_DOUBLE_DIGITS or not _is_number(text):
            raise _Uncommon
        return ordinal(float(text))

    return read


def _is_number(text: str) -> bool:
    """Return whether a text is digits, with a point between them and a minus at most.

    Python reads more than SQL does as a number: `1_000`, ` 1`, `.5`, `nan`, digits of any script.
    """
    if len(text) > MAX_NUMBER_LENGTH:
        return False
    if text.isdigit():
        return text.isascii()
    return _NUMBER.fullmatch(text) is not None


def _string_reader(_: String) -> ReadOrdinal:
    def read(text: str) -> str:
        # '' is a limit of the type, and a list may have been torn apart inside quotes
        if not 3 <= len(text) <= MAX_LITERAL or text[0] != "'" or text[-1] != "'":
            raise _Uncommon
        if text.count("'") != 2 or "\\" in text:
            raise _Uncommon
        return text[1:-1]

    return read


@lru_cache(maxsize=1)
def _date_reader(_: Date) -> ReadOrdinal:
    @lru_cache(maxsize=MAX_CACHED_LITERALS)
    def read(text: str) -> int:
        if len(text) != 17 or text[:6] != "DATE '" or text[16] != "'" or not text[6:10].isdecimal():
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
