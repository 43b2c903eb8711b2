"""Why a value is unfit, in words that name the attribute and show the value."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

from headgate.events.batch import truncate_text
from headgate.schema import Integer, Type

MAX_BITS = 2_000  # integers beyond are too long to print, and under some settings str() refuses


class UnfitValue(Exception):
    """A value that its attribute cannot take; the message is the reason of the dead letter."""


def show_value(value: object) -> str:
    """A value as reasons show it.

    >>> show("hold"), show(b"3.5"), show(True), show([1])
    ("'hold'", '3.5', 'true', 'an array')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a number of some {int(value.bit_length() * math.log10(2))} digits"
    if isinstance(value, bytes):
        return truncate_text(value.decode("utf-8", "backslashreplace"), 60)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int | float | Decimal):
        return truncate_text(str(value), 60)
    return truncate_text(repr(str(value)), 60)


def refuse_type(name: str, value: object, type_: Type) -> UnfitValue:
    article = "an" if isinstance(type_, Integer) and type_.bits == 32 else "a"
    return UnfitValue(f"`{name}` is {show_value(value)}, which is not {article} {type_}")


def refuse_range(name: str, value: object, type_: Type) -> UnfitValue:
    return UnfitValue(f"`{name}` is {show_value(value)}, outside {type_}")


def refuse_inexact(name: str, value: object, type_: Type) -> UnfitValue:
    return UnfitValue(f"`{name}` is {show_value(value)}, which a {type_} cannot hold exactly")
