"""What was found, beside the products, about queries that are no products: unions of several."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.products import Numbers


class Found(NamedTuple):
    """Which unions contain hull i: the bits of row `row[i]` in `unions`; none where that is -1.

    Bit k is the hull at k after all products. `products[offsets[i]:offsets[i + 1]]` contain query i
    although they do not contain its hull, which may be too large.
    """

    row: Numbers
    unions: npt.NDArray[np.uint64]
    offsets: Numbers
    products: Numbers


def nothing_found(size: int) -> Found:
    """For products alone."""
    none = np.zeros((0, 0), np.uint64)
    zeros = np.zeros(size + 1, np.int64)
    return Found(np.full(size, -1, np.int64), none, zeros, np.zeros(0, np.int64))
