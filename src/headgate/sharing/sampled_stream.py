"""A stream by a sample of its rows: which of them satisfy a condition, and how wide they are.

A set of sample rows is an array of bits, so that every selectivity is a union of such sets and a
count.
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
from headgate.events.columns import CodedColumn, Mask, encode_column
from headgate.matching.scan import Evaluation
from headgate.predicate import Predicate, collect_columns
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

Bits = npt.NDArray[np.uint64]

WORD_BITS = 64
Z_99 = 2.576  # standard deviations within which 99 % of a normal distribution lie
LENGTH_BYTES = 4  # of the length that precedes a text


class FilterableTable:
    """A table with some attributes of a stream, on which conditions are evaluated.

    Each column is encoded once, when it is first needed.
    """

    def __init__(self, table: pa.Table, stream: Stream) -> None:
        self.table = table
        self.stream = stream
        self._coded: dict[str, CodedColumn] = {}

    def compute_mask(self, where: Predicate) -> Mask:
        """Return a mask of the rows for which a condition is TRUE."""
        coded = {column.name: self._encode_column(column.name) for column in collect_columns(where)}
        return Evaluation(coded, self.table.num_rows, set()).true(where)

    def _encode_column(self, name: str) -> CodedColumn:
        if name not in self._coded:
            attribute = self.stream[name]
            array = self.table.column(attribute.name).combine_chunks()
            self._coded[name] = encode_column(array, attribute.type)
        return self._coded[name]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate estimated from a sample; it lies between `low` and `high` in 99 of 100 cases."""

    low: float
    value: float
    high: float

    def scale(self, factor: float) -> Estimate:
        """Return the estimate times a factor."""
        return Estimate(self.low * factor, self.value * factor, self.high * factor)


def sum_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """Return the sum; its ends are the sums of the ends, so they are rather too wide."""
    every = list(estimates)
    return Estimate(
        sum(estimate.low for estimate in every),
        sum(estimate.value for estimate in every),
        sum(estimate.high for estimate in every),
    )


def estimate_share(count: int, size: int) -> Estimate:
    """Return the share of all rows that a count in a sample stands for, by Wilson's interval.

    >>> share = estimate_share(50, 100)
    >>> round(share.low, 3), share.value, round(share.high, 3)
    (0.375, 0.5, 0.625)
    """
    # Wilson's interval has a width at shares of 0 and 1, too, where a normal interval has none.
    share, weight = count / size, Z_99 * Z_99 / size
    middle = (share + weight / 2) / (1 + weight)
    spread = Z_99 * math.sqrt(share * (1 - share) / size + weight / size / 4) / (1 + weight)
    low, high = max(0.0, middle - spread), min(1.0, middle + spread)
    return Estimate(0.0 if count == 0 else low, share, 1.0 if count == size else high)


