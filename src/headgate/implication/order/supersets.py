"""A table that tells for each product which products contain it: an AND NOT of bitmaps per side.

A product does not contain another if in some column it begins later, or ends earlier, or has a side
where the other has none. Sorted by where they begin in a column, the products that begin later are
a prefix; its bitmap is kept at every `STEP`-th, and the rest are set one by one. Which products
have a side in a range of columns is read off a tree of ORs. So 100,000 products take 100,000²/64
words for each side of a product, in all, whatever the products are.

These bitmaps see the lowest and the highest cell of a side. Where sides of a column have gaps and
it has few cells, there is one bitmap for each cell instead; where it has many, pairs are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.implication.order.kernels.supersets import (
    find_sides_without,
    set_bits,
    set_bits_by_cell,
    set_bits_in_rows,
)
from headgate.implication.order.products import Numbers, Products

STEP = 512
MAX_BITMAP_BYTES = 1 << 28  # of all sides, before steps become longer
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
    Products with the bits `gaps` have a side of several ranges that no cell bitmap describes.
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


def build_superset_table(hulls: Products, size: int, free: Numbers) -> SupersetTable:
    """Build the table; the first `size` hulls are products that may contain the others."""
    words = (size + 63) // 64
    owner = hulls.owner
    has_bit = owner < size
    step = STEP
    # Two bitmaps of `words` words for every `step` sides: longer steps until they fit.
    while 16 * words * (has_bit.sum() // step + hulls.columns) > MAX_BITMAP_BYTES and step < size:
        step *= 2
    low, high = hulls.low, hulls.high
    # Columns with few cells, and gaps in a side, have a bitmap for each cell.
    has_gaps = has_bit & (hulls.last - hulls.first > 1)
    by_cell = hulls.top <= MAX_CELL_BITMAPS
    by_cell &= np.bincount(hulls.column[has_gaps], minlength=hulls.columns) > 0
    # (2, sides): by end and side, the bitmap row and the rest of the order behind it.
    row, start, stop = (np.zeros((2, len(owner)), np.int64) for _ in range(3))
    row -= 1
    orders: list[Numbers] = []
    rows = places = 0
    by_column = _group_by_column(hulls)
    # All others: for both ends of each column, products in the order of that end. `before` counts
    # for each side the products that rule themselves out.
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
    cells = np.full(hulls.columns, -1, np.int64)
    kept = np.zeros((rows + int(hulls.top[by_cell].sum()), words), np.uint64)
    _fill_prefixes(kept, orders, step)
    for column in np.flatnonzero(by_cell).tolist():
        cells[column] = rows
        sides = by_column[column]
        set_bits_by_cell(kept, rows, hulls, sides[has_bit[sides]], owner, hulls.top[column])
        rows += hulls.top[column]
    gaps = np.zeros(words, np.uint64)
    set_bits(gaps, owner[has_gaps & ~by_cell[hulls.column]])
    return SupersetTable(
        size,
        hulls,
        row,
        start,
        stop,
        np.concatenate([np.zeros(0, np.int64), *orders]),
        cells,
        kept,
        _build_trees(hulls, owner, has_bit, free, words),
        free,
        gaps,
    )


def _group_by_column(hulls: Products) -> list[Numbers]:
    """Return the sides of each column."""
    if not hulls.columns:
        return []
    # Sides sorted by column, split where the column changes.
    order = np.argsort(hulls.column, kind="stable")
    return np.split(order, np.searchsorted(hulls.column[order], np.arange(1, hulls.columns)))


def _fill_prefixes(kept: Words, orders: list[Numbers], step: int) -> None:
    """Write the bitmaps of the first 0, `step`, 2 · `step`, … of each order."""
    at = 0
    for order in orders:
        for start in range(0, len(order) + 1, step):
            # Each bitmap is the one before it and the next `step` products.
            if start:
                kept[at] = kept[at - 1]
                set_bits(kept[at], order[start - step : start])
            at += 1


def _build_trees(
    hulls: Products, owner: Numbers, has_bit: Flags, free: Numbers, words: int
) -> Words:
    """Build a tree of ORs over columns for each row of `free`: leaves first, then their parents."""
    trees = np.zeros((len(free), 2 * hulls.columns, words), np.uint64)
    for tree, cells in zip(trees, free, strict=True):
        chosen = np.flatnonzero(has_bit & find_sides_without(hulls, cells))
        set_bits_in_rows(tree, hulls.columns + hulls.column[chosen], owner[chosen])
        # Node n is the OR of 2n and 2n + 1; leaves begin at `columns`.
        for node in range(hulls.columns - 1, 0, -1):
            np.bitwise_or(tree[2 * node], tree[2 * node + 1], out=tree[node])
    return trees
