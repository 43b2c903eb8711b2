"""What a JSON line means, one row at a time, by code that shares nothing with the product.

Numbers are fractions, moments are counted by hand, objects are lists of pairs. Nothing is fast.
"""

from __future__ import annotations

import calendar
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo


class DeadError(Exception):
    """The line is a dead letter."""


@dataclass
class Number:
    """A number as it stands in the text."""

    text: str

    @property
    def whole_form(self) -> bool:
        return not set(self.text) & set(".eE")

    @property
    def worth(self) -> Fraction:
        return Fraction(self.text)


def read_line(line: bytes, types: Mapping[str, str], zone: str = "UTC") -> dict[str, Any]:
    """The row: int for whole types and for days and microseconds, Fraction, float, str, bool."""
    try:
        document = json.loads(
            line.decode("utf-8"),
            parse_int=Number,
            parse_float=Number,
            object_pairs_hook=lambda pairs: {"pairs": pairs},
        )
    except (ValueError, RecursionError):
        raise DeadError from None
    if not isinstance(document, dict):
        raise DeadError
    return {
        name: _typed(_the_one(_given(document, name)), sql, zone) for name, sql in types.items()
    }


def _given(document: dict[str, Any], name: str) -> list[Any]:
    """Everything that the document says about an attribute."""
    flat = [value for key, value in document["pairs"] if key.lower() == name.lower()]
    if "." not in name:
        return flat
    first, rest = name.lower().split(".", 1)
    holders = [value for key, value in document["pairs"] if key.lower() == first]
    if len(holders) > 1:
        raise DeadError
    for holder in holders:
        if isinstance(holder, dict):
            return flat + [v for key, v in holder["pairs"] if key.lower() == rest]
        if holder is not None:
            raise DeadError
    return flat


def _the_one(given: list[Any]) -> Any:
    if len(given) > 1:
        raise DeadError
    return given[0] if given else None


def _typed(value: Any, sql: str, zone: str) -> Any:
    if value is None:
        return None
    if sql == "BOOLEAN":
        return _must(value, isinstance(value, bool))
    if sql == "STRING":
        _must(value, isinstance(value, str))
        return _must(value, not any(0xD800 <= ord(letter) <= 0xDFFF for letter in value))
    if sql == "DATE":
        return _day(_must(value, isinstance(value, str)))
    if sql == "TIMESTAMP":
        return _moment(_must(value, isinstance(value, str)), zone)
    if sql == "DOUBLE":
        return _double(value)
    _must(value, isinstance(value, Number))
    scale = 0
    limits = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1)}
    if sql.startswith("DECIMAL"):
        precision, scale = map(int, re.findall(r"\d+", sql))
        limits[sql] = (1 - 10**precision, 10**precision - 1)
    unscaled = value.worth * 10**scale
    low, high = limits[sql]
    _must(value, unscaled.denominator == 1 and low <= unscaled <= high)
    return Fraction(unscaled, 10**scale) if sql.startswith("DECIMAL") else int(unscaled)


def _must(value: Any, holds: bool) -> Any:
    if not holds:
        raise DeadError
    return value


def _double(value: Any) -> float:
    if isinstance(value, float):
        return value
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    _must(value, isinstance(value, Number))
    nearest = float(value.text)
    _must(value, math.isfinite(nearest))
    if value.whole_form:
        _must(value, Fraction(nearest) == value.worth)
        return float(int(value.text))
    return nearest


def _day(text: str) -> int:
    parts = re.fullmatch("([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    _must(text, parts is not None)
    assert parts is not None
    year, month, day = map(int, parts.groups())
    _must(text, year >= 1 and 1 <= month <= 12)
    _must(text, 1 <= day <= calendar.monthrange(year, month)[1])
    before = 365 * (year - 1) + (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400
    months = sum(calendar.monthrange(year, m)[1] for m in range(1, month))
    return before + months + day - 1 - 719_162


def _moment(text: str, zone: str) -> int:
    form = r"(.{10})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(Z|[+-][0-9:]*)?"
    parts = re.fullmatch(form, text)
    _must(text, parts is not None)
    assert parts is not None
    day, hour, minute = _day(parts[1]), int(parts[2]), int(parts[3])
    second = int(parts[4] or 0)
    _must(text, hour < 24 and minute < 60 and second < 60)
    fraction = Fraction(int(parts[5] or 0), 10 ** len(parts[5] or "")) * 1_000_000
    _must(text, fraction.denominator == 1)
    clock = ((day * 24 + hour) * 60 + minute) * 60 + second
    clock -= _offset(parts[6]) if parts[6] else _offset_of_zone(clock, zone)
    first, last = -62_135_596_800, 253_402_300_799
    _must(text, first <= clock <= last)
    return clock * 1_000_000 + int(fraction)


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    parts = re.fullmatch("([+-])([0-9]{2})(?::?([0-9]{2}))?", text)
    _must(text, parts is not None)
    assert parts is not None
    hours, minutes = int(parts[2]), int(parts[3] or 0)
    _must(text, hours < 24 and minutes < 60)
    return (hours * 3600 + minutes * 60) * (-1 if parts[1] == "-" else 1)


def _offset_of_zone(clock: int, zone: str) -> int:
    """The offset at which the wall clock shows this; the earlier of two, or that before a gap."""
    if zone == "UTC":
        return 0
    wall = datetime(1970, 1, 1) + timedelta(seconds=clock)
    place = ZoneInfo(zone)
    days = [wall + timedelta(days=shift) for shift in (-1, 1)]
    offsets = [place.utcoffset(day.replace(tzinfo=place)) or timedelta() for day in days]
    for offset in offsets:
        if (wall - offset).replace(tzinfo=UTC).astimezone(place).replace(tzinfo=None) == wall:
            return int(offset.total_seconds())
    return int(offsets[0].total_seconds())
