"""The rules by which a raw value becomes a value of its attribute's type, or does not.

A rule is chosen once per attribute. It gives what Arrow takes for the type (days for DATE,
microseconds for TIMESTAMP) or raises `Unfit` with the reason. Nothing is rounded and no number goes
through a float on its way to a type that is not DOUBLE.

Raw values are those of the JSON scanner: None, bool, int, str, list, dict, and two conventions. A
number with a point or an exponent is its text as `bytes`, untouched, so that 1.239 stays exact and
1e999999999 costs nothing until somebody wants it. A float is one of the tokens NaN, Infinity and
-Infinity. Text of CSV and values of Python are first brought into this form.
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

from headgate.events.batch import cap
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

MAX_DIGITS = 640  # int() takes this many under every setting of the interpreter
FIRST_MOMENT, LAST_MOMENT = TIMESTAMP.minimum, TIMESTAMP.maximum
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6}(\d*))?)?"
    r"(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?",
    re.ASCII,
)
_EXACT = Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation])
_PANDAS_NULLS = ("NaTType", "NAType")


class Unfit(Exception):
    """A value that its attribute cannot take; the message is the reason of the dead letter."""


class Quoted(str):
    """A CSV field that stood in quotes: when it is empty, it is not NULL."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """How the raw values of an attribute are converted; those of type `ready` are so already."""

    convert: Convert
    ready: type | None


def json_rule(attribute: Attribute) -> Rule:
    """The rule for values of the JSON scanner.

    >>> from headgate.schema import INT
    >>> json_rule(Attribute("qty", INT)).convert(b"1e2")
    100
    """
    return Rule(_converter(attribute), _ready(attribute.type))


def python_rule(attribute: Attribute) -> Rule:
    """The rule for Python objects: those of JSON, Decimal, date, datetime, and NumPy's scalars.

    A float that is not whole stands for its shortest text, as JSON would write it, so that a row
    means the same before `json.dumps` and after.
    """
    convert, scanned, name = _converter(attribute), _scanned(attribute.type), attribute.name

    def from_python(value: Any) -> Any:
        plain = value.item() if isinstance(value, np.generic) else value
        if type(plain).__name__ in _PANDAS_NULLS:
            return None
        if isinstance(plain, bytes):
            raise not_a(name, repr(plain), attribute.type)
        return convert(scanned(name, plain))

    return Rule(from_python, _ready(attribute.type))


def show(value: object) -> str:
    """A value as reasons show it.

    >>> show("hold"), show(b"3.5"), show(True), show([1])
    ("'hold'", '3.5', 'true', 'an array')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 3 * MAX_DIGITS:
        return f"a number of some {int(value.bit_length() * math.log10(2))} digits"
    if isinstance(value, bytes):
        return cap(value.decode("utf-8", "backslashreplace"), 60)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, float) and not math.isfinite(value):
        return next(text for text, special in SPECIAL.items() if str(special) == str(value))
    if isinstance(value, int | float | Decimal):
        return cap(str(value), 60)
    return cap(repr(str(value)), 60)


def not_a(name: str, value: object, type_: Type) -> Unfit:
    article = "an" if isinstance(type_, Integer) and type_.bits == 32 else "a"
    return Unfit(f"`{name}` is {show(value)}, which is not {article} {type_}")


def outside(name: str, value: object, type_: Type) -> Unfit:
    return Unfit(f"`{name}` is {show(value)}, outside {type_}")


def inexact(name: str, value: object, type_: Type) -> Unfit:
    return Unfit(f"`{name}` is {show(value)}, which a {type_} cannot hold exactly")


def microseconds(name: str, clock: datetime, type_: Timestamp, zone: ZoneInfo) -> int:
    """The ordinal of a clock time, read in `zone` if it has no offset."""
    aware = clock if clock.tzinfo else clock.replace(tzinfo=zone)
    found = (aware - EPOCH) // MICROSECOND
    if not FIRST_MOMENT <= found <= LAST_MOMENT:
        raise outside(name, clock, type_)
    return found


def _ready(type_: Type) -> type | None:
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


def _converter(attribute: Attribute) -> Convert:
    name = attribute.name
    match attribute.type:
        case Boolean() as type_:
            return partial(_boolean, name, type_)
        case Integer() as type_:
            return partial(_integer, name, type_)
        case DecimalType() as type_:
            return partial(_decimal, name, type_, Decimal((0, (1,), -type_.scale)))
        case Double() as type_:
            return partial(_double, name, type_)
        case String() as type_:
            return partial(_string, name, type_)
        case Date() as type_:
            return partial(_date, name, type_)
        case Timestamp() as type_:
            return partial(_timestamp, name, type_, ZoneInfo(type_.zone))
    raise NotImplementedError(f"no rule for {attribute.type}")


