"""JSON lines straight to Arrow columns: one kernel pass for plain lines, `json_lines` for the rest.

What comes out is exactly what `parse_json_lines` makes of the same lines. Libraries were compared
first: msgspec and orjson make objects, which takes longer than the whole pass, and do not see that
a key stands twice; pyarrow.json is slower still, rounds numbers and accepts what is no JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.assembly import find_outside_domain
from headgate.events.batch import (
    BOM,
    MAX_RECORD,
    DeadLetter,
    EventBatch,
    Numbers,
    select_attributes,
)
from headgate.events.json_lines import parse_json_lines
from headgate.events.line_blocks import LineBlock
from headgate.schema import (
    Attribute,
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    Stream,
    String,
    Timestamp,
)

MIN_LINES = 64  # from which on the kernel is worth its call
MIN_LINES_TO_LOAD = 4_096  # from which on it is worth loading Numba, which takes half a second
MAX_CODED_DIGITS = 18

Mask = npt.NDArray[np.bool_]


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
    if layout is None or not _is_worthwhile(len(block.ends)):
        return parse_json_lines(
            block.cut_lines(MAX_RECORD + 2),
            stream,
            source=source,
            columns=columns,
            first_line=first_line,
            first_event=first_event,
        )
    is_marked = first_line == 1 and block.data[: len(BOM)].tobytes() == BOM
    plain = _scan(block, layout, len(BOM) if is_marked else 0)
    # What is left is parsed as a block of its own; lines count from 2, since there is no mark.
    rest = np.flatnonzero(plain.is_unusual)
    exact = parse_json_lines(
        _cut_lines(block, rest, plain.first), stream, source=source, columns=columns, first_line=2
    )
    exact_places = rest[exact.lines - 2]
    dead_places = rest[np.array([letter.line - 2 for letter in exact.dead], np.int64)]

    # the number of the event on each line: rows and dead letters count, blank lines do not
    is_event = np.zeros(len(block.ends), np.int64)
    for places in (plain.places, exact_places, dead_places):
        is_event[places] = 1
    numbers = np.cumsum(is_event) + (first_event - 1)
    places, arrays = _merge_rows(plain, exact_places, exact.table)
    table = pa.RecordBatch.from_arrays(arrays, names=[a.name for a in layout.used])
    letters = zip(exact.dead, dead_places.tolist(), strict=True)
    dead = [_move_letter(letter, first_line + at, int(numbers[at])) for letter, at in letters]
    blank = len(is_event) - int(is_event.sum())
    return EventBatch(
        stream, table, numbers[places], places + first_line, tuple(dead), blank, exact.unknown
    )


def _is_worthwhile(lines: int) -> bool:
    return lines >= (MIN_LINES if "numba" in sys.modules else MIN_LINES_TO_LOAD)


def _move_letter(letter: DeadLetter, line: int, event: int) -> DeadLetter:
    return replace(letter, line=line, event=event)


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
    """What the kernel must know of a stream; the arrays have an item for each of its attributes.

    `used` are the attributes that are wanted, `positions` their numbers in the stream, and
    `checked` those whose CHECK the bounds `low` and `high` do not express.
    """

    used: tuple[Attribute, ...]
    positions: tuple[int, ...]
    checked: frozenset[int]
    names: npt.NDArray[np.uint8]
    name_ends: Numbers
    kinds: Numbers
    details: Numbers
    required: Numbers
    low: Numbers
    high: Numbers


@lru_cache(maxsize=64)
def _plan_columns(stream: Stream, used: tuple[Attribute, ...]) -> ColumnLayout | None:
    """Return the layout of these columns; None if names could not be told from other text."""
    names = [attribute.name.encode("utf-8", "surrogatepass") for attribute in stream]
    if not names or len({name.lower() for name in names}) < len(names):
        return None
    # Such a byte would be escaped in a line, or be one of the bytes that end a name.
    if any(byte < 32 or byte in b'"\\' for name in names for byte in name):
        return None
    count = len(names)
    kinds, details, required = (np.zeros(count, np.int64) for _ in range(3))
    limits = np.iinfo(np.int64)
    low, high = np.full(count, limits.min + 1), np.full(count, limits.max)
    chosen = {attribute.name for attribute in used}
    positions = [number for number, a in enumerate(stream) if a.name in chosen]
    checked: set[int] = set()
    for number in positions:
        attribute = stream.attributes[number]
        kinds[number], details[number] = _choose_kind(attribute)
        required[number] = not attribute.nullable
        low[number], high[number], is_exact = _find_bounds(attribute)
        if not is_exact:
            checked.add(number)
    return ColumnLayout(
        used,
        tuple(positions),
        frozenset(checked),
        np.frombuffer(b"".join(names) + b"\0", np.uint8),
        np.cumsum([0, *map(len, names)]),
        kinds,
        details,
        required,
        low,
        high,
    )


# as in `kernels.json_lines`, which only a block of many lines may import
_SKIP, _BOOLEAN, _INTEGER, _DECIMAL, _DOUBLE, _TEXT, _DAY, _CLOCK, _OTHER = range(9)


def _choose_kind(attribute: Attribute) -> tuple[int, int]:
    """Return what the kernel makes of a value, and the detail that it needs for this."""
    match attribute.type:
        case Boolean():
            return _BOOLEAN, 0
        case Integer():
            return _INTEGER, 0
        case DecimalType() as type_ if type_.scale >= 0:
            return _DECIMAL, type_.scale
        case Double():
            return _DOUBLE, 0
        case String():
            return _TEXT, 0
        case Date():
            return _DAY, 0
        case Timestamp() as type_:
            return _CLOCK, int(type_.zone == "UTC")
    return _OTHER, 0


def _find_bounds(attribute: Attribute) -> tuple[int, int, bool]:
    """Return the least and the greatest ordinal of the type, or of a CHECK that is a range.

    The third is whether they say all that there is to check.
    """
    type_, domain = attribute.type, attribute.domain
    limits = np.iinfo(np.int64)
    if isinstance(type_, String | Double):
        return int(limits.min) + 1, int(limits.max), domain.is_everything
    is_wide = isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS
    low, high = int(type_.minimum), int(type_.maximum or 0)  # only a STRING has no maximum
    if is_wide:
        low, high = 1 - 10**MAX_CODED_DIGITS, 10**MAX_CODED_DIGITS - 1
    low = max(low, int(limits.min) + 1)
    if domain.is_everything:
        return low, high, True
    cuts = domain.cuts
    if domain.starts_inside and len(cuts) == 1:
        return low, min(high, cuts[0] - 1), low <= cuts[0] - 1
    if not domain.starts_inside and len(cuts) in (1, 2):
        above = cuts[1] - 1 if len(cuts) == 2 else high
        if low <= cuts[0] <= high:
            return cuts[0], min(high, above), True
    return low, high, False


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """The rows of the plain lines: their columns and places, and the lines that are left."""

    arrays: list[pa.Array[Any]]
    places: Numbers
    is_unusual: Mask
    first: int  # where the first line starts


def _scan(block: LineBlock, layout: ColumnLayout, first: int) -> PlainRows:
    from headgate.events.kernels import json_lines as kernels

    lines, count = len(block.ends), len(layout.kinds)
    # Attributes × lines. Rows are fewer than lines if some lines are blank or left.
    values = np.empty((count, lines), np.int64)
    lengths = np.empty((count, lines), np.int32)
    valid = np.zeros((count, lines), np.uint8)
    status = np.empty(lines, np.uint8)
    follow = np.arange(count + 1) % count
    rows = kernels.scan_lines(
        block.data,
        block.ends,
        first,
        MAX_RECORD,
        layout.names,
        layout.name_ends,
        layout.kinds,
        layout.details,
        layout.required,
        layout.low,
        layout.high,
        follow,
        values,
        values.view(np.float64),
        lengths,
        valid,
        status,
    )
    places = np.flatnonzero(status <= kernels.WIDE_ROW)
    arrays = [
        _build_texts(block, values[number, :rows], lengths[number, :rows], valid[number, :rows])
        if layout.kinds[number] == kernels.TEXT
        else _build_column(attribute, values[number, :rows], valid[number, :rows])
        for number, attribute in zip(layout.positions, layout.used, strict=True)
    ]
    plain = PlainRows(arrays, places, status == kernels.UNUSUAL, first)
    # Text that is not ASCII was not decoded yet. Most blocks decode as a whole.
    is_wide = status[places] == kernels.WIDE_ROW
    if is_wide.any() and not _is_utf8(block, first):
        plain = _drop_rows(plain, is_wide)
    # A CHECK that is no range is tested for the whole column.
    for column, number in enumerate(layout.positions):
        if number in layout.checked:
            plain = _drop_rows(
                plain, find_outside_domain(plain.arrays[column], layout.used[column])
            )
    return plain


def _is_utf8(block: LineBlock, first: int) -> bool:
    try:
        str(memoryview(block.data[first : block.size]), "utf-8")  # type: ignore[arg-type]
    except UnicodeDecodeError:
        return False
    return True


def _drop_rows(plain: PlainRows, is_dropped: Mask) -> PlainRows:
    """Leave some of the rows to the other parser after all."""
    if not is_dropped.any():
        return plain
    is_unusual = plain.is_unusual.copy()
    is_unusual[plain.places[is_dropped]] = True
    is_kept = pa.array(~is_dropped)
    arrays = [array.filter(is_kept) for array in plain.arrays]
    return PlainRows(arrays, plain.places[~is_dropped], is_unusual, plain.first)


def _build_texts(
    block: LineBlock, begins: Numbers, lengths: npt.NDArray[np.int32], valid: npt.NDArray[np.uint8]
) -> pa.Array[Any]:
    from headgate.events.kernels.json_lines import copy_texts

    offsets = np.empty(len(begins) + 1, np.int32)
    texts = copy_texts(block.data, begins, lengths, valid, offsets)
    return _from_buffers(pa.string(), valid, [pa.py_buffer(offsets.data), pa.py_buffer(texts)])


def _build_column(
    attribute: Attribute, ordinals: Numbers, valid: npt.NDArray[np.uint8]
) -> pa.Array[Any]:
    """Return the column of values that are numbers; what stands in place of a NULL is dropped."""
    arrow = attribute.type.arrow
    match attribute.type:
        case Boolean():
            content: npt.NDArray[Any] = np.packbits(ordinals == 1, bitorder="little")
        case DecimalType():
            # A decimal has 128 bits, the low half first; the high half repeats the sign.
            content = np.stack((ordinals, ordinals >> 63), axis=1)
        case Integer() | Date() if arrow.bit_width == 32:
            content = ordinals.astype(np.int32)
        case _:
            content = ordinals.copy()  # else the column would keep all the others in memory
    return _from_buffers(arrow, valid, [pa.py_buffer(content.data)])


def _from_buffers(
    arrow: pa.DataType, valid: npt.NDArray[np.uint8], buffers: Sequence[pa.Buffer]
) -> pa.Array[Any]:
    nulls = len(valid) - int(np.count_nonzero(valid))
    validity = pa.py_buffer(np.packbits(valid, bitorder="little").data) if nulls else None
    return pa.Array.from_buffers(arrow, len(valid), [validity, *buffers], nulls)


def _merge_rows(
    plain: PlainRows, exact_places: Numbers, exact: pa.RecordBatch
) -> tuple[Numbers, list[pa.Array[Any]]]:
    """Return the places and columns of the rows of both parsers, in the order of the lines."""
    if not len(exact_places):
        return plain.places, plain.arrays
    places = np.concatenate((plain.places, exact_places))
    order = np.argsort(places, kind="stable")
    pairs = zip(plain.arrays, exact.columns, strict=True)
    return places[order], [pa.concat_arrays(pair).take(order) for pair in pairs]
