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

CHUNK = 1 << 18  # rows: with limbs of at most 34 bits, a sum has at most 52
LIMB = 32
FRACTION = 52  # bits of a double behind its leading one
HALF = 27  # bits of the lower part of its 53
STEP = 3  # doubles are added up by exponents in eights
SUBNORMAL = 1074
BIGGEST = int(np.iinfo(np.int64).max)


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
        """Empty buckets."""
        return Sums(_zeros(size), np.zeros(size, dtype=np.int8), np.zeros(size, dtype=np.int64))

    @staticmethod
    def concatenated(parts: Sequence[Sums]) -> Sums:
        """The buckets of several, one after the other."""
        return Sums(
            np.concatenate([part.finite for part in parts]),
            np.concatenate([part.special for part in parts]),
            np.concatenate([part.count for part in parts]),
        )

    def at(self, buckets: Codes) -> Sums:
        """Some of the buckets."""
        return Sums(self.finite[buckets], self.special[buckets], self.count[buckets])


def sums(column: pa.Array[Any], type_: Type, buckets: Codes, size: int) -> Sums:
    """The sums of a column, the row i of which is in bucket `buckets[i]` of `size`.

    Of what is not a number there is only a count.

    >>> from headgate.schema import BIGINT
    >>> found = sums(pa.array([2**62, None, 2**62, 2**62]), BIGINT, np.array([0, 0, 1, 1]), 2)
    >>> found.finite.tolist(), found.count.tolist()
    ([4611686018427387904, 9223372036854775808], [1, 2])
    """
    found = Sums.none(size)
    if not type_.numeric:
        present = buckets if column.null_count == 0 else buckets[_present(column)]
    elif isinstance(type_, DecimalType) and type_.precision > MAX_CODED_DIGITS:
        valid = _present(column)
        present = buckets[valid]
        found.finite = _of_words(_words(column)[valid], present, size)
    else:
        rows, coded = encode_present(column, type_)
        present = buckets if len(rows) == len(buckets) else buckets[rows]
        if isinstance(type_, Double):
            found.finite = _of_doubles(coded.codes, present, found.special)
        else:
            short = isinstance(type_, Integer) and type_.bits == LIMB
            found.finite = _of_integers(coded.codes, present, size, short=short)
    found.count = np.bincount(present, minlength=size)
    return found


def regrouped(sums: Sums, buckets: Codes, size: int, times: Codes | Objects | None = None) -> Sums:
    """Sums added up into other buckets: those at i into `buckets[i]`, taken `times[i]` times.

    >>> three = Sums.concatenated([Sums.none(1), Sums.none(2)])
    >>> three.finite[:], three.count[:] = [5, 7, 1], 1
    >>> found = regrouped(three, np.array([0, 1, 1]), 2, times=np.array([1, 10, 2]))
    >>> found.finite.tolist(), found.count.tolist()
    ([5, 72], [1, 12])
    """
    found = Sums.none(size)
    found.count = _counts(sums.count, buckets, size, times)
    finite = sums.finite if times is None else sums.finite * times.astype(object)
    np.add.at(found.finite, buckets, finite)
    seen = np.flatnonzero(sums.special if times is None else sums.special * (times != 0))
    np.bitwise_or.at(found.special, buckets[seen], sums.special[seen])
    return found


def total_value(sums: Sums, at: int, type_: Type) -> Fraction | float | None:
    """The sum of a bucket; None where no value is in it.

    Infinities of both signs make a NaN, and NaN stays.
    """
    if not sums.count[at]:
        return None
    special = int(sums.special[at])
    if special:
        return {PLUS_INFINITY: inf, MINUS_INFINITY: -inf}.get(special, nan)
    return Fraction(sums.finite[at], _units(type_))


def _units(type_: Type) -> int:
    """How many units of a type make one."""
    if isinstance(type_, Double):
        return 1 << SUBNORMAL
    return int(10**type_.scale) if isinstance(type_, DecimalType) else 1


def _of_integers(values: Codes, buckets: Codes, size: int, *, short: bool) -> Objects:
    if short:
        return _limb_sums(values, buckets, size).astype(object)
    low = _limb_sums(values & ((1 << LIMB) - 1), buckets, size)
    high = _limb_sums(values >> LIMB, buckets, size)
    found: Objects = low.astype(object) + (high.astype(object) << LIMB)
    return found


