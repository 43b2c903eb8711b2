"""For each product the products that contain it: one AND NOT of bitmaps for each of its sides.

A product does not contain another if in some column it begins later, or ends earlier, or has a side
where the other has none. Sorted by where they begin in a column, the products that begin later are
the first so many; their bitmap is kept for every `STEP`-th, and the rest are set one by one. Which
products have a side in a range of columns is read off a tree of ORs. So 100,000 products take
100,000²/64 words for each side of a product, in all, whatever the products are.

These bitmaps see the lowest and the highest cell of a side. Where sides of a column have gaps and
it has few cells, there is one for each cell instead; where it has many, each pair is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.products import Numbers, Products
from headgate.jit import inlined_kernel, kernel, lowest_bit

STEP = 512
MAX_BITMAP_BYTES = 1 << 28  # bytes that the bitmaps of a side may take, before steps become longer
MAX_CELL_BITMAPS = 64

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


class SupersetTable(NamedTuple):
    """What a kernel needs to find the products that contain a hull.

    Hull j is a product with bit j if j < `size`. Products that begin later than side s does are the
    bits in row `row[0, s]` of `kept`, none if that is -1, and those in `order` from `start[0, s]`
    up to before `stop[0, s]`. `row[1]`, … are about products that end earlier. If `cells[c]` is not
    -1, then the products that have a side in column c without cell x are row `cells[c] + x` of
    `kept`. `trees[0]` is about all sides, `trees[f]` about sides without the cell `free[f, c]`.
    """

    size: int
    hulls: Products
    row: Numbers
    start: Numbers
    stop: Numbers
    order: Numbers
    cells: Numbers
    kept: Words
    trees: Words
    free: Numbers
    gaps: Words


def build_superset_table(found: Products, size: int, free: Numbers) -> SupersetTable:
    """The first `size` hulls are products, and may contain the others and each other."""
    words = (size + 63) // 64
    owner = found.owner
    has_bit = owner < size
    step = STEP
    while 16 * words * (has_bit.sum() // step + found.columns) > MAX_BITMAP_BYTES and step < size:
        step *= 2
    low, high = found.low, found.high
    has_gaps = has_bit & (found.last - found.first > 1)
    by_cell = found.top <= MAX_CELL_BITMAPS
    by_cell &= np.bincount(found.column[has_gaps], minlength=found.columns) > 0
    row, start, stop = (np.zeros((2, len(owner)), np.int64) for _ in range(3))
    row -= 1
    orders: list[Numbers] = []
    rows = places = 0
    by_column = _by_column(found)
    for end, cell in enumerate((-low, high)):
        for column, sides in enumerate(by_column):
            if by_cell[column]:
                continue
            entries = sides[has_bit[sides]]
            entries = entries[np.argsort(cell[entries], kind="stable")]
            before = np.searchsorted(cell[entries], cell[sides])
            row[end, sides] = np.where(before < step, -1, rows + before // step)
            start[end, sides] = places + before // step * step
            stop[end, sides] = places + before
            orders.append(owner[entries])
            rows += len(entries) // step + 1
            places += len(entries)
    cells = np.full(found.columns, -1, np.int64)
    kept = np.zeros((rows + int(found.top[by_cell].sum()), words), np.uint64)
    _keep(kept, orders, step)
    for column in np.flatnonzero(by_cell).tolist():
        cells[column] = rows
        sides = by_column[column]
        set_bits_by_cell(kept, rows, found, sides[has_bit[sides]], owner, found.top[column])
        rows += found.top[column]
    gaps = np.zeros(words, np.uint64)
    _set(gaps, owner[has_gaps & ~by_cell[found.column]])
    return SupersetTable(
        size,
        found,
        row,
        start,
        stop,
        np.concatenate([np.zeros(0, np.int64), *orders]),
        cells,
        kept,
        _trees(found, owner, has_bit, free, words),
        free,
        gaps,
    )


def _by_column(found: Products) -> list[Numbers]:
    """The sides of each column."""
    if not found.columns:
        return []
    order = np.argsort(found.column, kind="stable")
    return np.split(order, np.searchsorted(found.column[order], np.arange(1, found.columns)))


def _keep(kept: Words, orders: list[Numbers], step: int) -> None:
    """The bitmap of the first 0, `step`, 2 · `step`, … of each order."""
    at = 0
    for order in orders:
        for start in range(0, len(order) + 1, step):
            if start:
                kept[at] = kept[at - 1]
                _set(kept[at], order[start - step : start])
            at += 1


def _trees(found: Products, owner: Numbers, has_bit: Flags, free: Numbers, words: int) -> Words:
    trees = np.zeros((len(free), 2 * found.columns, words), np.uint64)
    for tree, cells in zip(trees, free, strict=True):
        chosen = np.flatnonzero(has_bit & find_sides_without(found, cells))
        set_in_rows(tree, found.columns + found.column[chosen], owner[chosen])
        for node in range(found.columns - 1, 0, -1):
            np.bitwise_or(tree[2 * node], tree[2 * node + 1], out=tree[node])
    return trees


@kernel
def find_sides_without(hulls, cells):
    """The sides that do not have the cell of their column; of no cell, -1, all."""
    found = np.ones(len(hulls.column), np.bool_)
    for side in range(len(hulls.column)):
        cell = cells[hulls.column[side]]
        for at in range(hulls.first[side], hulls.last[side]):
            if hulls.lows[at] <= cell < hulls.highs[at]:
                found[side] = False
    return found


@kernel
def set_bits_by_cell(kept, rows, hulls, sides, owner, count):
    """Set in row `rows` + x the owners of the sides that do not have cell x."""
    for side in sides:
        at = hulls.first[side]
        place = owner[side]
        for cell in range(count):
            while at < hulls.last[side] and hulls.highs[at] <= cell:
                at += 1
            if at == hulls.last[side] or cell < hulls.lows[at]:
                kept[rows + cell, place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@kernel
def _set(bits, places):
    for place in places:
        bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@kernel
def set_in_rows(bits, rows, places):
    for at in range(len(rows)):
        bits[rows[at], places[at] >> 6] |= np.uint64(1) << np.uint64(places[at] & 63)


@inlined_kernel
def _join(out, begin, rows, row):
    for w in range(begin, len(out)):
        out[w] |= rows[row, w]


@inlined_kernel
def _join_tree(out, begin, trees, tree, low, high):
    """The products that have a side in a column from `low` up to before `high`."""
    count = trees.shape[1] // 2
    left, right = low + count, high + count
    while left < right:
        if left & 1:
            for w in range(begin, len(out)):
                out[w] |= trees[tree, left, w]
            left += 1
        if right & 1:
            right -= 1
            for w in range(begin, len(out)):
                out[w] |= trees[tree, right, w]
        left >>= 1
        right >>= 1


@inlined_kernel
def _contains(hulls, outer, inner, free):
    """Is hull `inner` inside hull `outer`, if it has these cells in columns without a side?"""
    found = True
    mine, end = hulls.offsets[inner], hulls.offsets[inner + 1]
    side = hulls.offsets[outer]
    while found and side < hulls.offsets[outer + 1]:
        column = hulls.column[side]
        while mine < end and hulls.column[mine] < column:
            mine += 1
        at, last = hulls.first[side], hulls.last[side]
        if mine < end and hulls.column[mine] == column:
            part = hulls.first[mine]
            while found and part < hulls.last[mine]:
                while at < last and hulls.highs[at] < hulls.highs[part]:
                    at += 1
                found = at < last and hulls.lows[at] <= hulls.lows[part]
                part += 1
        else:
            found = False
            while at < last:
                found |= hulls.lows[at] <= free[column] < hulls.highs[at]
                at += 1
        side += 1
    return found


@kernel
def find_supersets(s, i, tree, out, begin, among, among_at):
    """The products that contain hull i, from word `begin` on; what `out` held there is lost.

    Columns without a side have the cell `s.free[tree]`; for tree 0, all cells. Word w of the answer
    is among the bits of word `among_at[w]` of `among`.
    """
    for w in range(begin, len(out)):
        out[w] = 0
    next_column = 0
    for side in range(s.hulls.offsets[i], s.hulls.offsets[i + 1]):
        column = s.hulls.column[side]
        _join_tree(out, begin, s.trees, tree, next_column, column)
        next_column = column + 1
        if s.cells[column] >= 0:
            for at in range(s.hulls.first[side], s.hulls.last[side]):
                for cell in range(s.hulls.lows[at], s.hulls.highs[at]):
                    _join(out, begin, s.kept, s.cells[column] + cell)
            continue
        for end in range(2):
            if s.row[end, side] >= 0:
                _join(out, begin, s.kept, s.row[end, side])
            for at in range(s.start[end, side], s.stop[end, side]):
                place = s.order[at]
                out[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    _join_tree(out, begin, s.trees, tree, next_column, s.trees.shape[1] // 2)
    for w in range(begin, len(out)):
        out[w] = among[among_at[w]] & ~out[w]
        doubtful = out[w] & s.gaps[w]
        while doubtful:
            bit = lowest_bit(doubtful)
            doubtful &= doubtful - np.uint64(1)
            if not _contains(s.hulls, 64 * w + bit, i, s.free[tree]):
                out[w] &= ~(np.uint64(1) << np.uint64(bit))
