"""A batch holds the events that have become typed rows, and a dead letter for each that has not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.schema import Attribute, Integer, Stream, Type

Numbers = npt.NDArray[np.int64]

MAX_RAW = 1_000  # characters of an event that its dead letter keeps
MAX_RECORD = 1 << 24  # bytes of a line or CSV record; a longer one is a dead letter, unparsed
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that could not become a row: where it stands, why, and how it begins.

    `line` is the line of the source, from 1, on which the event starts; `event` is its number in
    the source, from 0, counting rows and dead letters but not blank lines.
    """

    source: str
    line: int
    reason: str
    raw: str
    event: int


@dataclass(frozen=True, slots=True, eq=False)
class EventBatch:
    """Typed rows of a stream, with the number of each event, and the events that are not rows.

    `table` has a column per used attribute, in declared order and under its declared name. A batch
    with no used attribute still has rows: count `events`, not `table.num_rows`. `lines` has the
    line of the source, from 1, on which each row starts; for a table, the number of the row.
    `unknown` says how many events carried a key or a column that the stream does not declare.
    """

    stream: Stream
    table: pa.RecordBatch
    events: Numbers
    lines: Numbers
    dead: tuple[DeadLetter, ...]
    blank: int
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Everything that came in: rows, dead letters and blank lines."""
        return len(self.events) + len(self.dead) + self.blank

    def take_before(self, limit: int) -> EventBatch:
        """Return the events whose number is below a limit; counts stay those of the batch."""
        # The numbers of events ascend, so the rows below the limit come first.
        rows = int(np.searchsorted(self.events, limit))
        return replace(
            self,
            table=self.table.slice(0, rows),
            events=self.events[:rows],
            lines=self.lines[:rows],
            dead=tuple(letter for letter in self.dead if letter.event < limit),
        )


def select_attributes(stream: Stream, columns: Collection[str] | None) -> tuple[Attribute, ...]:
    """Return the named attributes in declared order; all of them for None."""
    if columns is None:
        return stream.attributes
    names = {stream[column].name for column in columns}
    return tuple(attribute for attribute in stream if attribute.name in names)


def truncate_text(text: str, limit: int = MAX_RAW) -> str:
    """Return at most `limit` characters, with an ellipsis where the text was cut, fit for UTF-8.

    >>> truncate_text("abcdef", 4)
    'abc…'
    """
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return shown.encode("utf-8", "backslashreplace").decode()


def excerpt_record(record: bytes) -> str:
    r"""Return how a record begins, as dead letters show it; bytes that are not UTF-8 as `\xff`.

    >>> excerpt_record(b"caf\xff\r\n")
    'caf\\xff'
    """
    # A character takes at most 4 bytes. One more than is shown is decoded, so that the cut is seen.
    start = record[: 4 * (MAX_RAW + 1)].decode("utf-8", "backslashreplace")
    return truncate_text(start.rstrip("\r\n"))


MAX_BITS = 2_000  # integers beyond are too long to print, and under some settings str() refuses


class UnfitValue(Exception):
    """A value that its attribute cannot take; the message is the reason of the dead letter."""


def show_value(value: object) -> str:
    """Return a value as reasons show it.

    >>> show_value("hold"), show_value(b"3.5"), show_value(True), show_value([1])
    ("'hold'", '3.5', 'true', 'an array')
    """
    if value is None:
        return "null"
    # A bool is an int to Python, so it is tested first.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"a number of some {int(value.bit_length() * math.log10(2))} digits"
    # The text of a number, as the JSON scanner gives it.
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


def decode_text(raw: bytes) -> str:
    r"""Return the text of a record; raise UnfitValue where it is not UTF-8.

    >>> decode_text(b"caf\xc3\xa9")
    'café'
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        at = error.start
        raise UnfitValue(f"not UTF-8: byte {at + 1} is 0x{raw[at]:02x}") from None


def refuse_type(name: str, value: object, type_: Type) -> UnfitValue:
    """Return the error for a value that is not of the attribute's type."""
    article = "an" if isinstance(type_, Integer) and type_.bits == 32 else "a"
    return UnfitValue(f"`{name}` is {show_value(value)}, which is not {article} {type_}")


def refuse_range(name: str, value: object, type_: Type) -> UnfitValue:
    """Return the error for a value beyond the limits of the attribute's type."""
    return UnfitValue(f"`{name}` is {show_value(value)}, outside {type_}")


def refuse_inexact(name: str, value: object, type_: Type) -> UnfitValue:
    """Return the error for a number that the attribute's type would have to round."""
    return UnfitValue(f"`{name}` is {show_value(value)}, which a {type_} cannot hold exactly")
