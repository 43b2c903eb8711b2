"""Events as dense arrays: each column as int64 codes that are ordered as its values are.

A code is the value's ordinal where that fits into 64 bits. For STRING and for DECIMAL of more than
18 digits it is the rank among the distinct values of the batch.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.schema import DecimalType, Double, Ordinal, String, Type, ValueSet
from headgate.schema.types import MAGNITUDE, NAN_RANK

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MAX_CODED_DIGITS = 18


@dataclass(frozen=True)
class CodedColumn:
    """A column of a batch. The code of a NULL means nothing; `valid` is where there is a value."""

    type: Type
    codes: Codes
    valid: Mask | None  # None where nothing is NULL
    ranked: list[Any] | None = None  # the ordinals in order, where codes are ranks among them

    def encode_cut(self, cut: Ordinal) -> int:
        """Return the least code that is not below a cut."""
        if self.ranked is not None:
            return bisect_left(self.ranked, cut)
        assert isinstance(cut, int)
        return cut

    def test_membership(self, values: ValueSet) -> Mask:
        """Return where a value's ordinal lies in a set; meaningless where it is NULL."""
        cuts = [self.encode_cut(cut) for cut in values.cuts]
        if len(cuts) == 1:
            below = self.codes < cuts[0]
            return below if values.starts_inside else ~below
        if len(cuts) == 2:
            inside = (self.codes >= cuts[0]) & (self.codes < cuts[1])
            return ~inside if values.starts_inside else inside
        # How many cuts are at or below each code: inside after an odd number of them, or an even
        # one where the set starts inside. One or two cuts are compared directly above, which is the
        # common case.
        passed = np.searchsorted(np.array(cuts, dtype=np.int64), self.codes, side="right")
        inside = (passed + values.starts_inside) % 2 == 1
        return np.asarray(inside, dtype=np.bool_)

    @cached_property
    def values(self) -> npt.NDArray[np.object_]:
        """The values as Python objects, for what arrays cannot compare exactly; NULL is None."""
        objects = np.empty(len(self.codes), dtype=object)
        # Each distinct value is made once; `places` spreads them over the rows.
        distinct, places = np.unique(self.codes, return_inverse=True)
        ordinals = distinct.tolist() if self.ranked is None else self.decode_ranks(distinct)
        by_code = np.empty(len(ordinals), dtype=object)
        by_code[:] = [self.type.value(ordinal) for ordinal in ordinals]
        objects[:] = by_code[places] if len(by_code) else None
        if self.valid is not None:
            objects[~self.valid] = None
        return objects

    def decode_ranks(self, codes: Codes) -> list[Any]:
        assert self.ranked is not None
        return [self.ranked[code] for code in codes.tolist()] if self.ranked else []

    def __getitem__(self, rows: slice) -> CodedColumn:
        valid = None if self.valid is None else self.valid[rows]
        return CodedColumn(self.type, self.codes[rows], valid, self.ranked)


def encode_column(column: pa.Array[Any], type_: Type) -> CodedColumn:
    """Return the codes of an Arrow column that has the Arrow type of `type_`."""
    valid = None if column.null_count == 0 else _to_numpy(pc.is_valid(column)).astype(np.bool_)
    # These ordinals do not fit into 64 bits, so their ranks within the batch stand for them.
    if isinstance(type_, String) or (
        isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS
    ):
        return _encode_ranks(column, type_, valid)
    if isinstance(type_, DecimalType):
        return CodedColumn(type_, _read_unscaled(column), valid)
    if isinstance(type_, Double):
        return CodedColumn(type_, rank_doubles(_fill_nulls(column, pa.float64(), 0.0)), valid)
    # What is left are its own ordinals: 0 and 1, integers, days, microseconds.
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return CodedColumn(
        type_, _fill_nulls(column, pa.int64(), 0).astype(np.int64, copy=False), valid
    )


def encode_present(column: pa.Array[Any], type_: Type) -> tuple[Codes, CodedColumn]:
    """Return the rows in which a column is not NULL, and its values there.

    The same as `encode_column` of what is left without NULLs, and faster where few are left:
    numbers are taken from Arrow's buffers as they lie there.
    """
    # `rows` are the positions that are not NULL; `values` has every position, with whatever lies in
    # the buffer where it is NULL.
    rows, values = _find_present_rows(column), _read_buffer(column)
    if values is None:
        return rows, encode_column(column.drop_null() if column.null_count else column, type_)
    present = values[rows] if column.null_count else values
    whole = present.dtype != np.float64
    codes = present.astype(np.int64, copy=False) if whole else rank_doubles(present)
    return rows, CodedColumn(type_, codes, None)


