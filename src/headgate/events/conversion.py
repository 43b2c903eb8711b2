"""The rules by which a raw value becomes a value of its attribute's type, or does not.

A rule is chosen once per attribute. It gives what Arrow takes for the type (days for DATE,
microseconds for TIMESTAMP) or raises `UnfitValue` with the reason. Nothing is rounded, and no
number goes through a float on its way to a type that is not DOUBLE.

Raw values are those of the JSON scanner: None, bool, int, str, list, dict, and two conventions. A
number with a point or an exponent is its text as `bytes`, untouched, so that 1.239 stays exact and
1e999999999 costs nothing until somebody wants it. A float is one of the tokens NaN, Infinity and
-Infinity. Fields of CSV and objects of Python are first brought into this form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from headgate.events.batch import UnfitValue, refuse_inexact, refuse_range, refuse_type, show_value
from headgate.schema import (
    TIMESTAMP,
    Attribute,
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    String,
    Timestamp,
    Type,
)
from headgate.schema.types import EPOCH, EPOCH_DAY, MICROSECOND

Convert = Callable[[Any], Any]

FIRST_MOMENT, LAST_MOMENT = TIMESTAMP.minimum, TIMESTAMP.maximum
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
MAX_DIGITS = 640  # int() takes this many under every setting of the interpreter

_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6}(\d*))?)?"
    r"(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?",
    re.ASCII,
)
_EXACT = Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation])
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

    An empty field is NULL unless it is a `QuotedField`. Spaces around it belong to a STRING only.

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
        # Scalars of NumPy become Python's own, and the markers of pandas for a missing value NULL.
        plain = value.item() if isinstance(value, np.generic) else value
        if type(plain).__name__ in _PANDAS_NULLS:
            return None
        # In a raw value, bytes are the text of a number, so bytes that are none must not get there.
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


@dataclass(frozen=True, slots=True)
class Rule:
    """A conversion of the raw values of an attribute; those of type `ready` need none."""

    convert: Convert
    ready: type | None


def make_json_rule(attribute: Attribute) -> Rule:
    """Make the rule for values of the JSON scanner.

    >>> from headgate.schema import INT
    >>> make_json_rule(Attribute("qty", INT)).convert(b"1e2")
    100
    """
    return Rule(_make_converter(attribute), _find_ready_type(attribute.type))


def make_python_rule(attribute: Attribute) -> Rule:
    """Make the rule for Python objects."""
    convert, read = _make_converter(attribute), make_object_reader(attribute)

    def from_python(value: Any) -> Any:
        raw = read(value)
        return None if raw is None else convert(raw)

    return Rule(from_python, _find_ready_type(attribute.type))


def to_microseconds(name: str, clock: datetime, type_: Timestamp, zone: ZoneInfo) -> int:
    """Return the ordinal of a clock time, read in `zone` if it has no offset."""
    aware = clock if clock.tzinfo else clock.replace(tzinfo=zone)
    ordinal = (aware - EPOCH) // MICROSECOND
    # An offset may move a clock time of the year 1 or 9999 out of these years.
    if not FIRST_MOMENT <= ordinal <= LAST_MOMENT:
        raise refuse_range(name, clock, type_)
    return ordinal


def _find_ready_type(type_: Type) -> type | None:
    match type_:
        case Boolean():
            return bool
        case Integer():
            return int
        case Double():
            return float
        case String():
            return str
    return None


def _make_converter(attribute: Attribute) -> Convert:
    name = attribute.name
    match attribute.type:
        case Boolean() as type_:
            return partial(_convert_boolean, name, type_)
        case Integer() as type_:
            return partial(_convert_integer, name, type_)
        case DecimalType() as type_:
            return partial(_convert_decimal, name, type_, Decimal((0, (1,), -type_.scale)))
        case Double() as type_:
            return partial(_convert_double, name, type_)
        case String() as type_:
            return partial(_convert_string, name, type_)
        case Date() as type_:
            return partial(_convert_date, name, type_)
        case Timestamp() as type_:
            return partial(_convert_timestamp, name, type_, ZoneInfo(type_.zone))
    raise TypeError(f"no rule for {attribute.type}")


def _convert_boolean(name: str, type_: Boolean, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise refuse_type(name, value, type_)


def _convert_integer(name: str, type_: Integer, value: Any) -> int:
    number = value
    if isinstance(value, bytes):
        exact = _parse_exact(name, value, type_)
        # Refused before int(), which would write out every digit of 1e999999999.
        if exact.adjusted() > 40 and exact:
            raise refuse_range(name, value, type_)
        number = int(exact)
        if number != exact:
            raise refuse_type(name, value, type_)
    if not isinstance(number, int) or isinstance(number, bool):
        raise refuse_type(name, value, type_)
    if not type_.minimum <= number <= type_.maximum:
        raise refuse_range(name, value, type_)
    return number


def _convert_decimal(name: str, type_: DecimalType, step: Decimal, value: Any) -> Decimal:
    if isinstance(value, bytes):
        exact = _parse_exact(name, value, type_)
    elif not isinstance(value, int) or isinstance(value, bool):
        raise refuse_type(name, value, type_)
    # Far more than the 38 digits of the widest DECIMAL, and a Decimal of it could be slow to make.
    elif value.bit_length() > 200:
        raise refuse_range(name, value, type_)
    else:
        exact = Decimal(value)
    # Too many digits before the point. A zero has none, whatever its exponent says.
    if exact and exact.adjusted() >= type_.precision - type_.scale:
        raise refuse_range(name, value, type_)
    # Zeros at the end may come or go; if any other digit is lost, the value is not the same.
    fitted = exact.quantize(step, context=_EXACT)
    if fitted != exact:
        raise refuse_inexact(name, value, type_)
    return fitted


def _convert_double(name: str, type_: Double, value: Any) -> float:
    if isinstance(value, bytes):
        # A number with a point or exponent means the double next to it, as a literal in SQL does.
        nearest = float(value)
        if nearest in (math.inf, -math.inf):
            raise refuse_range(name, value, type_)
        return nearest
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in SPECIAL:
        return SPECIAL[value]
    if not isinstance(value, int) or isinstance(value, bool):
        raise refuse_type(name, value, type_)
    try:
        # An integer must be held exactly, and beyond 2^53 not every one can be.
        same = float(value)
    except OverflowError:
        raise refuse_range(name, value, type_) from None
    if same != value:
        raise refuse_inexact(name, value, type_)
    return same


def _convert_string(name: str, type_: String, value: Any) -> str:
    if not isinstance(value, str):
        raise refuse_type(name, value, type_)
    try:
        # A lone surrogate, which JSON can write as an escape, has no UTF-8 form.
        value.encode()
    except UnicodeEncodeError:
        raise UnfitValue(f"`{name}` is {show_value(value)}, which has no UTF-8 form") from None
    return value


def _convert_date(name: str, type_: Date, value: Any) -> int:
    day = value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            raise refuse_type(name, value, type_) from None
    # Not by isinstance: a datetime is a date to Python, and would lose its time of day.
    if type(day) is not date:
        raise refuse_type(name, value, type_)
    return day.toordinal() - EPOCH_DAY


def _convert_timestamp(name: str, type_: Timestamp, zone: ZoneInfo, value: Any) -> int:
    # `schema.clock` reads these forms too, and more of them, but takes six times as long
    clock = value
    if isinstance(value, str) and (match := _TIMESTAMP.fullmatch(value)):
        # The group has the digits after the sixth; they may only be zeros.
        if match[1] and match[1].strip("0"):
            raise UnfitValue(f"`{name}` is {show_value(value)}, finer than a microsecond")
        try:
            clock = datetime.fromisoformat(value)
        except ValueError:
            raise refuse_type(name, value, type_) from None
    if not isinstance(clock, datetime):
        raise refuse_type(name, value, type_)
    return to_microseconds(name, clock, type_, zone)


def _parse_exact(name: str, text: bytes, type_: Type) -> Decimal:
    try:
        return Decimal(text.decode(), _EXACT)
    except InvalidOperation:  # an exponent of more than 18 digits
        raise refuse_type(name, text, type_) from None