def _boolean(name: str, type_: Boolean, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise not_a(name, value, type_)


def _integer(name: str, type_: Integer, value: Any) -> int:
    number = value
    if isinstance(value, bytes):
        exact = _exact(name, value, type_)
        if exact.adjusted() > 40 and exact:
            raise outside(name, value, type_)
        number = int(exact)
        if number != exact:
            raise not_a(name, value, type_)
    if not isinstance(number, int) or isinstance(number, bool):
        raise not_a(name, value, type_)
    if not type_.minimum <= number <= type_.maximum:
        raise outside(name, value, type_)
    return number


def _decimal(name: str, type_: DecimalType, step: Decimal, value: Any) -> Decimal:
    if isinstance(value, bytes):
        exact = _exact(name, value, type_)
    elif not isinstance(value, int) or isinstance(value, bool):
        raise not_a(name, value, type_)
    elif value.bit_length() > 200:
        raise outside(name, value, type_)
    else:
        exact = Decimal(value)
    if exact and exact.adjusted() >= type_.precision - type_.scale:
        raise outside(name, value, type_)
    fitted = exact.quantize(step, context=_EXACT)
    if fitted != exact:
        raise inexact(name, value, type_)
    return fitted


def _double(name: str, type_: Double, value: Any) -> float:
    if isinstance(value, bytes):
        nearest = float(value)
        if nearest in (math.inf, -math.inf):
            raise outside(name, value, type_)
        return nearest
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in SPECIAL:
        return SPECIAL[value]
    if not isinstance(value, int) or isinstance(value, bool):
        raise not_a(name, value, type_)
    try:
        same = float(value)
    except OverflowError:
        raise outside(name, value, type_) from None
    if same != value:
        raise inexact(name, value, type_)
    return same


def _string(name: str, type_: String, value: Any) -> str:
    if not isinstance(value, str):
        raise not_a(name, value, type_)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unfit(f"`{name}` is {show(value)}, which has no UTF-8 form") from None
    return value


def _date(name: str, type_: Date, value: Any) -> int:
    day = value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            raise not_a(name, value, type_) from None
    if type(day) is not date:
        raise not_a(name, value, type_)
    return day.toordinal() - EPOCH_DAY


def _timestamp(name: str, type_: Timestamp, zone: ZoneInfo, value: Any) -> int:
    # `schema.clock` reads these forms too, and more of them, but takes six times as long
    clock = value
    if isinstance(value, str) and (match := _TIMESTAMP.fullmatch(value)):
        if match[1] and match[1].strip("0"):
            raise Unfit(f"`{name}` is {show(value)}, finer than a microsecond")
        try:
            clock = datetime.fromisoformat(value)
        except ValueError:
            raise not_a(name, value, type_) from None
    if not isinstance(clock, datetime):
        raise not_a(name, value, type_)
    return microseconds(name, clock, type_, zone)


def _exact(name: str, text: bytes, type_: Type) -> Decimal:
    try:
        return Decimal(text.decode(), _EXACT)
    except InvalidOperation:  # an exponent of more than 18 digits
        raise not_a(name, text, type_) from None


def scanned_number(text: str) -> int | bytes:
    """A number in JSON's grammar as the scanner gives it.

    >>> scanned_number("12"), scanned_number("1.20")
    (12, b'1.20')
    """
    if "." in text or "e" in text or "E" in text or len(text) > MAX_DIGITS:
        return text.encode()
    return int(text)


def field_reader(type_: Type) -> Callable[[str], Any]:
    """From the text of a CSV field to the raw value that JSON would have given.

    An empty field is NULL unless it is `Quoted`. Spaces around it belong to a STRING only.

    >>> from headgate.schema import INT
    >>> read = field_reader(INT)
    >>> read(" +3 "), read(""), read("three")
    (3, None, 'three')
    """
    if isinstance(type_, String):
        return lambda text: str(text) if text or isinstance(text, Quoted) else None
    plain = _plain_reader(type_)

    def read(text: str) -> Any:
        stripped = text.strip(" \t")
        if not stripped and not isinstance(text, Quoted):
            return None
        return plain(stripped)

    return read


def _plain_reader(type_: Type) -> Callable[[str], Any]:
    if isinstance(type_, Boolean):
        truth = {"true": True, "false": False}
        return lambda text: truth.get(text.lower(), text)
    if type_.numeric:
        return lambda text: scanned_number(text) if _NUMBER.fullmatch(text) else text
    return str


def _scanned(type_: Type) -> Callable[[str, Any], Any]:
    """From a Python object to what the JSON scanner would have given."""
    if isinstance(type_, Date):
        return lambda _, value: _midnight(value)
    if isinstance(type_, Timestamp):
        return _to_the_microsecond
    if isinstance(type_, Double):
        return lambda _, value: value if isinstance(value, float) else _plain_number(value)
    return lambda _, value: _plain_number(value)


def _plain_number(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else repr(value).encode()
    if isinstance(value, Decimal) and value.is_finite():
        return scanned_number(str(value))
    return value


def _midnight(value: Any) -> Any:
    """The date of a clock time that is nothing but a date; pandas has no other way to write one."""
    if not isinstance(value, datetime) or value.tzinfo or value != _start_of_day(value):
        return value
    return value.date()


def _start_of_day(value: datetime) -> datetime:
    return datetime(value.year, value.month, value.day)


def _to_the_microsecond(name: str, value: Any) -> Any:
    if not hasattr(value, "nanosecond"):
        return value
    if value.nanosecond:
        raise Unfit(f"`{name}` is {show(value)}, finer than a microsecond")
    return value.to_pydatetime()  # a pandas.Timestamp reads zones in a way of its own
