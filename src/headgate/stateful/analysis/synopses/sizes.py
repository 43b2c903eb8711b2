"""How many bytes a value has, by its type, and how to say a number that may be huge."""

from __future__ import annotations

from headgate.schema import Boolean, Date, DecimalType, Double, Integer, String, Type

ASSUMED_TEXT = 32
COUNT = 8
EXACT_UP_TO = 10**9


def width(type_: Type, longest: int = ASSUMED_TEXT) -> int:
    """The bytes of a value; of a text, those of the longest.

    >>> from headgate.schema import BIGINT, BOOLEAN, STRING
    >>> width(BOOLEAN), width(BIGINT), width(STRING, 4)
    (1, 8, 4)
    """
    if isinstance(type_, String):
        return longest
    if isinstance(type_, Boolean):
        return 1
    if isinstance(type_, DecimalType):
        return 8 if type_.precision <= 18 else 16
    if isinstance(type_, Date):
        return 4
    return type_.bits // 8 if isinstance(type_, Integer) else 8


def width_of_sum(type_: Type) -> int:
    """The bytes of an exact sum of up to 2^63 values.

    A sum of doubles has all the bits from 2^-1074 up, so that their order does not matter.
    """
    if isinstance(type_, Double):
        return 272
    return 24 if isinstance(type_, DecimalType) and type_.precision > 18 else 16


def readable(count: int, noun: str) -> str:
    """A number with its noun; a huge one rounded.

    >>> readable(9, "value"), readable(1, "byte"), readable(13**3, "bucket")
    ('9 values', '1 byte', '2,197 buckets')
    >>> readable(317_000_000_000_000, "value"), readable(999 * 10**400, "value")
    ('about 3.2 × 10^14 values', 'about 1.0 × 10^403 values')
    """
    if count <= EXACT_UP_TO:
        return f"{count:,} {noun}" + ("" if count == 1 else "s")
    digits = str(count)
    exponent, leading = len(digits) - 1, round(int(digits[:3]) / 100, 1)
    if leading >= 10:
        exponent, leading = exponent + 1, leading / 10
    return f"about {leading} × 10^{exponent} {noun}s"
