"""Events as cells of a space: a row of a batch becomes a small whole number in each dimension.

NULL is cell 0, what lies below the least cut is cell 1, and each cut begins the next. Numbers are
numbered where they lie in Arrow's buffers; texts and wide decimals by their distinct values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.columns import encode_column, plain_numbers
from headgate.implication.evaluation.numbering import (
    bucket_doubles,
    bucket_integers,
    encode_doubles,
    encode_integers,
)
from headgate.implication.space import Cells, Dimension
from headgate.matching.encoding.code_book import Regions
from headgate.predicate import Column
from headgate.schema import Double
from headgate.schema.types import NAN_RANK
from headgate.snapshot.arrays.cuts import NUMBERS, pool_of

BUCKETS_PER_CUT = 8
MIN_BUCKETS, MAX_BUCKETS = 1 << 8, 1 << 16

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """Cuts by their buckets, as `numbering` has them."""

    cuts: Numbers
    first: Cells
    steps: int

    @staticmethod
    def of(cuts: Numbers, filler: float, bucket: npt.NDArray[np.int64], count: int) -> Buckets:
        """From the bucket of each cut."""
        first = np.searchsorted(bucket, np.arange(count + 1)).astype(np.int32)
        fullest = int(np.diff(first).max())
        padded = np.concatenate((np.array([filler], cuts.dtype), cuts))
        return Buckets(padded, first, fullest.bit_length())


def _bucket_count(cuts: Numbers) -> int:
    wanted = 1 << (BUCKETS_PER_CUT * len(cuts)).bit_length()
    return min(MAX_BUCKETS, max(MIN_BUCKETS, wanted))


class IntegerEncoder:
    """Values whose ordinals are whole numbers of 64 bits, but not doubles."""

    def __init__(self, column: Column, cuts: list[int]) -> None:
        self._column = column
        ordinals = np.array(cuts or [0], np.int64)
        count = _bucket_count(ordinals)
        self._least, self._most = int(ordinals[0]), int(ordinals[-1])
        width = (self._most - self._least).bit_length() - (count.bit_length() - 1)
        self._shift = max(0, width)
        place = bucket_integers(ordinals, self._least, self._most, self._shift)
        lowest = float(np.iinfo(np.int64).min)
        self._buckets = Buckets.of(ordinals, lowest, place, count + 2)
        self._empty = not cuts

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value into `cells`; of a NULL, any."""
        if self._empty:
            cells[:] = 1
            return
        given = _without_validity(array)
        values = plain_numbers(given)
        if values is None:
            values = encode_column(given, self._column.type).codes
        b = self._buckets
        least, most = self._least, self._most
        encode_integers(values, b.cuts, b.first, b.steps, least, most, self._shift, cells)


class DoubleEncoder:
    """Values of DOUBLE, compared as doubles: cuts are values too, but for one that only NaN is
    above. The order is that of the ordinals, where −0.0 is 0.0."""

    def __init__(self, column: Column, cuts: list[int]) -> None:
        ordinary = [float(column.type.value(cut)) for cut in cuts if cut != NAN_RANK]  # type: ignore[arg-type]
        self._of_nan = len(cuts) + 1
        self._empty = not ordinary
        values = np.array(ordinary or [0.0])
        count = _bucket_count(values)
        finite = values[np.isfinite(values)]
        self._least = float(finite[0]) if len(finite) else 0.0
        with np.errstate(over="ignore", divide="ignore"):
            scale = np.float64(count - 1) / np.ptp(finite) if len(finite) else 0.0
        # any scale is right that is above 0; with this one nearly all are in one bucket
        self._scale = float(scale) if 0 < scale < np.inf else np.finfo(np.float64).tiny
        self._last = float(count + 1)
        place = bucket_doubles(values, self._least, self._scale, self._last)
        self._buckets = Buckets.of(values, -np.inf, place, count + 2)

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value into `cells`; of a NULL, any."""
        values: Numbers = _without_validity(array).to_numpy()
        if self._empty:
            cells[:] = np.where(np.isnan(values), self._of_nan, 1)
            return
        b = self._buckets
        least, scale, last, nan = self._least, self._scale, self._last, self._of_nan
        encode_doubles(values, b.cuts, b.first, b.steps, least, scale, last, nan, cells)


class RankEncoder:
    """Texts, and decimals of more than 18 digits."""

    def __init__(self, column: Column, cuts: list[Any]) -> None:
        self._regions = Regions(column, cuts, None)

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value into `cells`; of a NULL, any."""
        cells[:] = self._regions.codes(encode_column(array, self._regions.column.type))


class CellEncoder:
    """The cells of one dimension, which must be one without a domain and with NULL."""

    def __init__(self, dimension: Dimension) -> None:
        column = dimension.column
        cuts: list[Any] = [one.low for one in dimension.intervals if one.low is not None]
        self.name = column.name
        self._of: IntegerEncoder | DoubleEncoder | RankEncoder
        if pool_of(column.type) != NUMBERS:
            self._of = RankEncoder(column, cuts)
        elif isinstance(column.type, Double):
            self._of = DoubleEncoder(column, cuts)
        else:
            self._of = IntegerEncoder(column, cuts)

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value of a column into `cells`."""
        self._of.encode(array, cells)
        if array.null_count:
            cells[array.is_null().to_numpy(zero_copy_only=False)] = 0


def _without_validity(array: pa.Array[Any]) -> pa.Array[Any]:
    """The same numbers, with anything in the place of NULLs; nothing is copied."""
    if array.null_count == 0:
        return array
    buffers = [None, array.buffers()[1]]
    found: pa.Array[Any] = pa.Array.from_buffers(
        array.type, len(array), buffers, offset=array.offset
    )
    return found
