"""A type is an ordered set of values, each with an ordinal.

Every value of every type has an *ordinal*: an `int`, or for STRING the `str` itself. Ordinals are
ordered as the values are and have a least greater one (`successor`), so that all interval algebra
is written once, over half-open ranges of ordinals, and is exact: `a > 3` on INT is `a >= 4`.

| type           | value                    | ordinal                                       |
|----------------|--------------------------|-----------------------------------------------|
| BOOLEAN        | bool                     | 0, 1                                          |
| INT, BIGINT    | int                      | the number                                    |
| DECIMAL(p, s)  | decimal.Decimal          | the unscaled number                           |
| DOUBLE         | float                    | its rank among all doubles, NaN above them all |
| STRING         | str                      | itself; code points order it as UTF-8 does    |
| DATE           | datetime.date            | days since 1970-01-01                         |
| TIMESTAMP      | datetime.datetime in UTC | microseconds since 1970-01-01T00:00:00Z       |
"""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    import pyarrow as pa

Ordinal = int | str
Number = int | float | Decimal | Fraction
Value = bool | int | float | Decimal | str | date | datetime


def successor(ordinal: Ordinal) -> Ordinal:
    r"""Return the least ordinal above this one.

    >>> successor(3), successor("ab")
    (4, 'ab\x00')
    """
    return ordinal + "\0" if isinstance(ordinal, str) else ordinal + 1


class Type:
    """What all types share. `fits` says whether an object is a value; the rest trusts that."""

    family: ClassVar[str]  # types of one family compare with each other

    @property
    def numeric(self) -> bool:
        return self.family == "number"

    @property
    @abstractmethod
    def sql(self) -> str:
        """The type as written in CREATE STREAM."""

    @property
    @abstractmethod
    def arrow(self) -> pa.DataType:
        """The type of an Arrow column of such values."""

    @property
    @abstractmethod
    def minimum(self) -> Ordinal:
        """The least ordinal."""

    @property
    @abstractmethod
    def maximum(self) -> Ordinal | None:
        """The greatest ordinal; None where there is none (STRING)."""

    @abstractmethod
    def ordinal(self, value: Any) -> Ordinal:
        """Return the ordinal of a value."""

    @abstractmethod
    def value(self, ordinal: Any) -> Value:
        """Return the value with this ordinal."""

    @abstractmethod
    def fits(self, value: object) -> bool:
        """Return whether this Python object is a value of this type, with nothing lost."""

    def place(self, constant: Any) -> tuple[Ordinal, Ordinal]:
        """Return the least ordinal that is not below a constant, and the least that is above it.

        Between the two are the values that equal it: one, or none. The constant may be of any type
        that compares with this one; the ordinals may lie outside this type.

        >>> INT.place(3), INT.place(3.5), INT.place(10**20)
        ((3, 4), (4, 4), (100000000000000000000, 100000000000000000001))
        """
        ordinal = self.ordinal(constant)
        return ordinal, successor(ordinal)

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True)
class Boolean(Type):
    """BOOLEAN, with FALSE below TRUE."""

    sql: ClassVar[str] = "BOOLEAN"
    family: ClassVar[str] = "boolean"
    minimum: ClassVar[int] = 0
    maximum: ClassVar[int] = 1

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.bool_()

    def ordinal(self, value: bool) -> int:
        return int(value)

    def value(self, ordinal: int) -> bool:
        return bool(ordinal)

    def fits(self, value: object) -> bool:
        return isinstance(value, bool)


@dataclass(frozen=True)
class Integer(Type):
    """INT with 32 bits, BIGINT with 64."""

    bits: int
    family: ClassVar[str] = "number"

    @property
    def sql(self) -> str:
        return "INT" if self.bits == 32 else "BIGINT"

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.int32() if self.bits == 32 else pa.int64()

    @cached_property
    def minimum(self) -> int:
        return -(1 << (self.bits - 1))

    @cached_property
    def maximum(self) -> int:
        return (1 << (self.bits - 1)) - 1

    def ordinal(self, value: int) -> int:
        return value

    def value(self, ordinal: int) -> int:
        return ordinal

    def fits(self, value: object) -> bool:
        # In Python a bool is an int; in SQL it is no number.
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return self.minimum <= value <= self.maximum

    def place(self, constant: Number) -> tuple[int, int]:
        if isinstance(constant, int):
            return constant, constant + 1
        return _whole_place(constant, 1, self.minimum, self.maximum)


