"""A batch holds the events that have become typed rows, and a dead letter for each that has not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.schema import Attribute, Stream

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
        """The events whose number is below a limit; what is counted stays that of the batch."""
        rows = int(np.searchsorted(self.events, limit))
        return replace(
            self,
            table=self.table.slice(0, rows),
            events=self.events[:rows],
            lines=self.lines[:rows],
            dead=tuple(letter for letter in self.dead if letter.event < limit),
        )


def select_attributes(stream: Stream, columns: Collection[str] | None) -> tuple[Attribute, ...]:
    """The named attributes in declared order; all of them for None."""
    if columns is None:
        return stream.attributes
    names = {stream[column].name for column in columns}
    return tuple(attribute for attribute in stream if attribute.name in names)


def truncate_text(text: str, limit: int = MAX_RAW) -> str:
    """At most `limit` characters, with an ellipsis where the text was cut, fit for UTF-8.

    >>> cap("abcdef", 4)
    'abc…'
    """
    kept = text if len(text) <= limit else text[: limit - 1] + "…"
    return kept.encode("utf-8", "backslashreplace").decode()


def excerpt_record(record: bytes) -> str:
    """How a record begins, as the dead letter shows it; bytes that are not UTF-8 as `\\xff`.

    >>> raw_text(b"caf\\xff\\r\\n")
    'caf\\\\xff'
    """
    start = record[: 4 * (MAX_RAW + 1)].decode("utf-8", "backslashreplace")
    return truncate_text(start.rstrip("\r\n"))
