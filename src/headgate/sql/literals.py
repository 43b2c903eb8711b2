"""A literal is the constant that its text says, exactly.

Against a DOUBLE, a number written with a point or an exponent is the double that it denotes, as in
Spark; a whole number is that number exactly, and so is every number against every other type.
Dates and times are read here too; `events` reads the same forms from raw text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

from headgate.schema import STRING, Date, Double, Timestamp, Type, Value

MAX_EXPONENT = 400
_WHOLE = re.compile(r"-?\d+", re.ASCII)
# Groups: a code point, three octal digits, any other character behind a backslash, and a quote that
# is doubled.
_ESCAPE = {
    mark: re.compile(
        rf"\\(?:(u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}})|([01][0-7]{{2}})|(.))|{mark}({mark})",
        re.DOTALL,
    )
    for mark in ("'", '"')
}
_ESCAPED_CHARACTERS = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",  # LIKE gives these two their meaning
    "_": "\\_",
}
_SPECIAL_DOUBLES = {
    "nan": math.nan,
    "inf": math.inf,
    "infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}
# What to write beside an attribute of a family of types.
_EXAMPLES = {
    "number": "a number, such as 10",
    "string": "a string, such as 'text'",
    "boolean": "TRUE or FALSE",
    "time": "DATE '2024-12-31' or TIMESTAMP '2024-12-31 23:59:59'",
}
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_CLOCK = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,12}))?)?)?"
    r"\s*(Z|UTC|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)


class LiteralError(ValueError):
    """A literal that does not fit where it stands, and what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written."""

    text: str


@dataclass(frozen=True, slots=True)
class TypedLiteral:
    """DATE '…' or TIMESTAMP '…'."""

    type: str
    text: str


# None is NULL; a float is a number with the suffix D, or CAST('NaN' AS DOUBLE)
Literal = Number | TypedLiteral | str | bool | float | None


def unescape(quoted: str) -> str:
    r"""Return the text that a string literal stands for, as in Spark 4; `r'…'` as it is.

    >>> unescape(r"'it''s \n \% \u0041 \x'")
    "it's \n \\% A x"
    """
    if quoted[0] in "rR":
        return quoted[2:-1]
    return _ESCAPE[quoted[0]].sub(_unescape_match, quoted[1:-1])


def _unescape_match(match: re.Match[str]) -> str:
    code, octal, character, mark = match.groups()
    if code:
        point = int(code[1:], 16)
        # Beyond Unicode, or half of a surrogate pair.
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise LiteralError(f"\\{code} is not a character")
        return chr(point)
    if octal:
        return chr(int(octal, 8))
    return mark or _ESCAPED_CHARACTERS.get(character, character)


def evaluate_literal(literal: Literal, type_: Type, zone: str) -> Value | None:
    """Return the value that a literal means next to an attribute of this type; None is NULL.

    >>> from headgate.schema import DOUBLE, INT
    >>> evaluate_literal(Number("0.1"), DOUBLE, "UTC"), evaluate_literal(Number("3.5"), INT, "UTC")
    (0.1, Decimal('3.5'))
    """
    if literal is None:
        return None
    family = type_.family
    if isinstance(literal, Number | float):
        _check_family(family == "number", "a number", type_)
        return _parse_number(literal.text, type_) if isinstance(literal, Number) else literal
    if isinstance(literal, bool):
        _check_family(family == "boolean", "a BOOLEAN", type_)
        return literal
    if isinstance(literal, TypedLiteral):
        _check_family(family == "time", f"a {literal.type}", type_)
        return _parse_time(literal, zone)
    # Only strings are left. Beside a DATE or TIMESTAMP they are read as one.
    if isinstance(type_, Date | Timestamp):
        return _parse_time(TypedLiteral(type_.sql, literal), zone)
    _check_family(family == "string", "a string", type_)
    return literal


def check_literal(literal: Literal) -> None:
    """Raise for a number or a time that means nothing, wherever it stands."""
    if isinstance(literal, Number):
        # Any type but DOUBLE reads the number exactly.
        _parse_number(literal.text, STRING)
    elif isinstance(literal, TypedLiteral):
        _parse_time(literal, "UTC")


def parse_special_double(text: str) -> float | None:
    """Return NaN or an infinity, which have no literal of their own; None for any other text."""
    return _SPECIAL_DOUBLES.get(text.strip().lower().removeprefix("+"))


def _check_family(fits: bool, noun: str, type_: Type) -> None:
    if not fits:
        message = f"{noun} cannot be compared with {add_article(type_.sql)}"
        raise LiteralError(message, f"write {_EXAMPLES[type_.family]}")


def add_article(noun: str) -> str:
    """Return the noun with `a` or `an`."""
    return f"{'an' if noun[0] in 'AEIOU' else 'a'} {noun}"


def _parse_number(text: str, type_: Type) -> Value:
    if len(text) > MAX_EXPONENT:
        raise LiteralError(f"a number of {len(text):,} characters is too long")
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        exact = Decimal(text)
    except ArithmeticError:
        raise LiteralError("this is not a number that can be compared") from None
    # Checked before anything is computed: as a whole number, 1E999999999 would fill the memory.
    if exact and abs(exact.adjusted()) > MAX_EXPONENT:
        raise LiteralError(
            "a number is too far from zero or too near to it",
            f"write one of at most {MAX_EXPONENT} digits",
        )
    # Beyond the range of doubles the exact number is kept, which compares as it should.
    if isinstance(type_, Double) and math.isfinite(float(exact)):
        return float(exact)
    return exact


def _parse_time(literal: TypedLiteral, zone: str) -> date | datetime:
    try:
        if literal.type == "DATE":
            return parse_date(literal.text.strip())
        clock = parse_timestamp(literal.text.strip())
        local = ZoneInfo(zone)
        # In the zone of the stream, whose calendar says on which day a moment falls.
        moment = clock if clock.tzinfo else clock.replace(tzinfo=local)
        return moment.astimezone(local)
    except (ValueError, OverflowError) as error:
        # What is not even written as a date says itself how to write it.
        hint = "" if ";" in str(error) else "correct the date or the time"
        raise LiteralError(str(error), hint) from None


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
        tzinfo=_parse_offset(offset),
    )


def _parse_offset(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in ("Z", "UTC"):
        return UTC
    # `+HH`, `+HHMM` and `+HH:MM`, in minutes.
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
