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


def cast_column(attribute: Attribute, column: pa.Array[Any]) -> ConvertedColumn:
    """Cast a column to the attribute's type; raise an EventError if no value of it could be cast.

    >>> from headgate.schema import INT
    >>> cast_column(Attribute("qty", INT), pa.array([3.0, 3.5])).unfit
    {1: '`qty` is 3.5, which is not an INT'}
    """
    array = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    if pa.types.is_null(array.type):
        return ConvertedColumn(attribute, array.cast(attribute.type.arrow), {})
    if not _is_castable(array.type, attribute.type):
        raise EventError(
            f"column `{attribute.name}` is {column.type}, and the stream declares "
            f"{attribute.type}; cast the column or change the declaration"
        )
    try:
        # The whole column at once; a single value that does not fit sends all of them row by row.
        exact = _exact_cast(array, attribute.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        exact = None
    if exact is not None:
        return ConvertedColumn(attribute, exact, {})
    return _convert_rows(attribute, array)


def _is_castable(source: pa.DataType, target: Type) -> bool:
    of = pa.types
    text = _is_text(source)
    match target:
        case Boolean():
            return of.is_boolean(source)
        # Any number may fit an attribute that is one; each value decides.
        case Integer() | DecimalType() | Double():
            return of.is_integer(source) or of.is_floating(source) or of.is_decimal(source)
        case Date():
            # A timestamp with a zone has no date of its own: it depends on whose midnight counts.
            local = isinstance(source, pa.TimestampType) and source.tz is None
            return text or of.is_date(source) or local
        case Timestamp():
            return text or of.is_timestamp(source)
    return text


def _exact_cast(array: pa.Array[Any], target: Type) -> pa.Array[Any] | None:
    """Cast the whole column without any loss; return None or raise one of Arrow's errors."""
    of, source = pa.types, array.type
    match target:
        case String():
            texts = array.cast(pa.string())
            texts.validate(full=True)  # Parquet readers take any bytes for UTF-8
            return texts
        case DecimalType():
            # A float stands for its shortest decimal text, as the rules of `conversion` read it.
            if of.is_floating(source):
                return None
            if of.is_integer(source):
                # By way of 38 digits: Arrow asks for room for every value of the integer type, not
                # only for those in the column.
                return array.cast(pa.decimal128(38, target.scale)).cast(target.arrow)
            return _rescale(array, target.arrow)
        case Integer() if of.is_decimal(source):
            # A fraction is lost on the way to scale 0 and back, so only whole numbers pass.
            whole = _rescale(array, pa.decimal128(38, 0))
            return None if whole is None else whole.cast(target.arrow)
        case Double():
            # Decimals go by the rules of `conversion`, as their texts in JSON would. Arrow's safe
            # cast refuses integers beyond 2^53, some of which fit: then the rules decide on each.
            return None if of.is_decimal(source) else array.cast(target.arrow)
        case Date():
            return _cast_dates(array)
        case Timestamp():
            if not of.is_timestamp(source) or (source.tz is None and target.zone != "UTC"):
                return None  # Arrow has its own tables of zones, and other gaps than zoneinfo
            return _check_range(array.cast(target.arrow), pa.int64(), target)
    return array.cast(target.arrow)


def _rescale(array: pa.Array[Any], target: pa.DataType) -> pa.Array[Any] | None:
    """Return decimals of another scale, if the way back gives what they were.

    That is a proof, and it is needed: a cast of 293 to DECIMAL(38, 38) overflows without a word.
    """
    rescaled = array.cast(target)
    return rescaled if rescaled.cast(array.type).equals(array) else None


def _cast_dates(array: pa.Array[Any]) -> pa.Array[Any] | None:
    if not pa.types.is_temporal(array.type):
        return None
    days = array.cast(pa.date32())
    if not days.cast(array.type).equals(array):  # a time of day was cut off
        return None
    return _check_range(days, pa.int32(), Date())


def _check_range(array: pa.Array[Any], integers: pa.DataType, type_: Type) -> pa.Array[Any] | None:
    """Return the array, if all its values lie in the years 1 to 9999."""
    numbers = array.cast(integers)
    # Both are None where all values are NULL, and then none is out of range.
    low, high = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    return array if low is None or type_.minimum <= low <= high <= type_.maximum else None


def _convert_rows(attribute: Attribute, array: pa.Array[Any]) -> ConvertedColumn:
    source, target = array.type, attribute.type
    # Text is read as a string in JSON would be, so both have the same forms of dates and times.
    if _is_text(source):
        return convert_column(attribute, make_json_rule(attribute), _read_texts(array))
    if isinstance(target, Date):
        # Numbers of ticks, since Python has no date before the year 1 and no time with nanoseconds.
        ticks = array.cast(pa.int32() if pa.types.is_date32(source) else pa.int64())
        return convert_column(
            attribute,
            Rule(_make_day_converter(attribute.name, target, source), None),
            ticks.to_pylist(),
        )
    if isinstance(target, Timestamp):
        rule = Rule(_make_moment_converter(attribute.name, target, source), None)
        return convert_column(attribute, rule, array.cast(pa.int64()).to_pylist())
    return convert_column(attribute, make_python_rule(attribute), array.to_pylist())


def _is_text(source: pa.DataType) -> bool:
    of = pa.types
    return of.is_string(source) or of.is_large_string(source) or of.is_string_view(source)


def _read_texts(array: pa.Array[Any]) -> list[str | None]:
    """Return the strings; a byte that is not UTF-8 becomes a lone surrogate, and so unfit."""
    raw = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "surrogateescape") for text in raw]


def _make_day_converter(name: str, type_: Date, source: pa.DataType) -> Convert:
    """Make the rule from the number in a column of dates or clock times to that of the day."""
    # Ticks in a day: date64 counts milliseconds, timestamps their unit, date32 days.
    per_day = _DAY * _UNITS["ms"]
    if isinstance(source, pa.TimestampType):
        per_day = _DAY * _UNITS[source.unit]
    elif pa.types.is_date32(source):
        per_day = 1

    def convert(ticks: int) -> int:
        day, remainder = divmod(ticks, per_day)
        if remainder:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, source)}, which is not a {type_}")
        if not type_.minimum <= day <= type_.maximum:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, source)}, outside {type_}")
        return day

    return convert


def _make_moment_converter(name: str, type_: Timestamp, source: Any) -> Convert:
    """Make the rule from clock times to microseconds; without a zone, they are read in ours."""
    per_second, zone = _UNITS[source.unit], ZoneInfo(type_.zone)
    # With a zone the ticks count from the epoch in UTC. Without one they are clock time, which
    # `to_microseconds` reads in the declared zone.
    start = EPOCH if source.tz else EPOCH.replace(tzinfo=None)

    def convert(ticks: int) -> int:
        moment, remainder = divmod(ticks * _UNITS["us"], per_second)
        if remainder:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, source)}, finer than a microsecond")
        if not FIRST_MOMENT <= moment <= LAST_MOMENT:
            raise UnfitValue(f"`{name}` is {_show_ticks(ticks, source)}, outside {type_}")
        return to_microseconds(name, start + timedelta(microseconds=moment), type_, zone)

    return convert


def _show_ticks(ticks: int, source: pa.DataType) -> str:
    return f"{ticks:,} as {source}"
