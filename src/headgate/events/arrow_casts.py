"""An Arrow column is cast as a whole where that is exact, and row by row where it is not.

Arrow's safe casts refuse to round, to overflow and to cut, but they refuse a whole column for one
value, and a few they refuse without need. Then the rules of `conversion` decide on each value.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import EventError
from headgate.events.assembly import ConvertedColumn, convert_column
from headgate.events.batch import UnfitValue
from headgate.events.conversion import (
    FIRST_MOMENT,
    LAST_MOMENT,
    Convert,
    Rule,
    make_json_rule,
    make_python_rule,
    to_microseconds,
)
from headgate.schema import (
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
from headgate.schema.types import EPOCH

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 24 * 60 * 60


def cast_column(attribute: Attribute, given: pa.Array[Any]) -> ConvertedColumn:
    """Cast a column to the attribute's type; raise an EventError if no value of it could be cast.

    >>> from headgate.schema import INT
    >>> cast_column(Attribute("qty", INT), pa.array([3.0, 3.5])).unfit
    {1: '`qty` is 3.5, which is not an INT'}
    """
    array = given.dictionary_decode() if isinstance(given, pa.DictionaryArray) else given
    if pa.types.is_null(array.type):
        return ConvertedColumn(attribute, array.cast(attribute.type.arrow), {})
    if not _is_castable(array.type, attribute.type):
        raise EventError(
            f"column `{attribute.name}` is {given.type}, and the stream declares {attribute.type}; "
            "cast the column or change the declaration"
        )
    try:
        # The whole column at once; a single value that does not fit sends all of them row by row.
        exact = _exact_cast(array, attribute.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        exact = None
    if exact is not None:
        return ConvertedColumn(attribute, exact, {})
    return _convert_rows(attribute, array)


def _is_castable(given: pa.DataType, wanted: Type) -> bool:
    of = pa.types
    text = _is_text(given)
    match wanted:
        case Boolean():
            return of.is_boolean(given)
        case Integer() | DecimalType() | Double():
            return of.is_integer(given) or of.is_floating(given) or of.is_decimal(given)
        case Date():
            local = isinstance(given, pa.TimestampType) and given.tz is None
            return text or of.is_date(given) or local
        case Timestamp():
            return text or of.is_timestamp(given)
    return text


def _exact_cast(array: pa.Array[Any], wanted: Type) -> pa.Array[Any] | None:
    """Cast the whole column without any loss; return None or raise one of Arrow's errors."""
    of, given = pa.types, array.type
    match wanted:
        case String():
            texts = array.cast(pa.string())
            texts.validate(full=True)  # Parquet readers take any bytes for UTF-8
            return texts
        case DecimalType():
            if of.is_floating(given):
                return None
            if of.is_integer(given):
                return array.cast(pa.decimal128(38, wanted.scale)).cast(wanted.arrow)
            return _rescale(array, wanted.arrow)
        case Integer() if of.is_decimal(given):
            whole = _rescale(array, pa.decimal128(38, 0))
            return None if whole is None else whole.cast(wanted.arrow)
        case Double():
            return None if of.is_decimal(given) else array.cast(wanted.arrow)
        case Date():
            return _cast_dates(array)
        case Timestamp():
            if not of.is_timestamp(given) or (given.tz is None and wanted.zone != "UTC"):
                return None  # Arrow has its own tables of zones, and other gaps than zoneinfo
            return _check_range(array.cast(wanted.arrow), pa.int64(), wanted)
    return array.cast(wanted.arrow)


def _rescale(array: pa.Array[Any], wanted: pa.DataType) -> pa.Array[Any] | None:
    """Return decimals of another scale, if the way back gives what they were.

    That is a proof, and it is needed: a cast of 293 to DECIMAL(38, 38) overflows without a word.
    """
    rescaled = array.cast(wanted)
    return rescaled if rescaled.cast(array.type).equals(array) else None


def _cast_dates(array: pa.Array[Any]) -> pa.Array[Any] | None:
    if not pa.types.is_temporal(array.type):
        return None
    days = array.cast(pa.date32())
    if not days.cast(array.type).equals(array):  # a time of day was cut off
        return None
    return _check_range(days, pa.int32(), Date())


def _check_range(array: pa.Array[Any], integers: pa.DataType, wanted: Type) -> pa.Array[Any] | None:
    """Return the array, if all its values lie in the years 1 to 9999."""
    numbers = array.cast(integers)
    low, high = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    return array if low is None or wanted.minimum <= low <= high <= wanted.maximum else None


def _convert_rows(attribute: Attribute, array: pa.Array[Any]) -> ConvertedColumn:
    given, wanted = array.type, attribute.type
    if _is_text(given):
        return convert_column(attribute, make_json_rule(attribute), _read_texts(array))
    if isinstance(wanted, Date):
        ticks = array.cast(pa.int32() if pa.types.is_date32(given) else pa.int64())
        return convert_column(
            attribute,
            Rule(_make_day_converter(attribute.name, wanted, given), None),
            ticks.to_pylist(),
        )
    if isinstance(wanted, Timestamp):
        rule = Rule(_make_moment_converter(attribute.name, wanted, given), None)
        return convert_column(attribute, rule, array.cast(pa.int64()).to_pylist())
    return convert_column(attribute, make_python_rule(attribute), array.to_pylist())


def _is_text(given: pa.DataType) -> bool:
    of = pa.types
    return of.is_string(given) or of.is_large_string(given) or of.is_string_view(given)


def _read_texts(array: pa.Array[Any]) -> list[str | None]:
    """Return the strings; a byte that is not UTF-8 becomes a lone surrogate, and so unfit."""
    raw = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "surrogateescape") for text in raw]


def _make_day_converter(name: str, type_: Date, given: pa.DataType) -> Convert:
    """Make the rule from the number in a column of dates or clock times to that of the day."""
    # Ticks in a day: date64 counts milliseconds, timestamps their unit, date32 days.
    per_day = _DAY * _UNITS["ms"]
    if isinstance(given, pa.TimestampType):
        per_day = _DAY * _UNITS[given.unit]
    elif pa.types.is_date32(given):
        per_day = 1

    def convert(ticks: int) -> int:
        day, rest = divmod(ticks, per_day)
        if rest:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, given)}, which is not a {type_}")
        if not type_.minimum <= day <= type_.maximum:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, given)}, outside {type_}")
        return day

    return convert


def _make_moment_converter(name: str, type_: Timestamp, given: Any) -> Convert:
    """Make the rule from clock times to microseconds; without a zone, they are read in ours."""
    per_second, zone = _UNITS[given.unit], ZoneInfo(type_.zone)
    start = EPOCH if given.tz else EPOCH.replace(tzinfo=None)

    def convert(ticks: int) -> int:
        moment, rest = divmod(ticks * _UNITS["us"], per_second)
        if rest:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, given)}, finer than a microsecond")
        if not FIRST_MOMENT <= moment <= LAST_MOMENT:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, given)}, outside {type_}")
        return to_microseconds(name, start + timedelta(microseconds=moment), type_, zone)

    return convert


def _show_ticks(ticks: int, given: pa.DataType) -> str:
    return f"{ticks:,} as {given}"
