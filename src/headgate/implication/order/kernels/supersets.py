"""Find the products that contain a hull, by bitmaps.

`s` is a `SupersetTable`, which describes its arrays. Product j has bit j: bit `j & 63` of word
`j >> 6`. Loops over words run from `begin`, before which no answer can be.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, lowest_bit, plain_kernel


@kernel
def find_sides_without(hulls, cells):
    """Return for each side whether it lacks the cell of its column; all lack the cell -1."""
    is_without = np.ones(len(hulls.column), np.bool_)
    for side in range(len(hulls.column)):
        # The ranges of a side are few, so they are simply looked at in order.
        cell = cells[hulls.column[side]]
        for at in range(hulls.first[side], hulls.last[side]):
            if hulls.lows[at] <= cell < hulls.highs[at]:
                is_without[side] = False
    return is_without


@plain_kernel
def set_bits_by_cell(kept, rows, hulls, sides, owner, count):
    """Set in row `rows` + x the bits of the owners of the sides that do not have cell x."""
    for side in sides:
        at = hulls.first[side]
        place = owner[side]
        # Ranges and cells both ascend, so one pass over the ranges serves all cells.
        for cell in range(count):
            while at < hulls.last[side] and hulls.highs[at] <= cell:
                at += 1
            if at == hulls.last[side] or cell < hulls.lows[at]:
                kept[rows + cell, place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@plain_kernel
def set_bits(bits, places):
    """Set the bits at these places."""
    for place in places:
        bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@plain_kernel
def set_bits_in_rows(bits, rows, places):
    """Set a bit in each of these rows."""
    for at in range(len(rows)):
        bits[rows[at], places[at] >> 6] |= np.uint64(1) << np.uint64(places[at] & 63)


@inlined_kernel
def _join(out, begin, rows, row):
    """Add the products of a row of bits, from the word `begin` on."""
    for w in range(begin, len(out)):
        out[w] |= rows[row, w]


@inlined_kernel
def _join_tree(out, begin, trees, tree, low, high):
    """Add the products that have a side in a column from `low` up to before `high`."""
    # A segment tree over columns in one array: node n has the children 2n and 2n + 1, and the
    # leaves begin at `count`. A range is the OR of at most two nodes per level.
    count = trees.shape[1] // 2
    left, right = low + count, high + count
    while left < right:
        # A right child at the left end, or a left child at the right end, is taken by itself.
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
    """Return whether hull `inner` is inside hull `outer`.

    In columns where `inner` has no side it has the cells `free`.
    """
    is_inside = True
    inner_side, end = hulls.offsets[inner], hulls.offsets[inner + 1]
    side = hulls.offsets[outer]
    # The sides of both hulls ascend by column, so they are merged.
    while is_inside and side < hulls.offsets[outer + 1]:
        column = hulls.column[side]
        while inner_side < end and hulls.column[inner_side] < column:
            inner_side += 1
        at, last = hulls.first[side], hulls.last[side]
        if inner_side < end and hulls.column[inner_side] == column:
            # Each range of the inner side must lie in one range of the outer side.
            part = hulls.first[inner_side]
            while is_inside and part < hulls.last[inner_side]:
                while at < last and hulls.highs[at] < hulls.highs[part]:
                    at += 1
                is_inside = at < last and hulls.lows[at] <= hulls.lows[part]
                part += 1
        else:
            is_inside = False
            while at < last:
                is_inside |= hulls.lows[at] <= free[column] < hulls.highs[at]
                at += 1
        side += 1
    return is_inside


@plain_kernel
def find_supersets(s, i, tree, out, begin, among, among_at):
    """Write the products that contain hull i into `out`, from word `begin` on.

    Columns without a side have the cell `s.free[tree]`; for tree 0, all cells. Word w of the answer
    is restricted to the bits of word `among_at[w]` of `among`. What `out` held is overwritten.
    """
    # First collect in `out` the products that do *not* contain the hull.
    for w in range(begin, len(out)):
        out[w] = 0
    next_column = 0
    for side in range(s.hulls.offsets[i], s.hulls.offsets[i + 1]):
        column = s.hulls.column[side]
        # Products with a side in a column in which the hull has none.
        _join_tree(out, begin, s.trees, tree, next_column, column)
        next_column = column + 1
        if s.cells[column] >= 0:
            # Few cells: products that lack one of the hull's cells.
            for at in range(s.hulls.first[side], s.hulls.last[side]):
                for cell in range(s.hulls.lows[at], s.hulls.highs[at]):
                    _join(out, begin, s.kept, s.cells[column] + cell)
            continue
        # Many cells: products that begin later, then those that end earlier. The bitmap of the
        # last step, and the rest one by one.
        for end in range(2):
            if s.row[end, side] >= 0:
                _join(out, begin, s.kept, s.row[end, side])
            for at in range(s.start[end, side], s.stop[end, side]):
                place = s.order[at]
                out[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    _join_tree(out, begin, s.trees, tree, next_column, s.trees.shape[1] // 2)
    # The others contain it, except that sides with gaps have to be compared range by range.
    for w in range(begin, len(out)):
        out[w] = among[among_at[w]] & ~out[w]
        doubtful = out[w] & s.gaps[w]
        while doubtful:
            bit = lowest_bit(doubtful)
            doubtful &= doubtful - np.uint64(1)
            if not _contains(s.hulls, 64 * w + bit, i, s.free[tree]):
                out[w] &= ~(np.uint64(1) << np.uint64(bit))