class SampledStream:
    """A stream with its rate and a sample of its rows.

    Parameters
    ----------
    stream
        The declared stream.
    rate
        Rows per second.
    table
        The sample, with a column for every attribute.
    row_bytes
        The bytes of a whole row, where that is known better than by its types and texts.

    Attributes
    ----------
    stream
        The declared stream.
    rate
        The rows per second.
    size
        The rows of the sample.
    widths
        The mean bytes of each attribute, in the order of the stream.

    Raises
    ------
    NetworkError
        The sample is empty, or a number is out of range.

    Examples
    --------
    >>> from headgate.schema import INT, STRING, Attribute
    >>> stream = Stream("s", (Attribute("a", INT), Attribute("b", STRING)))
    >>> sampled = SampledStream(stream, 10.0, pa.table({"a": [1, 2], "b": ["x", "yz"]}))
    >>> sampled.measure_width(["a", "b"])
    9.5
    """

    def __init__(
        self, stream: Stream, rate: float, table: pa.Table, row_bytes: float | None = None
    ) -> None:
        if not (math.isfinite(rate) and rate >= 0):
            raise NetworkError(
                f"the rate of stream {stream.name} is {rate}; give rows per second, 0 or more",
                about=stream.name,
            )
        if row_bytes is not None and not (math.isfinite(row_bytes) and row_bytes > 0):
            raise NetworkError(
                f"a row of stream {stream.name} takes {row_bytes} bytes; give more than 0",
                about=stream.name,
            )
        if not table.num_rows:
            raise NetworkError(
                f"the sample of stream {stream.name} has no rows; give at least one",
                about=stream.name,
            )
        self.stream = stream
        self.rate = rate
        self.size = table.num_rows
        self.widths = _measure_widths(stream, table, row_bytes)
        self._rows = FilterableTable(table, stream)
        self._known_widths: dict[frozenset[str], float] = {}

    @property
    def word_count(self) -> int:
        """The 64-bit words of a set of sample rows."""
        return -(-self.size // WORD_BITS)

    @cached_property
    def all_rows(self) -> Bits:
        """The set of all sample rows."""
        return pack_bits(np.ones(self.size, np.bool_))

    def find_rows(self, where: Predicate) -> Bits:
        """Return the sample rows for which a condition is TRUE.

        Parameters
        ----------
        where : Predicate
            A condition on the stream.

        Returns
        -------
        Bits
            A set of sample rows.
        """
        return pack_bits(self._rows.compute_mask(where))

    def estimate_rate(self, count: int) -> Estimate:
        """Return the rows per second that a count of sample rows stands for.

        Parameters
        ----------
        count : int
            A number of sample rows.

        Returns
        -------
        Estimate
            The rate, with the interval that it lies in.
        """
        return estimate_share(count, self.size).scale(self.rate)

    def measure_width(self, names: Collection[str]) -> float:
        """Return the bytes of a row with these attributes.

        Parameters
        ----------
        names : collection of str
            Attributes of the stream.

        Returns
        -------
        float
            The mean over the sample.
        """
        known = frozenset(names)
        if known not in self._known_widths:
            self._known_widths[known] = float(self.widths[self.get_positions(known)].sum())
        return self._known_widths[known]

    @cached_property
    def _at(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.stream.names)}

    def get_positions(self, names: Collection[str]) -> npt.NDArray[np.int64]:
        """Return the positions of attributes in the stream, in order.

        Parameters
        ----------
        names : collection of str
            Attributes of the stream.

        Returns
        -------
        ndarray of int64
            The positions, ascending.
        """
        return np.array(sorted(self._at[name] for name in names), np.int64)


@dataclass(frozen=True, slots=True)
class PublishedStream:
    """A stream, and the peer of the network that delivers it.

    Parameters
    ----------
    sampled
        The stream with its rate and sample.
    peer
        The name of the peer.

    Examples
    --------
    >>> from headgate.schema import INT, Attribute
    >>> stream = Stream("s", (Attribute("a", INT),))
    >>> PublishedStream(SampledStream(stream, 10.0, pa.table({"a": [1]})), peer="P0").peer
    'P0'
    """

    sampled: SampledStream
    peer: str


def pack_bits(mask: npt.NDArray[np.bool_]) -> Bits:
    """Return a mask as bits, in whole words."""
    # Padded with zeros to whole words, so that counts and unions need no mask for the last one.
    whole = np.zeros(-(-len(mask) // WORD_BITS) * WORD_BITS, np.bool_)
    whole[: len(mask)] = mask
    return np.packbits(whole, bitorder="little").view(np.uint64)


def count_bits(bits: Bits) -> int:
    """Return how many bits are set."""
    return int(np.bitwise_count(bits).sum())


def unite_bits(sets: Sequence[Bits], words: int) -> Bits:
    """Return the union of sets of so many words each."""
    return np.bitwise_or.reduce(sets, axis=0) if sets else np.zeros(words, np.uint64)


def get_value_bytes(type_: Type) -> int:
    """Return the bytes of a value on a link, without the letters of a text."""
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
    """Return the bytes of these attributes on a link; NULL takes what an empty value does.

    >>> from headgate.schema import INT, STRING, Attribute
    >>> s = Stream("s", (Attribute("a", INT), Attribute("b", STRING)))
    >>> measure_bytes(pa.table({"a": [1, None], "b": ["é", None]}), s, ["a", "b"])
    18
    """
    # Text has a length for each row, NULL too, and its letters in UTF-8.
    fixed = sum(get_value_bytes(stream[name].type) for name in names) * table.num_rows
    texts = [name for name in names if isinstance(stream[name].type, String)]
    return fixed + sum(_count_text_bytes(table.column(name)) for name in texts)


def _count_text_bytes(column: Any) -> int:
    return int(pc.sum(pc.binary_length(column)).as_py() or 0)


def _measure_widths(
    stream: Stream, table: pa.Table, row_bytes: float | None
) -> npt.NDArray[np.float64]:
    """Return the mean bytes of each attribute, scaled to add up to `row_bytes` if given."""
    widths = np.array(
        [measure_bytes(table, stream, [name]) / table.num_rows for name in stream.names]
    )
    return widths if row_bytes is None else widths * (row_bytes / widths.sum())