def read_plain_numbers(column: pa.Array[Any]) -> npt.NDArray[Any] | None:
    """Return the values of a column that are their own ordinals, as they lie in Arrow's buffer.

    None if they are not, or if one is NULL.
    """
    values = None if column.null_count else _read_buffer(column)
    return None if values is None or values.dtype == np.float64 else values


def _read_buffer(column: pa.Array[Any]) -> npt.NDArray[Any] | None:
    """Return the values of a column of numbers, with something in the place of NULLs."""
    width = _NUMBERS.get(column.type)
    if width is None:
        return None
    buffer = column.buffers()[1]
    # A view, without a copy. An empty column may lack the buffer, and a slice shares that of the
    # whole column, so its offset counts.
    values = np.frombuffer(memoryview(buffer) if buffer else b"", width)
    return values[column.offset : column.offset + len(column)]


_NUMBERS: dict[pa.DataType, Any] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float64(): np.float64,
    pa.date32(): np.int32,
    pa.timestamp("us", tz="UTC"): np.int64,
}


def _find_present_rows(column: pa.Array[Any]) -> Codes:
    validity = column.buffers()[0]
    if column.null_count == 0 or validity is None:
        return np.arange(len(column))
    offset = column.offset
    # A slice may begin in the middle of a byte: unpack whole bytes, then drop the bits before it.
    whole = np.frombuffer(memoryview(validity), np.uint8)[offset // 8 :]
    bits = np.unpackbits(whole[: (offset % 8 + len(column) + 7) // 8], bitorder="little")
    return np.flatnonzero(bits[offset % 8 : offset % 8 + len(column)].view(np.bool_))


def rank_doubles(doubles: npt.NDArray[np.float64]) -> Codes:
    """Return the ordinals of doubles, as `Double.ordinal` gives them one by one."""
    bits = (doubles + 0.0).view(np.int64)  # adding zero turns −0.0 into 0.0
    # Read as integers, the bits of positive doubles are ordered as the doubles are. Those of
    # negative ones have the sign bit set over a magnitude that grows downward.
    ranks = np.where(bits >= 0, bits, -(bits & np.int64(MAGNITUDE)))
    # NaN has many bit patterns, and SQL sees one value, above every number.
    ranks[np.isnan(doubles)] = NAN_RANK
    return ranks


def _encode_ranks(column: pa.Array[Any], type_: Type, valid: Mask | None) -> CodedColumn:
    encoded: Any = column.dictionary_encode()
    distinct = [type_.ordinal(value) for value in encoded.dictionary.to_pylist()]
    # `order` leads from a rank to the place in Arrow's dictionary.
    order = sorted(range(len(distinct)), key=distinct.__getitem__)
    # From the place in Arrow's dictionary to the rank. The extra entry is for NULL, whose index is
    # filled with -1.
    ranks = np.empty(len(order) + 1, dtype=np.int64)
    ranks[np.array(order, dtype=np.int64)] = np.arange(len(order))
    ranks[-1] = 0
    codes = ranks[_fill_nulls(encoded.indices, pa.int64(), -1)]
    return CodedColumn(type_, codes, valid, [distinct[place] for place in order])


def _read_unscaled(column: pa.Array[Any]) -> Codes:
    """Return the low halves of 128-bit decimals, which hold up to 18 digits."""
    buffer = column.buffers()[1]
    # Little-endian pairs of int64, the low half first: every other one is the unscaled number.
    halves = np.frombuffer(memoryview(buffer) if buffer else b"", dtype=np.int64)
    start = 2 * column.offset
    return halves[start : start + 2 * len(column) : 2].copy()


def _fill_nulls(column: pa.Array[Any], type_: pa.DataType, filler: object) -> npt.NDArray[Any]:
    cast: Any = column.cast(type_)
    return _to_numpy(cast.fill_null(filler) if column.null_count else cast)


def _to_numpy(array: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values
