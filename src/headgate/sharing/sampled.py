"""What a stream carries, by a sample of its rows: which of them a condition holds for, and widths.

A set of sample rows is an array of bits. Whatever is asked of selectivities is a union of such sets
and a count.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import NetworkError
from headgate.predicate import Predicate
from headgate.schema import (
    Boolean,
    Date,
    DecimalType,
    Double,
    Integer,
    Stream,
    String,
    Timestamp,
    Type,
)
from headgate.sharing.filtering import FilterableTable

Bits = npt.NDArray[np.uint64]

WORD_BITS = 64
Z_99 = 2.576  # of a normal distribution: 99 % lie within
LENGTH_BYTES = 4  # bytes by which a text says how long it is


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate that was estimated from a sample; it lies within the ends in 99 of 100 cases."""

    low: float
    value: float
    high: float

    def scale(self, factor: float) -> Estimate:
        return Estimate(self.low * factor, self.value * factor, self.high * factor)


def sum_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """The sum; its ends are the sums of the ends, so it lies within even more surely."""
    every = list(estimates)
    return Estimate(
        sum(one.low for one in every),
        sum(one.value for one in every),
        sum(one.high for one in every),
    )


def estimate_share(count: int, size: int) -> Estimate:
    """The share of all rows that such a share of a sample stands for: Wilson's interval.

    >>> found = estimate_share(50, 100)
    >>> round(found.low, 3), found.value, round(found.high, 3)
    (0.375, 0.5, 0.625)
    """
    share, weight = count / size, Z_99 * Z_99 / size
    middle = (share + weight / 2) / (1 + weight)
    spread = Z_99 * math.sqrt(share * (1 - share) / size + weight / size / 4) / (1 + weight)
    low, high = max(0.0, middle - spread), min(1.0, middle + spread)
    return Estimate(0.0 if count == 0 else low, share, 1.0 if count == size else high)


class SampledStream:
    """A stream: its attributes, rows a second, and a sample of them.

    `table` has a column for every attribute; `row_bytes` is what a whole row takes, if that is
    known better than by its types.
    """

    def __init__(
        self, stream: Stream, rate: float, table: pa.Table, row_bytes: float | None = None
    ) -> None:
        if not (math.isfinite(rate) and rate >= 0):
            raise NetworkError(
                f"the rate of stream {stream.name} is {rate}; rows a second, from 0 on",
                about=stream.name,
            )
        if row_bytes is not None and not (math.isfinite(row_bytes) and row_bytes > 0):
            raise NetworkError(
                f"a row of stream {stream.name} takes {row_bytes} bytes; give more than 0",
                about=stream.name,
            )
        if not table.num_rows:
            raise NetworkError(f"the sample of stream {stream.name} is empty", about=stream.name)
        self.stream = stream
        self.rate = rate
        self.size = table.num_rows
        self.widths = _measure_widths(stream, table, row_bytes)
        self._rows = FilterableTable(table, stream)
        self._known_widths: dict[frozenset[str], float] = {}

    @property
    def word_count(self) -> int:
        return -(-self.size // WORD_BITS)

    @cached_property
    def all_rows(self) -> Bits:
        return pack_bits(np.ones(self.size, np.bool_))

    def find_rows(self, where: Predicate) -> Bits:
        """The sample rows for which a condition is TRUE."""
        return pack_bits(self._rows.compute_mask(where))

    def estimate_rate(self, count: int) -> Estimate:
        """Rows a second, of which so many are in the sample."""
        return estimate_share(count, self.size).scale(self.rate)

    def measure_width(self, names: Collection[str]) -> float:
        """Bytes of a row with these attributes."""
        known = frozenset(names)
        if known not in self._known_widths:
            self._known_widths[known] = float(self.widths[self.get_positions(known)].sum())
        return self._known_widths[known]

    @cached_property
    def _at(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.stream.names)}

    def get_positions(self, names: Collection[str]) -> npt.NDArray[np.int64]:
        """The numbers of attributes in the stream."""
        return np.array(sorted(self._at[name] for name in names), np.int64)


def pack_bits(mask: npt.NDArray[np.bool_]) -> Bits:
    """A mask as bits, in whole words."""
    whole = np.zeros(-(-len(mask) // WORD_BITS) * WORD_BITS, np.bool_)
    whole[: len(mask)] = mask
    return np.packbits(whole, bitorder="little").view(np.uint64)


def count_bits(bits: Bits) -> int:
    return int(np.bitwise_count(bits).sum())


def unite_bits(sets: Sequence[Bits], words: int) -> Bits:
    return np.bitwise_or.reduce(sets, axis=0) if sets else np.zeros(words, np.uint64)


def get_value_bytes(type_: Type) -> int:
    """What a value takes on the way, but for the letters of a text."""
    if isinstance(type_, Boolean):
        return 1
    if isinstance(type_, Integer):
        return type_.bits // 8
    if isinstance(type_, Date | String):
        return LENGTH_BYTES
    if isinstance(type_, Double | Timestamp):
        return 8
    assert isinstance(type_, DecimalType), type_
    return 16


def measure_bytes(table: pa.Table, stream: Stream, names: Collection[str]) -> int:
    """What these attributes of rows take on the way; NULL takes what a value without letters does.

    >>> from headgate.schema import INT, STRING, Attribute
    >>> s = Stream("s", (Attribute("a", INT), Attribute("b", STRING)))
    >>> measure_bytes(pa.table({"a": [1, None], "b": ["é", None]}), s, ["a", "b"])
    18
    """
    fixed = sum(get_value_bytes(stream[name].type) for name in names) * table.num_rows
    texts = [name for name in names if isinstance(stream[name].type, String)]
    return fixed + sum(_count_text_bytes(table.column(name)) for name in texts)


def _count_text_bytes(column: Any) -> int:
    return int(pc.sum(pc.binary_length(column)).as_py() or 0)


def _measure_widths(
    stream: Stream, table: pa.Table, row_bytes: float | None
) -> npt.NDArray[np.float64]:
    """Bytes of each attribute in a mean row; in the same proportions where a row is given."""
    found = np.array(
        [measure_bytes(table, stream, [name]) / table.num_rows for name in stream.names]
    )
    return found if row_bytes is None else found * (row_bytes / found.sum())