@dataclass(frozen=True)
class DecimalType(Type):
    """DECIMAL(precision, scale): `precision` digits, `scale` of them behind the point."""

    precision: int = 10
    scale: int = 0
    family: ClassVar[str] = "number"

    @property
    def sql(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.decimal128(self.precision, self.scale)

    @cached_property
    def minimum(self) -> int:
        return 1 - int(10**self.precision)

    @cached_property
    def maximum(self) -> int:
        return int(10**self.precision) - 1

    def ordinal(self, value: Decimal) -> int:
        return int(value.scaleb(self.scale, WIDE))

    def value(self, ordinal: int) -> Decimal:
        return Decimal(ordinal).scaleb(-self.scale, WIDE)

    def fits(self, value: object) -> bool:
        # More than 38 digits before the point fit no DECIMAL, and scaling them could be costly.
        if not isinstance(value, Decimal) or not value.is_finite() or value.adjusted() > 38:
            return False
        unscaled = value.scaleb(self.scale, WIDE)
        # Nothing may be lost: no digit behind the scale, no value beyond the precision.
        whole = unscaled == unscaled.to_integral_value(context=WIDE)
        return whole and self.minimum <= unscaled <= self.maximum

    def place(self, constant: Number) -> tuple[int, int]:
        return _whole_place(constant, 10**self.scale, self.minimum, self.maximum)


@dataclass(frozen=True)
class Double(Type):
    """Doubles in Spark's order: −0.0 equals 0.0, and NaN equals itself above everything."""

    sql: ClassVar[str] = "DOUBLE"
    family: ClassVar[str] = "number"

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.float64()

    @property
    def minimum(self) -> int:
        return -INFINITY_RANK

    @property
    def maximum(self) -> int:
        return NAN_RANK

    def ordinal(self, value: float) -> int:
        if math.isnan(value):
            return NAN_RANK
        # The bits of positive doubles ascend with their values; negative ones mirror them, and −0.0
        # is 0.
        bits: int = _LONG.unpack(_DOUBLE.pack(value))[0]
        return bits if bits >= 0 else -(bits & MAGNITUDE)

    def value(self, ordinal: int) -> float:
        if ordinal == NAN_RANK:
            return math.nan
        # The inverse of `ordinal`; rank 0 is +0.0, never −0.0.
        magnitude: float = _DOUBLE.unpack(_LONG.pack(abs(ordinal)))[0]
        return -magnitude if ordinal < 0 else magnitude

    def fits(self, value: object) -> bool:
        return isinstance(value, float)

    def place(self, constant: Number) -> tuple[int, int]:
        if isinstance(constant, float):
            ordinal = self.ordinal(constant)
            return ordinal, ordinal + 1
        exact = Fraction(constant)
        try:
            nearest = float(exact)
        except OverflowError:
            # Between the largest finite double and infinity: no double equals it.
            beyond = INFINITY_RANK if exact > 0 else 1 - INFINITY_RANK
            return beyond, beyond
        # The nearest double may lie on either side of the constant.
        rounded, ordinal = Fraction(nearest), self.ordinal(nearest)
        return ordinal + (rounded < exact), ordinal + (rounded <= exact)


@dataclass(frozen=True)
class String(Type):
    """STRING, in the order of code points."""

    sql: ClassVar[str] = "STRING"
    family: ClassVar[str] = "string"
    minimum: ClassVar[str] = ""
    maximum: ClassVar[None] = None

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.string()

    def ordinal(self, value: str) -> str:
        return value

    def value(self, ordinal: str) -> str:
        return ordinal

    def fits(self, value: object) -> bool:
        return isinstance(value, str)


@dataclass(frozen=True)
class Date(Type):
    """DATE: a day of the calendar, without a zone."""

    sql: ClassVar[str] = "DATE"
    family: ClassVar[str] = "time"

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.date32()

    @cached_property
    def minimum(self) -> int:
        return self.ordinal(date.min)

    @cached_property
    def maximum(self) -> int:
        return self.ordinal(date.max)

    def ordinal(self, value: date) -> int:
        return value.toordinal() - EPOCH_DAY

    def value(self, ordinal: int) -> date:
        return date.fromordinal(ordinal + EPOCH_DAY)

    def fits(self, value: object) -> bool:
        return isinstance(value, date) and not isinstance(value, datetime)

    def place(self, constant: date) -> tuple[int, int]:
        """Return the place of a day, or of a moment among the beginnings of days in its zone.

        They are looked up: clocks may skip midnight, and have skipped whole days.
        """
        day = self.ordinal(constant)
        if not isinstance(constant, datetime):
            return day, day + 1
        moment, zone = TIMESTAMP.ordinal(constant), constant.tzinfo
        # The day of the moment and its neighbours, as far as they exist.
        near = [near for near in range(day - 1, day + 2) if self.minimum <= near <= self.maximum]
        begins = [TIMESTAMP.ordinal(datetime.combine(self.value(n), time(), zone)) for n in near]
        below = sum(begin < moment for begin in begins)
        return near[0] + below, near[0] + sum(begin <= moment for begin in begins)


@dataclass(frozen=True)
class Timestamp(Type):
    """A moment, in microseconds. `zone` is where clock times without an offset are read."""

    zone: str = "UTC"
    sql: ClassVar[str] = "TIMESTAMP"
    family: ClassVar[str] = "time"

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.timestamp("us", tz="UTC")

    @cached_property
    def minimum(self) -> int:
        return self.ordinal(datetime.min.replace(tzinfo=UTC))

    @cached_property
    def maximum(self) -> int:
        return self.ordinal(datetime.max.replace(tzinfo=UTC))

    def moment(self, clock: datetime) -> datetime:
        """Return the moment in UTC of a clock time; without an offset, it is read in `zone`."""
        aware = clock if clock.tzinfo else clock.replace(tzinfo=ZoneInfo(self.zone))
        return aware.astimezone(UTC)

    def midnight(self, day: date) -> int:
        """Return the ordinal of the moment at which a date begins in `zone`."""
        return self.ordinal(datetime(day.year, day.month, day.day))

    def ordinal(self, value: datetime) -> int:
        # The clock as if it were UTC, less its offset. Converting to UTC first would fail where the
        # moment falls outside the years 1 to 9999.
        offset = value.utcoffset()
        if offset is None:
            offset = value.replace(tzinfo=ZoneInfo(self.zone)).utcoffset() or timedelta()
        return (value.replace(tzinfo=UTC) - EPOCH - offset) // MICROSECOND

    def value(self, ordinal: int) -> datetime:
        return EPOCH + ordinal * MICROSECOND

    def fits(self, value: object) -> bool:
        return isinstance(value, datetime)

    def place(self, constant: date) -> tuple[int, int]:
        if isinstance(constant, datetime):
            ordinal = self.ordinal(constant)
        else:
            ordinal = self.midnight(constant)
        return ordinal, ordinal + 1


def _whole_place(constant: Number, scale: int, minimum: int, maximum: int) -> tuple[int, int]:
    """Return the place of a constant in units of 1/scale; infinities lie beyond the limits."""
    if isinstance(constant, float) and not math.isfinite(constant):
        beyond = minimum - 1 if constant < 0 else maximum + 1
        return beyond, beyond
    # Exact: between ceil and floor + 1 lies the constant itself, if it is whole in this unit.
    scaled = Fraction(constant) * scale
    return math.ceil(scaled), math.floor(scaled) + 1


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.toordinal()
MICROSECOND = timedelta(microseconds=1)
# Digits enough for every DECIMAL and every literal, so that scaling never rounds.
WIDE = Context(prec=1000)
# A double as a whole number: all bits but the sign; the bits of infinity; NaN is next to it.
MAGNITUDE = (1 << 63) - 1
INFINITY_RANK = 0x7FF0 << 48
NAN_RANK = INFINITY_RANK + 1
_DOUBLE = struct.Struct("<d")
_LONG = struct.Struct("<q")

BOOLEAN = Boolean()
INT = Integer(32)
BIGINT = Integer(64)
DOUBLE = Double()
STRING = String()
DATE = Date()
TIMESTAMP = Timestamp()
