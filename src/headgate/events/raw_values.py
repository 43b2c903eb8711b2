"""Fields of CSV and objects of Python, as the JSON scanner would have given them (`conversion`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from headgate.events.batch import UnfitValue, refuse_type, show_value
from headgate.schema import Attribute, Boolean, Date, Double, String, Timestamp, Type

MAX_DIGITS = 640  # int() takes this many under every setting of the interpreter

_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_PANDAS_NULLS = ("NaTType", "NAType")


class QuotedField(str):
    """A CSV field that stood in quotes: when it is empty, it is not NULL."""

    __slots__ = ()


def parse_number(text: str) -> int | bytes:
    """Return a number in JSON's grammar as the scanner gives it.

    >>> parse_number("12"), parse_number("1.20")
    (12, b'1.20')
    """
    if "." in text or "e" in text or "E" in text or len(text) > MAX_DIGITS:
        return text.encode()
    return int(text)


def make_field_reader(type_: Type) -> Callable[[str], Any]:
    """Make the function from the text of a CSV field to the raw value that JSON would have given.

    An empty field is NULL unless it is `Quoted`. Spaces around it belong to a STRING only.

    >>> from headgate.schema import INT
    >>> read = make_field_reader(INT)
    >>> read(" +3 "), read(""), read("three")
    (3, None, 'three')
    """
    if isinstance(type_, String):
        return lambda text: str(text) if text or isinstance(text, QuotedField) else None
    plain = _make_plain_reader(type_)

    def read(text: str) -> Any:
        stripped = text.strip(" \t")
        if not stripped and not isinstance(text, QuotedField):
            return None
        return plain(stripped)

    return read


def _make_plain_reader(type_: Type) -> Callable[[str], Any]:
    if isinstance(type_, Boolean):
        truth = {"true": True, "false": False}
        return lambda text: truth.get(text.lower(), text)
    if type_.numeric:
        return lambda text: parse_number(text) if _NUMBER.fullmatch(text) else text
    return str


def make_object_reader(attribute: Attribute) -> Callable[[Any], Any]:
    """Make the function from a Python object to a raw value; NumPy's scalars are objects too.

    A float that is not whole stands for its shortest text, as JSON would write it, so that a row
    means the same before `json.dumps` and after. A whole one is the number that it is; beyond 2^53
    its shortest text is another number.

    >>> from headgate.schema import INT
    >>> make_object_reader(Attribute("qty", INT))(0.1)
    b'0.1'
    """
    name, type_ = attribute.name, attribute.type
    special = _make_special_reader(attribute)

    def read(value: Any) -> Any:
        plain = value.item() if isinstance(value, np.generic) else value
        if type(plain).__name__ in _PANDAS_NULLS:
            return None
        if isinstance(plain, bytes):
            raise refuse_type(name, repr(plain), type_)
        return special(plain)

    return read


def _make_special_reader(attribute: Attribute) -> Callable[[Any], Any]:
    match attribute.type:
        case Date():
            return _to_date
        case Timestamp():
            return partial(_to_datetime, attribute.name)
        case Double():
            return lambda value: value if isinstance(value, float) else _to_raw_number(value)
    return _to_raw_number


def _to_raw_number(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else repr(value).encode()
    if isinstance(value, Decimal) and value.is_finite():
        return parse_number(str(value))
    return value


def _to_date(value: Any) -> Any:
    """Return the date of a clock time at midnight: pandas has no other way to write one."""
    if not isinstance(value, datetime) or value.tzinfo:
        return value
    start = datetime(value.year, value.month, value.day)
    return value.date() if value == start else value


def _to_datetime(name: str, value: Any) -> Any:
    if not hasattr(value, "nanosecond"):
        return value
    if value.nanosecond:
        raise UnfitValue(f"`{name}` is {show_value(value)}, finer than a microsecond")
    return value.to_pydatetime()  # a pandas.Timestamp reads zones in a way of its own
