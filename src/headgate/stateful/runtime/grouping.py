"""Rows with equal keys, numbered: the keys are whole numbers, one array for each part of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

MAX_KEY = 1 << 62
MAX_DENSE_KEYS = 1 << 16  # keys up to which a table of all of them is looked into


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The group of each row, and the first row of each group."""

    of: Numbers
    first: Numbers

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.first)


def group_rows(parts: Sequence[Numbers], sizes: Sequence[int | None], rows: int) -> Grouping:
    """Group rows by several arrays of numbers from 0 on; a size of None is looked up.

    >>> groups = group_rows([np.array([5, 0, 5, 0]), np.array([0, 1, 0, 0])], [6, 2], 4)
    >>> groups.of.tolist(), groups.first.tolist()
    ([2, 1, 2, 0], [3, 1, 0])
    """
    # `key` is a number in mixed radix, a digit for each part, and always below `limit`. Before it
    # could overflow, first the key and then the part is renumbered without gaps.
    key, limit = np.zeros(rows, np.int64), 1
    for part, known in zip(parts, sizes, strict=True):
        size = int(part.max(initial=-1)) + 1 if known is None else known
        if limit * size >= MAX_KEY:
            key, limit = _number_densely(key, limit)
        if limit * size >= MAX_KEY:
            part, size = _number_densely(part, size)  # noqa: PLW2901
        key = part if limit == 1 else key * size + part
        limit *= max(size, 1)
    of, groups = _number_densely(key, limit)
    first = np.empty(groups, np.int64)
    first[of[::-1]] = np.arange(rows - 1, -1, -1)  # the last one written is the first row
    return Grouping(of, first)


def _number_densely(key: Numbers, limit: int) -> tuple[Numbers, int]:
    """Renumber the keys so that there are no gaps between them."""
    if limit <= max(MAX_DENSE_KEYS, 2 * len(key)):
        # A table of all keys, without hashing; `occurs[k]` says whether key k occurs.
        occurs = np.zeros(limit, np.bool_)
        occurs[key] = True
        if occurs.all():
            return key, limit
        return (np.cumsum(occurs) - 1)[key], int(np.count_nonzero(occurs))
    encoded = pa.array(key).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
