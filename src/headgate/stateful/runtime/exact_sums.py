"""Exact sums of a column, bucket by bucket.

A value is a whole number of units of its type: of 1, of 10^-scale, or of 2^-1074 for DOUBLE. It is
cut into limbs so short that the doubles in which NumPy adds up a chunk of them hold every sum
exactly; what the chunks give is put together as Python's integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.errors import Overflow
from headgate.events.columns import MAX_CODED_DIGITS, Codes, encode_present
from headgate.schema import DecimalType, Double, Integer, Type
from headgate.schema.types import INFINITY_RANK

Objects = npt.NDArray[np.object_]

PLUS_INFINITY, MINUS_INFINITY, NOT_A_NUMBER = 1, 2, 4

CHUNK_ROWS = 1 << 18  # rows: with limbs of at most 34 bits, a sum has at most 52
LIMB_BITS = 32
FRACTION_BITS = 52  # bits of a double behind its leading one
LOW_HALF_BITS = 27  # bits of the lower part of its 53
EXPONENT_STEP_BITS = 3  # doubles are added up by exponents in eights
SUBNORMAL_SHIFT = 1074
MAX_INT64 = int(np.iinfo(np.int64).max)


@dataclass(slots=True)
class Sums:
    """Exact sums of the values that are not NULL, bucket by bucket.

    `finite` is in units of the type, as Python's integers; `special` is bits for the infinities
    and NaN that were seen; `count` is how many values are not NULL.
    """

    finite: Objects
    special: npt.NDArray[np.int8]
    count: Codes

    @staticmethod
    def none(size: int) -> Sums:
        """Return the sums of empty buckets."""
        special, count = np.zeros(size, dtype=np.int8), np.zeros(size, dtype=np.int64)
        return Sums(_make_zeros(size), special, count)

    @staticmethod
    def concatenate(parts: Sequence[Sums]) -> Sums:
        """Return the buckets of several, one after the other."""
        return Sums(
            np.concatenate([part.finite for part in parts]),
            np.concatenate([part.special for part in parts]),
            np.concatenate([part.count for part in parts]),
        )

    def at(self, buckets: Codes) -> Sums:
        """Return some of the buckets."""
        return Sums(self.finite[buckets], self.special[buckets], self.count[buckets])


def sum_by_bucket(column: pa.Array[Any], type_: Type, buckets: Codes, size: int) -> Sums:
    """Add up a column whose row i is in bucket `buckets[i]` of `size`.

    Of what is not a number there is only a count.

    >>> from headgate.schema import BIGINT
    >>> column = pa.array([2**62, None, 2**62, 2**62])
    >>> totals = sum_by_bucket(column, BIGINT, np.array([0, 0, 1, 1]), 2)
    >>> totals.finite.tolist(), totals.count.tolist()
    ([4611686018427387904, 9223372036854775808], [1, 2])
    """
    totals = Sums.none(size)
    if not type_.numeric:
        present = buckets if column.null_count == 0 else buckets[_find_present(column)]
    # Decimals that no 64 bits hold: four words of 32 bits each.
    elif isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS:
        valid = _find_present(column)
        present = buckets[valid]
        totals.finite = _sum_words(_read_words(column)[valid], present, size)
    else:
        rows, coded = encode_present(column, type_)
        present = buckets if len(rows) == len(buckets) else buckets[rows]
        if isinstance(type_, Double):
            totals.finite = _sum_doubles(coded.codes, present, totals.special)
        else:
            short = isinstance(type_, Integer) and type_.bits == LIMB_BITS
            totals.finite = _sum_integers(coded.codes, present, size, short=short)
    totals.count = np.bincount(present, minlength=size)
    return totals


def regroup(sums: Sums, buckets: Codes, size: int, times: Codes | Objects | None = None) -> Sums:
    """Add sums up into other buckets: those at i into `buckets[i]`, taken `times[i]` times.

    >>> three = Sums.concatenate([Sums.none(1), Sums.none(2)])
    >>> three.finite[:], three.count[:] = [5, 7, 1], 1
    >>> totals = regroup(three, np.array([0, 1, 1]), 2, times=np.array([1, 10, 2]))
    >>> totals.finite.tolist(), totals.count.tolist()
    ([5, 72], [1, 12])
    """
    totals = Sums.none(size)
    totals.count = _sum_counts(sums.count, buckets, size, times)
    finite = sums.finite if times is None else sums.finite * times.astype(object)
    np.add.at(totals.finite, buckets, finite)
    # A bucket that is taken 0 times brings no infinity and no NaN.
    seen = np.flatnonzero(sums.special if times is None else sums.special * (times != 0))
    np.bitwise_or.at(totals.special, buckets[seen], sums.special[seen])
    return totals


def get_total(sums: Sums, at: int, type_: Type) -> Fraction | float | None:
    """Return the sum of a bucket; None where no value is in it.

    Infinities of both signs make a NaN, and NaN stays.
    """
    if not sums.count[at]:
        return None
    special = int(sums.special[at])
    if special:
        return {PLUS_INFINITY: inf, MINUS_INFINITY: -inf}.get(special, nan)
    return Fraction(sums.finite[at], _count_units(type_))


def _count_units(type_: Type) -> int:
    """Return how many units of a type make one."""
    if isinstance(type_, Double):
        return 1 << SUBNORMAL_SHIFT
    return int(10**type_.scale) if isinstance(type_, DecimalType) else 1


def _sum_integers(values: Codes, buckets: Codes, size: int, *, short: bool) -> Objects:
    if short:
        return _sum_limbs(values, buckets, size).astype(object)
    # The lower limb is unsigned and the upper one has the sign, as in two's complement.
    low = _sum_limbs(values & ((1 << LIMB_BITS) - 1), buckets, size)
    high = _sum_limbs(values >> LIMB_BITS, buckets, size)
    totals: Objects = low.astype(object) + (high.astype(object) << LIMB_BITS)
    return totals


def _sum_words(words: npt.NDArray[np.uint32], buckets: Codes, size: int) -> Objects:
    """Add up integers of 128 bits, given as four words each, the lowest first."""
    # The highest word has the sign; then down, 32 bits at a time.
    totals: Objects = _sum_limbs(words[:, 3].view(np.int32), buckets, size).astype(object)
    for place in (2, 1, 0):
        totals = (totals << LIMB_BITS) + _sum_limbs(words[:, place], buckets, size)
    return totals


def _sum_doubles(ranks: Codes, buckets: Codes, special: npt.NDArray[np.int8]) -> Objects:
    """Add up the finite doubles with these ordinals; the others are noted in `special`.

    The magnitude of an ordinal is the bits of the double without its sign.
    """
    totals = _make_zeros(len(special))
    magnitudes = np.abs(ranks)
    finite = magnitudes < INFINITY_RANK
    if not finite.all():
        _note_special(special, ranks[~finite], buckets[~finite])
        ranks, buckets, magnitudes = ranks[finite], buckets[finite], magnitudes[finite]
    if not len(ranks):
        return totals
    # A double is mantissa × 2^(shift - 1074). Subnormals lack the leading one and have shift 0.
    exponents = magnitudes >> FRACTION_BITS
    mantissas = (
        magnitudes & ((1 << FRACTION_BITS) - 1) | (exponents > 0).astype(np.int64) << FRACTION_BITS
    )
    mantissas = np.where(ranks < 0, -mantissas, mantissas)
    shifts = np.maximum(exponents, 1) - 1
    # One key for each (bucket, shift // 8) instead of each (bucket, shift): fewer sums, and limbs
    # that the rest of the shift, at most 7 bits, still leaves short enough.
    keys, eights, owners = _group_exponents(shifts >> EXPONENT_STEP_BITS, buckets, len(special))
    within = shifts & ((1 << EXPONENT_STEP_BITS) - 1)
    low = _sum_limbs((mantissas & ((1 << LOW_HALF_BITS) - 1)) << within, keys, len(eights))
    high = _sum_limbs((mantissas >> LOW_HALF_BITS) << within, keys, len(eights))
    # Python's integers are slow, so only keys with a sum other than 0 become such.
    used = np.flatnonzero(low | high)
    parts = low[used].astype(object) + (high[used].astype(object) << LOW_HALF_BITS)
    np.add.at(totals, owners[used], parts << (eights[used] << EXPONENT_STEP_BITS).astype(object))
    return totals


def _note_special(special: npt.NDArray[np.int8], ranks: Codes, buckets: Codes) -> None:
    bits = np.where(ranks < 0, MINUS_INFINITY, NOT_A_NUMBER)
    bits[ranks == INFINITY_RANK] = PLUS_INFINITY
    np.bitwise_or.at(special, buckets, bits.astype(np.int8))


def _group_exponents(eights: Codes, buckets: Codes, size: int) -> tuple[Codes, Codes, Codes]:
    """Return a key for each row by its bucket and exponent; the exponent and bucket of each key."""
    least = int(eights.min())
    span = int(eights.max()) - least + 1
    keys = buckets * span + (eights - least)
    # Few possible keys are all numbered; many are reduced to those that occur, by sorting.
    if size * span <= max(CHUNK_ROWS, len(keys)):
        known = np.arange(size * span)
    else:
        known, keys = np.unique(keys, return_inverse=True)
    return keys, known % span + least, known // span


def _sum_limbs(limbs: npt.NDArray[Any], buckets: Codes, size: int) -> Codes:
    """Add up fewer than 2^31 limbs."""
    totals = np.zeros(size, dtype=np.int64)
    for start in range(0, len(limbs), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        totals += np.bincount(buckets[rows], limbs[rows], minlength=size).astype(np.int64)
    return totals


def _sum_counts(counts: Codes, buckets: Codes, size: int, times: Codes | Objects | None) -> Codes:
    """Add up counts, each taken so many times; an Overflow where 64 bits do not hold a sum."""
    # If not even the largest possible sum overflows, 64 bits will do; otherwise Python's integers.
    most = int(counts.max(initial=0)) * (1 if times is None else int(times.max(initial=0)))
    exact: npt.DTypeLike = np.int64 if most * len(counts) <= MAX_INT64 else object
    totals: npt.NDArray[Any] = np.zeros(size, dtype=exact)
    exact_counts: npt.NDArray[Any] = counts.astype(exact)
    np.add.at(
        totals, buckets, exact_counts if times is None else exact_counts * times.astype(exact)
    )
    if totals.max(initial=0) > MAX_INT64:
        raise Overflow("more than 2^63 values, which no BIGINT counts")
    return totals.astype(np.int64)


def _make_zeros(size: int) -> Objects:
    return np.full(size, 0, dtype=object)


def _find_present(column: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    present: npt.NDArray[np.bool_] = np.asarray(column.is_valid())
    return present


def _read_words(column: pa.Array[Any]) -> npt.NDArray[np.uint32]:
    """Return the four words of each decimal of 128 bits, as Arrow's buffer has them."""
    buffer = column.buffers()[1]
    words = np.frombuffer(memoryview(buffer) if buffer else b"", dtype=np.uint32).reshape(-1, 4)
    return words[column.offset : column.offset + len(column)]
