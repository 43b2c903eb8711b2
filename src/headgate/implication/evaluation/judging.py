"""Kernels that judge rows by their cells: is a row in any of the boxes?

`cells[k, r]` is the cell of row r in dimension k, and `mask[r]` is to be the answer; there may be
room for more rows in `cells` than there are in `mask`. All loads are unchecked: cells must be such
as the space has.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, load_unchecked, lowest_bit


@kernel
def filter_row_by_row(cells, start, dimension, low, high, mask):
    """Standard evaluation ("Matching and Evaluation of Disjunctive Predicates for Data Stream
    Sharing", Algorithms 5 and 13, where an absent value must fail).

    The sides of box i are from `start[i]` up to `start[i + 1]`; the first that fails ends the box,
    and the first box that holds ends the row.
    """
    flat, width = cells.ravel(), np.int64(cells.shape[1])
    boxes = len(start) - 1
    for row in range(len(mask)):
        box, inside = np.int64(0), False
        while not inside and box < boxes:
            side, end = load_unchecked(start, box), load_unchecked(start, box + 1)
            inside = True
            while inside and side < end:
                cell = load_unchecked(flat, load_unchecked(dimension, side) * width + row)
                inside = (load_unchecked(low, side) <= cell) & (cell < load_unchecked(high, side))
                side += 1
            box += 1
        mask[row] = inside


@kernel
def filter_by_blocks(cells, start, dimension, low, high, block, mask):
    """The same for a block of rows at a time, box by box and side by side without branches: a box
    ends when no row is in it, and the block when all rows are inside."""
    inside = np.empty(block, np.bool_)
    for begin in range(0, len(mask), block):
        found = mask[begin : begin + block]
        size = len(found)
        found[:] = False
        for box in range(len(start) - 1):
            inside[:] = True
            for side in range(start[box], start[box + 1]):
                mine, left = cells[dimension[side], begin : begin + size], False
                least, span = low[side], np.uint32(high[side] - low[side])
                for i in range(size):
                    inside[i] &= np.uint32(mine[i] - least) < span
                    left |= inside[i]
                if not left:
                    break
            missing = False
            for i in range(size):
                found[i] |= inside[i]
                missing |= not found[i]
            if not missing:
                break


@kernel
def filter_by_bitmaps(cells, begin, group, bits, summary, coarse, low, high, mask):
    """Boxes that may hold a row are the AND over the dimensions of what its cell has there.

    Cell c of dimension k has row `group[begin[k] + c]` of the bitmaps, which is the last one where
    no box has it. Bit w of `summary` says that word w is not 0. In the dimensions `coarse` cells
    share a bitmap, so there a box is compared in the end. Boxes are in the order of their bits.
    """
    flat, width, d = cells.ravel(), np.int64(cells.shape[1]), cells.shape[0]
    words, heads = np.int64(bits.shape[1]), np.int64(summary.shape[1])
    words_of, heads_of = bits.ravel(), summary.ravel()
    lows, highs = low.ravel(), high.ravel()
    at, nothing = np.empty(d, np.int64), bits.shape[0] - 1
    for row in range(len(mask)):
        possible = True
        for k in range(d):  # to the end: that is faster than to foresee where it could end
            cell = load_unchecked(flat, k * width + row)
            at[k] = load_unchecked(group, load_unchecked(begin, k) + cell)
            possible &= at[k] != nothing
        inside, h = False, np.int64(0)
        while possible and h < heads and not inside:
            head = load_unchecked(heads_of, at[0] * heads + h)
            for k in range(1, d):
                head &= load_unchecked(heads_of, at[k] * heads + h)
            while head != 0 and not inside:
                w = 64 * h + lowest_bit(head)
                head &= head - np.uint64(1)
                word = load_unchecked(words_of, at[0] * words + w)
                for k in range(1, d):
                    word &= load_unchecked(words_of, at[k] * words + w)
                while word != 0 and not inside:
                    box = 64 * w + lowest_bit(word)
                    word &= word - np.uint64(1)
                    inside, c = True, np.int64(0)
                    while inside and c < len(coarse):
                        k = np.int64(load_unchecked(coarse, c))
                        cell = load_unchecked(flat, k * width + row)
                        inside = load_unchecked(lows, box * d + k) <= cell
                        inside &= cell < load_unchecked(highs, box * d + k)
                        c += 1
            h += 1
        mask[row] = inside


@kernel
def fill_bitmaps(begin, group, low, high, bits):
    """Set the bit of every box in the rows of its cells, which are consecutive."""
    for box in range(low.shape[0]):
        word, bit = box // 64, np.uint64(1) << np.uint64(box % 64)
        for k in range(low.shape[1]):
            first, last = group[begin[k] + low[box, k]], group[begin[k] + high[box, k] - 1]
            for row in range(first, last + 1):
                bits[row, word] |= bit
