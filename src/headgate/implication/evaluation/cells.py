"""Events as cells of a space: a row of a batch becomes a small integer in each dimension.

NULL is cell 0, values below the least cut are cell 1, and each cut begins the next cell. Numbers
are encoded where they lie in Arrow's buffers; texts and wide decimals by their distinct values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events import EventBatch
from headgate.events.columns import encode_column, read_plain_numbers
from headgate.implication.evaluation.kernels import (
    bucket_doubles,
    bucket_integers,
    encode_doubles,
    encode_integers,
)
from headgate.implication.space import Boxes, Cells, Dimension, Space
from headgate.matching.encoding.code_book import Regions
from headgate.predicate import Box, Column
from headgate.schema import Double
from headgate.schema.types import NAN_RANK
from headgate.snapshot.arrays.operands import NUMBERS, pool_of

ROWS_PER_CHUNK = 8_192  # so that their cells stay in the cache
BUCKETS_PER_CUT = 8
MIN_BUCKETS, MAX_BUCKETS = 1 << 8, 1 << 16

Numbers = npt.NDArray[Any]


class CellGrid:
    """A union of boxes in the space that they cut, and the encoders of values into its cells."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        space, cells = _sort_dimensions(boxes)
        self.boxes = space.sort_by_volume(cells)
        self.counts = space.counts
        self._encoders = [CellEncoder(dimension) for dimension in space.dimensions]

    def iter_cells(self, batch: EventBatch) -> Iterator[tuple[Cells, int, int]]:
        """Yield chunks of rows: their cells, the first row, and the one after the last.

        The array of cells is the same every time, with room for `ROWS_PER_CHUNK` rows.
        """
        count = len(batch.events)
        # (dimensions, rows): encoders write and kernels read the cells of one dimension at a time.
        cells = np.empty((len(self._encoders), ROWS_PER_CHUNK), np.int32)
        for start in range(0, count, ROWS_PER_CHUNK):
            size = min(ROWS_PER_CHUNK, count - start)
            for k, encoder in enumerate(self._encoders):
                chunk = batch.table.column(encoder.name).slice(start, size)
                encoder.encode(chunk, cells[k, :size])
            yield cells, start, start + size


def _sort_dimensions(boxes: Sequence[Box]) -> tuple[Space, Boxes]:
    """Return the space of these boxes, the dimensions first that leave the fewest boxes.

    A dimension's selectivity is the share of its cells that a box has, on average. CHECK and NOT
    NULL do not matter: events that break them are rejected before.
    """
    space = Space.of(boxes)
    cells = space.boxes(boxes)
    # By dimension: the cells of all boxes, as a multiple of the dimension's; the smallest first.
    share = (cells.high - cells.low).sum(axis=0) / space.counts
    order = np.argsort(share, kind="stable")
    sorted_space = Space(tuple(space.dimensions[k] for k in order.tolist()))
    return sorted_space, Boxes(cells.low[:, order], cells.high[:, order])


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """Cuts by their buckets, in the arrays that the kernels expect."""

    cuts: Numbers
    first: Cells
    steps: int

    @staticmethod
    def of(cuts: Numbers, filler: float, bucket: npt.NDArray[np.int64], count: int) -> Buckets:
        """Sort cuts into `count` buckets, given the bucket of each cut."""
        # `first[b]` is the number of cuts before bucket b; the fullest sets the number of halvings.
        first = np.searchsorted(bucket, np.arange(count + 1)).astype(np.int32)
        fullest = int(np.diff(first).max())
        padded = np.concatenate((np.array([filler], cuts.dtype), cuts))
        return Buckets(padded, first, fullest.bit_length())


def _count_buckets(cuts: Numbers) -> int:
    count = 1 << (BUCKETS_PER_CUT * len(cuts)).bit_length()
    return min(MAX_BUCKETS, max(MIN_BUCKETS, count))