def _of_words(words: npt.NDArray[np.uint32], buckets: Codes, size: int) -> Objects:
    """The sums of integers of 128 bits, given as four words each, the lowest first."""
    found: Objects = _limb_sums(words[:, 3].view(np.int32), buckets, size).astype(object)
    for place in (2, 1, 0):
        found = (found << LIMB) + _limb_sums(words[:, place], buckets, size)
    return found


def _of_doubles(ranks: Codes, buckets: Codes, special: npt.NDArray[np.int8]) -> Objects:
    """The sums of the finite doubles with these ordinals; the others are noted in `special`.

    The magnitude of an ordinal is the bits of the double without its sign.
    """
    found = _zeros(len(special))
    magnitudes = np.abs(ranks)
    finite = magnitudes < INFINITY_RANK
    if not finite.all():
        _note(special, ranks[~finite], buckets[~finite])
        ranks, buckets, magnitudes = ranks[finite], buckets[finite], magnitudes[finite]
    if not len(ranks):
        return found
    exponents = magnitudes >> FRACTION
    mantissas = magnitudes & ((1 << FRACTION) - 1) | (exponents > 0).astype(np.int64) << FRACTION
    mantissas = np.where(ranks < 0, -mantissas, mantissas)
    shifts = np.maximum(exponents, 1) - 1
    keys, eights, owners = _by_eights(shifts >> STEP, buckets, len(special))
    within = shifts & ((1 << STEP) - 1)
    low = _limb_sums((mantissas & ((1 << HALF) - 1)) << within, keys, len(eights))
    high = _limb_sums((mantissas >> HALF) << within, keys, len(eights))
    used = np.flatnonzero(low | high)
    parts = low[used].astype(object) + (high[used].astype(object) << HALF)
    np.add.at(found, owners[used], parts << (eights[used] << STEP).astype(object))
    return found


def _note(special: npt.NDArray[np.int8], ranks: Codes, buckets: Codes) -> None:
    bits = np.where(ranks < 0, MINUS_INFINITY, NOT_A_NUMBER)
    bits[ranks == INFINITY_RANK] = PLUS_INFINITY
    np.bitwise_or.at(special, buckets, bits.astype(np.int8))


def _by_eights(eights: Codes, buckets: Codes, size: int) -> tuple[Codes, Codes, Codes]:
    """A key for each row by its bucket and exponent; the exponent and bucket of each key."""
    least = int(eights.min())
    span = int(eights.max()) - least + 1
    keys = buckets * span + (eights - least)
    if size * span <= max(CHUNK, len(keys)):
        known = np.arange(size * span)
    else:
        known, keys = np.unique(keys, return_inverse=True)
    return keys, known % span + least, known // span


def _limb_sums(limbs: npt.NDArray[Any], buckets: Codes, size: int) -> Codes:
    """The sums of fewer than 2^31 limbs."""
    found = np.zeros(size, dtype=np.int64)
    for start in range(0, len(limbs), CHUNK):
        rows = slice(start, start + CHUNK)
        found += np.bincount(buckets[rows], limbs[rows], minlength=size).astype(np.int64)
    return found


def _counts(counts: Codes, buckets: Codes, size: int, times: Codes | Objects | None) -> Codes:
    """Counts added up, each taken so many times; an Overflow where 64 bits do not hold a sum."""
    most = int(counts.max(initial=0)) * (1 if times is None else int(times.max(initial=0)))
    exact: npt.DTypeLike = np.int64 if most * len(counts) <= BIGGEST else object
    found: npt.NDArray[Any] = np.zeros(size, dtype=exact)
    taken: npt.NDArray[Any] = counts.astype(exact)
    np.add.at(found, buckets, taken if times is None else taken * times.astype(exact))
    if found.max(initial=0) > BIGGEST:
        raise Overflow("more than 2^63 values, which no BIGINT counts")
    return found.astype(np.int64)


def _zeros(size: int) -> Objects:
    return np.full(size, 0, dtype=object)


def _present(column: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.asarray(column.is_valid())
    return found


def _words(column: pa.Array[Any]) -> npt.NDArray[np.uint32]:
    """The four words of each of a column's decimals of 128 bits, as Arrow's buffer has them."""
    buffer = column.buffers()[1]
    words = np.frombuffer(memoryview(buffer) if buffer else b"", dtype=np.uint32).reshape(-1, 4)
    return words[column.offset : column.offset + len(column)]
