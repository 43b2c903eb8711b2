"""Dates and times as text: the forms that literals and events share."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_CLOCK = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,12}))?)?)?"
    r"\s*(Z|UTC|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)


def parse_date(text: str) -> date:
    """Return a date written `YYYY-MM-DD`.

    >>> parse_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text[:40]}` is not a date; write it as 2024-12-31")
    year, month, day = map(int, match.groups())
    return date(year, month, day)


def parse_timestamp(text: str) -> datetime:
    """Return a date and time, aware when an offset is written, to the microsecond.

    >>> parse_timestamp("2024-02-29 12:30:00.25+01:00").isoformat()
    '2024-02-29T12:30:00.250000+01:00'
    >>> parse_timestamp("2024-02-29T12:30").tzinfo is None
    True
    """
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text[:40]}` is not a time; write it as 2024-12-31 23:59:59.999999Z")
    day, hour, minute, second, fraction, offset = match.groups()
    # Zeros beyond the microsecond lose nothing.
    digits = (fraction or "").rstrip("0")
    if len(digits) > 6:
        raise ValueError(f"`{text[:40]}` is finer than a microsecond")
    start = parse_date(day)
    return datetime(
        start.year,
        start.month,
        start.day,
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int(digits.ljust(6, "0")),
        tzinfo=_offset(offset),
    )


def _offset(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in ("Z", "UTC"):
        return UTC
    # `+HH`, `+HHMM` and `+HH:MM`, in minutes.
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
