"""Rows of lines that a kernel took as they are, and how they join those of the parser of all lines.

The kernels of JSON lines and of CSV make the same of a value, by the same rules, and leave the same
behind: for each attribute and line a number, or the place of a text. Arrow's columns are made here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.assembly import find_outside_domain
from headgate.events.batch import DeadLetter, Numbers
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

MIN_LINES = 64  # from which on a kernel is worth its call
MIN_LINES_TO_LOAD = 4_096  # from which on it is worth loading Numba, which takes half a second
MAX_CODED_DIGITS = 18

# as in `kernels.values`, which only a block of many lines may import
_SKIP, _BOOLEAN, _INTEGER, _DECIMAL, _DOUBLE, _TEXT, _DAY, _CLOCK, _OTHER = range(9)
_ROW, _WIDE_ROW, _BLANK, _UNUSUAL = range(4)

Mask = npt.NDArray[np.bool_]


def is_worthwhile(lines: int) -> bool:
    """Return whether a kernel is worth its call for a block of so many lines."""
    return lines >= (MIN_LINES if "numba" in sys.modules else MIN_LINES_TO_LOAD)


@dataclass(frozen=True, slots=True, eq=False)
class ValueRules:
    """What a kernel makes of values; the arrays have an item for each attribute of the stream.

    `used` are the attributes that are wanted, `positions` their numbers in the stream, and
    `checked` those whose CHECK the bounds `low` and `high` do not express.
    """

    used: tuple[Attribute, ...]
    positions: tuple[int, ...]
    checked: frozenset[int]
    kinds: Numbers
    details: Numbers
    required: Numbers
    low: Numbers
    high: Numbers


@lru_cache(maxsize=64)
def plan_values(stream: Stream, used: tuple[Attribute, ...]) -> ValueRules:
    """Return the rules for these attributes of a stream."""
    count = len(stream.attributes)
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
    return ValueRules(
        used, tuple(positions), frozenset(checked), kinds, details, required, low, high
    )


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
        # a CHECK of a wide DECIMAL may end below all that the kernel reads: then it takes nothing
        return low, max(low - 1, min(high, cuts[0] - 1)), low <= cuts[0] - 1
    if not domain.starts_inside and len(cuts) in (1, 2):
        above = cuts[1] - 1 if len(cuts) == 2 else high
        if low <= cuts[0] <= high:
            return cuts[0], min(high, above), True
    return low, high, False


@dataclass(frozen=True, slots=True, eq=False)
class ScannedLines:
    """What a kernel writes: attributes × lines, and what each line is.

    `values` has the ordinal or the place of a text, `lengths` its length, and `valid` is 1 where
    there is a value. Rows are fewer than lines if some lines are blank or left.
    """

    values: Numbers
    lengths: npt.NDArray[np.int32]
    valid: npt.NDArray[np.uint8]
    status: npt.NDArray[np.uint8]

    @classmethod
    def allocate(cls, attributes: int, lines: int) -> ScannedLines:
        """Return the memory that a kernel needs for so many lines."""
        return cls(
            np.empty((attributes, lines), np.int64),
            np.empty((attributes, lines), np.int32),
            np.zeros((attributes, lines), np.uint8),
            np.empty(lines, np.uint8),
        )


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """The rows of the plain lines: their columns and places, and the lines that are left."""

    arrays: list[pa.Array[Any]]
    places: Numbers
    is_unusual: Mask


def collect_rows(
    block: LineBlock, rules: ValueRules, scanned: ScannedLines, rows: int, first: int
) -> PlainRows:
    """Return the columns of the rows that a kernel found; the first line starts at `first`."""
    values, lengths, valid = (
        part[:, :rows] for part in (scanned.values, scanned.lengths, scanned.valid)
    )
    places = np.flatnonzero(scanned.status <= _WIDE_ROW)
    arrays = [
        _build_texts(block, values[number], lengths[number], valid[number])
        if rules.kinds[number] == _TEXT
        else _build_column(attribute, values[number], valid[number])
        for number, attribute in zip(rules.positions, rules.used, strict=True)
    ]
    plain = PlainRows(arrays, places, scanned.status == _UNUSUAL)
    # Text that is not ASCII was not decoded yet. Most blocks decode as a whole.
    is_wide = scanned.status[places] == _WIDE_ROW
    if is_wide.any() and not _is_utf8(block, first):
        plain = _drop_rows(plain, is_wide)
    # A CHECK that is no range is tested for the whole column.
    for column, number in enumerate(rules.positions):
        if number in rules.checked:
            plain = _drop_rows(plain, find_outside_domain(plain.arrays[column], rules.used[column]))
    return plain


def move_letter(letter: DeadLetter, line: int, event: int) -> DeadLetter:
    """Return a dead letter that stands elsewhere."""
    return replace(letter, line=line, event=event)


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
    return PlainRows(arrays, plain.places[~is_dropped], is_unusual)


def _build_texts(
    block: LineBlock, begins: Numbers, lengths: npt.NDArray[np.int32], valid: npt.NDArray[np.uint8]
) -> pa.Array[Any]:
    from headgate.events.kernels.texts import copy_texts

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


def merge_rows(
    plain: PlainRows, exact_places: Numbers, exact: pa.RecordBatch
) -> tuple[Numbers, list[pa.Array[Any]]]:
    """Return the places and columns of the rows of both parsers, in the order of the lines."""
    if not len(exact_places):
        return plain.places, plain.arrays
    places = np.concatenate((plain.places, exact_places))
    order = np.argsort(places, kind="stable")
    pairs = zip(plain.arrays, exact.columns, strict=True)
    return places[order], [pa.concat_arrays(pair).take(order) for pair in pairs]
