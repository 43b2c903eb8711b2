"""A literal is the constant that its text says, exactly.

Against a DOUBLE, a number written with a point or an exponent is the double that it denotes, as in
Spark; a whole number is that number exactly, and so is every number against every other type.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from headgate.schema import STRING, Date, Double, Timestamp, Type, Value
from headgate.schema.datetimes import parse_date, parse_timestamp

MAX_EXPONENT = 400
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_ESCAPE = {
    mark: re.compile(
        rf"\\(?:(u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}})|([01][0-7]{{2}})|(.))|{mark}({mark})",
        re.DOTALL,
    )
    for mark in ("'", '"')
}
_CHARACTERS = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",  # LIKE gives these two their meaning
    "_": "\\_",
}
_SPECIAL = {
    "nan": math.nan,
    "inf": math.inf,
    "infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}


class LiteralError(ValueError):
    """A literal that does not fit where it stands."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written."""

    text: str


@dataclass(frozen=True, slots=True)
class Typed:
    """DATE '…' or TIMESTAMP '…'."""

    type: str
    text: str


# None is NULL; a float is a number with the suffix D, or CAST('NaN' AS DOUBLE)
Literal = Number | Typed | str | bool | float | None


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
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise LiteralError(f"\\{code} is not a character")
        return chr(point)
    if octal:
        return chr(int(octal, 8))
    return mark or _CHARACTERS.get(character, character)


def evaluate_literal(literal: Literal, type_: Type, zone: str) -> Value | None:
    """Return the value that a literal means beside an attribute of this type; None is NULL.

    >>> from headgate.schema import DOUBLE, INT
    >>> evaluate_literal(Number("0.1"), DOUBLE, "UTC"), evaluate_literal(Number("3.5"), INT, "UTC")
    (0.1, Decimal('3.5'))
    """
    if literal is None:
        return None
    wanted = type_.family
    if isinstance(literal, Number):
        _check_family(wanted == "number", "a number", type_)
        return _parse_number(literal.text, type_)
    if isinstance(literal, bool):
        _check_family(wanted == "boolean", "a BOOLEAN", type_)
        return literal
    if isinstance(literal, float):
        _check_family(wanted == "number", "a number", type_)
        return literal
    if isinstance(literal, Typed):
        _check_family(wanted == "time", f"a {literal.type}", type_)
        return _parse_time(literal, zone)
    if isinstance(type_, Date | Timestamp):
        return _parse_time(Typed(type_.sql, literal), zone)
    _check_family(wanted == "string", "a string", type_)
    return literal


def check_literal(literal: Literal) -> None:
    """Raise for a number or a time that means nothing, wherever it stands."""
    if isinstance(literal, Number):
        _parse_number(literal.text, STRING)
    elif isinstance(literal, Typed):
        _parse_time(literal, "UTC")


def parse_special_double(text: str) -> float | None:
    """Return NaN or an infinity, which have no literal of their own; None for any other text."""
    return _SPECIAL.get(text.strip().lower().removeprefix("+"))


def _check_family(fits: bool, what: str, type_: Type) -> None:
    if not fits:
        raise LiteralError(f"{what} cannot be compared with {with_article(type_.sql)}")


def with_article(noun: str) -> str:
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
    if exact and abs(exact.adjusted()) > MAX_EXPONENT:
        raise LiteralError("a number is too far from zero or too near to it")
    # Beyond the range of doubles the exact number is kept, which compares as it should.
    if isinstance(type_, Double) and math.isfinite(float(exact)):
        return float(exact)
    return exact


def _parse_time(literal: Typed, zone: str) -> date | datetime:
    try:
        if literal.type == "DATE":
            return parse_date(literal.text.strip())
        clock = parse_timestamp(literal.text.strip())
        local = ZoneInfo(zone)
        moment = clock if clock.tzinfo else clock.replace(tzinfo=local)
        return moment.astimezone(local)
    except (ValueError, OverflowError) as error:
        raise LiteralError(str(error)) from None
