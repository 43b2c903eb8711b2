"""For each product the products that contain it: one AND NOT of bitmaps for each of its sides.

Bit j is product j, in an order in which whatever contains a product comes after it. A product does
not contain another if in some column it begins later, or ends earlier, or has a side where the
other has none. Sorted by where they begin in a column, the products that begin later are the first
so many; their bitmap is kept for every `STEP`-th, and the rest are set one by one. Which products
have a side in a range of columns is read off a tree of ORs. So 100,000 products take 100,000²/64
words for each side of a product, in all, whatever the products are.

Bitmaps see the lowest and the highest cell of a side. Where the side of the larger product has gaps
besides, each pair is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.inside import contains
from headgate.implication.order.products import Numbers, Products
from headgate.matching.keyed.compiled import kernel, part_of_kernel
from headgate.matching.keyed.intrinsics import lowest_bit

STEP = 512
ROOM = 1 << 28  # bytes that the bitmaps of a side may take, before steps become longer

Words = npt.NDArray[np.uint64]


class Supersets(NamedTuple):
    """What a kernel needs to find the products that contain a hull.

    The first `size` hulls are products, by `excluded` from the most to the least, and have a bit.
    The first that can contain hull i is `begin[i]`. Products that begin later than side s does are
    the bits in row `row[0, s]` of `kept`, none if that is -1, and those in `order` from
    `start[0, s]` up to before `stop[0, s]`. `row[1]`, … are about products that end earlier.
    """

    size: int
    hulls: Products
    begin: Numbers
    row: Numbers
    start: Numbers
    stop: Numbers
    order: Numbers
    kept: Words
    tree: Words
    gaps: Words


def supersets(found: Products, size: int) -> Supersets:
    """The first `size` hulls are products, and may contain the others and each other."""
    words = (size + 63) // 64
    owner = found.owner
    has_bit = owner < size
    step = STEP
    while 16 * words * (has_bit.sum() // step + found.columns) > ROOM and step < size:
        step *= 2
    row, start, stop = (np.zeros((2, len(owner)), np.int64) for _ in range(3))
    orders: list[Numbers] = []
    rows = places = 0
    for end, cell in enumerate((-found.low, found.high)):
        for sides in _by_column(found):
            entries = sides[has_bit[sides]]
            entries = entries[np.argsort(cell[entries], kind="stable")]
            before = np.searchsorted(cell[entries], cell[sides])
            row[end, sides] = np.where(before < step, -1, rows + before // step)
            start[end, sides] = places + before // step * step
            stop[end, sides] = places + before
            orders.append(owner[entries])
            rows += len(entries) // step + 1
            places += len(entries)
    tree = np.zeros((2 * found.columns, words), np.uint64)
    gaps = np.zeros(words, np.uint64)
    _set(gaps, owner[has_bit & (found.last - found.first > 1)])
    set_in_rows(tree, found.columns + found.column[has_bit], owner[has_bit])
    for node in range(found.columns - 1, 0, -1):
        np.bitwise_or(tree[2 * node], tree[2 * node + 1], out=tree[node])
    return Supersets(
        size,
        found,
        np.searchsorted(-found.excluded[:size], -found.excluded),
        row,
        start,
        stop,
        np.concatenate([np.zeros(0, np.int64), *orders]),
        _kept(orders, rows, words, step),
        tree,
        gaps,
    )


def _by_column(found: Products) -> list[Numbers]:
    """The sides of each column."""
    order = np.argsort(found.column, kind="stable")
    return np.split(order, np.searchsorted(found.column[order], np.arange(1, found.columns)))


def _kept(orders: list[Numbers], rows: int, words: int, step: int) -> Words:
    """The bitmap of the first 0, `step`, 2 · `step`, … of each order."""
    kept = np.zeros((rows, words), np.uint64)
    at = 0
    for order in orders:
        for start in range(0, len(order) + 1, step):
            if start:
                kept[at] = kept[at - 1]
                _set(kept[at], order[start - step : start])
            at += 1
    return kept


@kernel
def _set(bits, places):
    for place in places:
        bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@kernel
def set_in_rows(bits, rows, places):
    for at in range(len(rows)):
        bits[rows[at], places[at] >> 6] |= np.uint64(1) << np.uint64(places[at] & 63)


@part_of_kernel
def _join(out, begin, rows, row):
    for w in range(begin, len(out)):
        out[w] |= rows[row, w]


@part_of_kernel
def _join_tree(out, begin, tree, low, high):
    """The products that have a side in a column from `low` up to before `high`."""
    count = len(tree) // 2
    left, right = low + count, high + count
    while left < right:
        if left & 1:
            _join(out, begin, tree, left)
            left += 1
        if right & 1:
            right -= 1
            _join(out, begin, tree, right)
        left >>= 1
        right >>= 1


@kernel
def fill_supersets(s, i, out, begin, among):
    """The products of `among` that contain hull i and are not it, from word `begin` on.

    What `out` held in these words is lost.
    """
    for w in range(begin, len(out)):
        out[w] = 0
    free = 0
    for side in range(s.hulls.offsets[i], s.hulls.offsets[i + 1]):
        _join_tree(out, begin, s.tree, free, s.hulls.column[side])
        free = s.hulls.column[side] + 1
        for end in range(2):
            if s.row[end, side] >= 0:
                _join(out, begin, s.kept, s.row[end, side])
            for at in range(s.start[end, side], s.stop[end, side]):
                place = s.order[at]
                out[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    _join_tree(out, begin, s.tree, free, len(s.tree) // 2)
    for w in range(begin, len(out)):
        out[w] = among[w] & ~out[w]
    if i < s.size:
        out[i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))
    for w in range(begin, len(out)):
        doubtful = out[w] & s.gaps[w]
        while doubtful:
            bit = lowest_bit(doubtful)
            doubtful &= doubtful - np.uint64(1)
            if not contains(s.hulls, 64 * w + bit, i):
                out[w] &= ~(np.uint64(1) << np.uint64(bit))
