"""The smallest of the queries that contain a query: its direct parents.

Of all that contain it the first in order is one, since what lies between two products comes between
them in order. Whatever contains that one is no direct parent, so it is cleared, and the first that
is left is the next. A chain of 100,000 takes one step for each query, not 100,000.

Queries that are no products have no place in that order. Which of them contain which is known as a
matrix of bits, and they are cleared by each other in any order.
"""

from __future__ import annotations

import numpy as np

from headgate.implication.order.supersets import fill_supersets
from headgate.matching.keyed.compiled import kernel, part_of_kernel
from headgate.matching.keyed.intrinsics import lowest_bit


@kernel
def _fill(s, also, i, out, begin, among):
    """As `fill_supersets`, with the products that were found otherwise to contain hull i."""
    fill_supersets(s, i, out, begin, among)
    for at in range(also.offsets[i], also.offsets[i + 1]):
        place = also.products[at]
        if place >> 6 >= begin:
            out[place >> 6] |= among[place >> 6] & (np.uint64(1) << np.uint64(place & 63))


@part_of_kernel
def _clear(bits, others, begin):
    for w in range(begin, len(bits)):
        bits[w] &= ~others[w]


@kernel
def _smallest(also, size, row, left, direct):
    """Of the unions that contain a query, by its row, those that contain none of the others."""
    above = np.zeros(len(direct), np.uint64)
    for w in range(len(direct)):
        left[w] = also.unions[row, w]
        direct[w] = 0
    for w in range(len(direct)):
        while left[w]:
            bit = lowest_bit(left[w])
            left[w] &= left[w] - np.uint64(1)
            direct[w] |= np.uint64(1) << np.uint64(bit)
            larger = also.row[size + 64 * w + bit]
            if larger >= 0:
                _clear(left, also.unions[larger], w)
                for v in range(len(above)):
                    above[v] |= also.unions[larger, v]
    _clear(direct, above, 0)


@kernel
def direct_parents(s, also, start, stop, most):
    """The hulls from `start` up to before `stop` with each of their direct parents, as two arrays.

    Past `most` pairs it ends; the third answer is the first hull that it did not come to.
    """
    everything = np.zeros(len(s.gaps), np.uint64)
    for product in range(s.size):
        everything[product >> 6] |= np.uint64(1) << np.uint64(product & 63)
    left, out = np.zeros(len(s.gaps), np.uint64), np.zeros(len(s.gaps), np.uint64)
    width = also.unions.shape[1]
    direct, rest = np.zeros(width, np.uint64), np.zeros(width, np.uint64)
    children, parents = np.empty(1024, np.int32), np.empty(1024, np.int32)
    count = 0
    i = start
    while i < stop and count <= most:
        begin = s.begin[i] >> 6
        _fill(s, also, i, left, begin, everything)
        row = also.row[i]
        if row >= 0:
            _smallest(also, s.size, row, rest, direct)
            for w in range(width):
                bits = direct[w]
                while bits:
                    union = s.size + 64 * w + lowest_bit(bits)
                    bits &= bits - np.uint64(1)
                    from_here = max(begin, s.begin[union] >> 6)
                    _fill(s, also, union, out, from_here, left)
                    _clear(left, out, from_here)
        for w in range(begin, len(left)):
            while left[w]:
                parent = 64 * w + lowest_bit(left[w])
                left[w] &= left[w] - np.uint64(1)
                if count == len(children):
                    children = np.concatenate((children, np.empty_like(children)))
                    parents = np.concatenate((parents, np.empty_like(parents)))
                children[count], parents[count] = i, parent
                count += 1
                fill_supersets(s, parent, out, w, left)
                _clear(left, out, w)
                if row >= 0 and also.row[parent] >= 0:
                    _clear(direct, also.unions[also.row[parent]], 0)
        if row >= 0:
            for w in range(width):
                while direct[w]:
                    union = s.size + 64 * w + lowest_bit(direct[w])
                    direct[w] &= direct[w] - np.uint64(1)
                    if count == len(children):
                        children = np.concatenate((children, np.empty_like(children)))
                        parents = np.concatenate((parents, np.empty_like(parents)))
                    children[count], parents[count] = i, union
                    count += 1
        i += 1
    return children[:count], parents[:count], i
