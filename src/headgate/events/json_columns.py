"""JSON lines straight to Arrow columns: one kernel pass for plain lines, `json_lines` for the rest.

What comes out is exactly what `parse_json_lines` makes of the same lines. Libraries were compared
first (`benchmarks/results`): msgspec and orjson make objects, from which it takes twice as long to
columns, and do not see that a key stands twice; pyarrow.json is no faster, and its only answer to a
line that does not fit is to refuse the whole file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.batch import BOM, MAX_RECORD, EventBatch, Numbers, select_attributes
from headgate.events.json_lines import parse_json_lines
from headgate.events.line_blocks import LineBlock
from headgate.events.plain_rows import (
    PlainRows,
    ScannedLines,
    ValueRules,
    collect_rows,
    is_worthwhile,
    merge_rows,
    move_letter,
    plan_values,
)
from headgate.schema import Attribute, Stream


def parse_json_block(
    block: LineBlock,
    stream: Stream,
    *,
    source: str,
    columns: Collection[str] | None = None,
    first_line: int = 1,
    first_event: int = 0,
) -> EventBatch:
    r"""Parse a block of lines, of which the first has the number `first_line`.

    >>> from headgate.events.line_blocks import join_lines
    >>> from headgate.schema import INT
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> block = join_lines([b'{"qty": 3}\n', b"\n", b'{"QTY": 3.5}\n'])
    >>> batch = parse_json_block(block, trades, source="x")
    >>> batch.table.to_pylist(), batch.blank, batch.dead[0].reason
    ([{'qty': 3}], 1, '`qty` is 3.5, which is not an INT')
    """
    layout = _plan_columns(stream, select_attributes(stream, columns))
    if layout is None or not is_worthwhile(len(block.ends)):
        return parse_json_lines(
            block.cut_lines(MAX_RECORD + 2),
            stream,
            source=source,
            columns=columns,
            first_line=first_line,
            first_event=first_event,
        )
    is_marked = first_line == 1 and block.data[: len(BOM)].tobytes() == BOM
    first = len(BOM) if is_marked else 0
    plain = _scan(block, layout, first)
    # What is left is parsed as a block of its own; lines count from 2, since there is no mark.
    rest = np.flatnonzero(plain.is_unusual)
    exact = parse_json_lines(
        _cut_lines(block, rest, first), stream, source=source, columns=columns, first_line=2
    )
    exact_places = rest[exact.lines - 2]
    dead_places = rest[np.array([letter.line - 2 for letter in exact.dead], np.int64)]

    # the number of the event on each line: rows and dead letters count, blank lines do not
    is_event = np.zeros(len(block.ends), np.int64)
    for places in (plain.places, exact_places, dead_places):
        is_event[places] = 1
    numbers = np.cumsum(is_event) + (first_event - 1)
    places, arrays = merge_rows(plain, exact_places, exact.table)
    table = pa.RecordBatch.from_arrays(arrays, names=[a.name for a in layout.rules.used])
    letters = zip(exact.dead, dead_places.tolist(), strict=True)
    dead = [move_letter(letter, first_line + at, int(numbers[at])) for letter, at in letters]
    blank = len(is_event) - int(is_event.sum())
    return EventBatch(
        stream, table, numbers[places], places + first_line, tuple(dead), blank, exact.unknown
    )


def _cut_lines(block: LineBlock, places: Numbers, first: int) -> list[bytes]:
    """Return the lines at these places of a block whose first line starts at `first`."""
    starts = np.where(places > 0, block.ends[places - 1], first).tolist()
    ends = block.ends[places].tolist()
    return [
        block.data[start : min(end, start + MAX_RECORD + 2)].tobytes()
        for start, end in zip(starts, ends, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLayout:
    """What the kernel must know of a stream: the rules of its values, and its names in a row."""

    rules: ValueRules
    names: npt.NDArray[np.uint8]
    name_ends: Numbers


@lru_cache(maxsize=64)
def _plan_columns(stream: Stream, used: tuple[Attribute, ...]) -> ColumnLayout | None:
    """Return the layout of these columns; None if names could not be told from other text."""
    names = [attribute.name.encode("utf-8", "surrogatepass") for attribute in stream]
    if not names or len({name.lower() for name in names}) < len(names):
        return None
    # Such a byte would be escaped in a line, or be one of the bytes that end a name.
    if any(byte < 32 or byte in b'"\\' for name in names for byte in name):
        return None
    return ColumnLayout(
        plan_values(stream, used),
        np.frombuffer(b"".join(names) + b"\0", np.uint8),
        np.cumsum([0, *map(len, names)]),
    )


def _scan(block: LineBlock, layout: ColumnLayout, first: int) -> PlainRows:
    from headgate.events.kernels.json_lines import scan_lines

    rules = layout.rules
    count = len(rules.kinds)
    scanned = ScannedLines.allocate(count, len(block.ends))
    rows = scan_lines(
        block.data,
        block.ends,
        first,
        MAX_RECORD,
        layout.names,
        layout.name_ends,
        rules.kinds,
        rules.details,
        rules.required,
        rules.low,
        rules.high,
        np.arange(count + 1) % count,
        scanned.values,
        scanned.values.view(np.float64),
        scanned.lengths,
        scanned.valid,
        scanned.status,
    )
    return collect_rows(block, rules, scanned, rows, first)