class IntegerEncoder:
    """Encodes values whose ordinals are integers of 64 bits, but not doubles."""

    def __init__(self, column: Column, cuts: list[int]) -> None:
        self._column = column
        ordinals = np.array(cuts or [0], np.int64)
        count = _count_buckets(ordinals)
        self._least, self._most = int(ordinals[0]), int(ordinals[-1])
        # Buckets are 2^shift wide, so that `count` of them reach from the least cut to the last.
        width = (self._most - self._least).bit_length() - (count.bit_length() - 1)
        self._shift = max(0, width)
        bucket = bucket_integers(ordinals, self._least, self._most, self._shift)
        lowest = float(np.iinfo(np.int64).min)
        # Two more: one for values below all cuts, and one to spare.
        self._buckets = Buckets.of(ordinals, lowest, bucket, count + 2)
        self._is_uncut = not cuts

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value into `cells`; of a NULL, any."""
        if self._is_uncut:
            cells[:] = 1
            return
        valid = _without_validity(array)
        values = read_plain_numbers(valid)
        if values is None:
            values = encode_column(valid, self._column.type).codes
        b = self._buckets
        least, most = self._least, self._most
        encode_integers(values, b.cuts, b.first, b.steps, least, most, self._shift, cells)


class DoubleEncoder:
    """Encodes values of DOUBLE, compared as doubles.

    Cuts are doubles too, except for one that only NaN is above. The order is that of the ordinals,
    where −0.0 is 0.0.
    """

    def __init__(self, column: Column, cuts: list[int]) -> None:
        ordinary = [float(column.type.value(cut)) for cut in cuts if cut != NAN_RANK]  # type: ignore[arg-type]
        self._nan_cell = len(cuts) + 1
        self._is_uncut = not ordinary
        values = np.array(ordinary or [0.0])
        count = _count_buckets(values)
        # Infinite cuts cannot set the scale; they fall into the outermost buckets.
        finite = values[np.isfinite(values)]
        self._least = float(finite[0]) if len(finite) else 0.0
        with np.errstate(over="ignore", divide="ignore"):
            scale = np.float64(count - 1) / np.ptp(finite) if len(finite) else 0.0
        # Any scale above 0 is right; with this one nearly all values are in one bucket.
        self._scale = float(scale) if 0 < scale < np.inf else np.finfo(np.float64).tiny
        self._last = float(count + 1)
        bucket = bucket_doubles(values, self._least, self._scale, self._last)
        self._buckets = Buckets.of(values, -np.inf, bucket, count + 2)

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value into `cells`; of a NULL, any."""
        values: Numbers = _without_validity(array).to_numpy()
        if self._is_uncut:
            cells[:] = np.where(np.isnan(values), self._nan_cell, 1)
            return
        b = self._buckets
        least, scale, last, nan = self._least, self._scale, self._last, self._nan_cell
        encode_doubles(values, b.cuts, b.first, b.steps, least, scale, last, nan, cells)


class RankEncoder:
    """Encodes texts, and decimals of more than 18 digits, by their rank among the cuts."""

    def __init__(self, column: Column, cuts: list[Any]) -> None:
        self._regions = Regions(column, cuts, None)

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value into `cells`; of a NULL, any."""
        cells[:] = self._regions.codes(encode_column(array, self._regions.column.type))


class CellEncoder:
    """Encodes the values of one dimension, which must have NULL and no domain."""

    def __init__(self, dimension: Dimension) -> None:
        column = dimension.column
        cuts: list[Any] = [cell.low for cell in dimension.intervals if cell.low is not None]
        self.name = column.name
        self._encoder: IntegerEncoder | DoubleEncoder | RankEncoder
        if pool_of(column.type) != NUMBERS:
            self._encoder = RankEncoder(column, cuts)
        elif isinstance(column.type, Double):
            self._encoder = DoubleEncoder(column, cuts)
        else:
            self._encoder = IntegerEncoder(column, cuts)

    def encode(self, array: pa.Array[Any], cells: Cells) -> None:
        """Write the cell of each value of a column into `cells`."""
        self._encoder.encode(array, cells)
        if array.null_count:
            cells[array.is_null().to_numpy(zero_copy_only=False)] = 0


def _without_validity(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return the same numbers, with anything in the place of NULLs; nothing is copied."""
    if array.null_count == 0:
        return array
    # Without the validity bitmap, and at the same offset into the values.
    buffers = [None, array.buffers()[1]]
    unmasked: pa.Array[Any] = pa.Array.from_buffers(
        array.type, len(array), buffers, offset=array.offset
    )
    return unmasked
