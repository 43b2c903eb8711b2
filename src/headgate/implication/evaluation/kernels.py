"""Kernels that turn values into cells, and decide by a row's cells whether it is in a box.

**Cells.** The cell of a value is one more than the number of cuts that are not above it. Cuts lie
in buckets of equal width, and `first[b]` of them in the buckets before b, so that a value's bucket
leaves few cuts to compare it with: `steps` halvings, most often of nothing. Bucket 0 is for values
below all cuts, which are many, so that the processor predicts how a comparison ends; a wrong
prediction takes longer than the comparison. `cuts` has a filler in front: a search may look one
place too low.

**Rows.** `cells[k, r]` is the cell of row r in dimension k, and `mask[r]` is the answer; `cells`
may have room for more rows than `mask`. All loads are unchecked: cells must be cells of the space.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked, lowest_bit, plain_kernel


@inlined_kernel
def count_cuts_up_to(cuts, first, bucket, steps, value):
    """Count the cuts that are not above a value of this bucket."""
    base = np.int64(load_unchecked(first, bucket))
    left = np.int64(load_unchecked(first, bucket + 1)) - base
    # The same number of halvings for every value, without a branch in them.
    for _ in range(steps):
        half = (left + 1) >> 1
        base += half if load_unchecked(cuts, base + half) <= value else 0
        left -= half
    return base


@inlined_kernel
def bucket_of_integer(value, least, most, shift):
    """Return the bucket of an integer, where cuts are from `least` to `most`."""
    inside = min(max(value, least), most)
    return np.int64(value >= least) * (1 + (inside >> shift) - (least >> shift))


@inlined_kernel
def bucket_of_double(value, least, scale, last):
    """Return the bucket of a double that is not NaN."""
    place = (value - least) * scale + 1.0
    place = place if place > 0 else 0.0
    return np.int64(place if place < last else last)


@kernel
def bucket_integers(values, least, most, shift):
    """Return the bucket of each integer."""
    buckets = np.empty(len(values), np.int64)
    for i in range(len(values)):
        buckets[i] = bucket_of_integer(np.int64(values[i]), least, most, shift)
    return buckets


@kernel
def bucket_doubles(values, least, scale, last):
    """Return the bucket of each double."""
    buckets = np.empty(len(values), np.int64)
    for i in range(len(values)):
        buckets[i] = bucket_of_double(values[i], least, scale, last)
    return buckets


@plain_kernel
def encode_integers(values, cuts, first, steps, least, most, shift, cells):
    """Write the cell of each integer; of those that are NULL, any."""
    for i in range(len(values)):
        value = np.int64(values[i])
        bucket = bucket_of_integer(value, least, most, shift)
        cells[i] = count_cuts_up_to(cuts, first, bucket, steps, value) + 1


@plain_kernel
def encode_doubles(values, cuts, first, steps, least, scale, last, nan, cells):
    """Write the cell of each double; NaN has the cell `nan`, its own or the last one."""
    for i in range(len(values)):
        value = values[i]
        # NaN goes through the search like any value, which is faster than a branch around it.
        bucket = bucket_of_double(value, least, scale, last)
        cell = count_cuts_up_to(cuts, first, bucket, steps, value) + 1
        cells[i] = nan if np.isnan(value) else cell


@plain_kernel
def filter_row_by_row(cells, start, dimension, low, high, mask):
    """Compare each row with one box after the other: standard evaluation.

    "Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", Algorithms 5 and
    13, where an absent value must fail. The sides of box i are `start[i]` up to `start[i + 1]`: the
    first that fails ends the box, and the first box that holds ends the row.
    """
    # Row r of dimension k is `flat[k * width + r]`.
    flat, width = cells.reshape(-1), np.int64(cells.shape[1])
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
    """Compare a block of rows at a time with one box after the other.

    A box ends when no row of the block is in it, and the block when all its rows are in a box.
    """
    # `inside`: is each row of the block inside the box, in the dimensions so far?
    inside = np.empty(block, np.bool_)
    for begin in range(0, len(mask), block):
        result = mask[begin : begin + block]
        size = len(result)
        result[:] = False
        for box in range(len(start) - 1):
            inside[:] = True
            for side in range(start[box], start[box + 1]):
                column, left = cells[dimension[side], begin : begin + size], False
                # One unsigned comparison instead of two, and no branch, so that it vectorises.
                least, span = low[side], np.uint32(high[side] - low[side])
                for i in range(size):
                    inside[i] &= np.uint32(column[i] - least) < span
                    left |= inside[i]
                if not left:
                    break
            # A block in which every row has found its box needs no other box.
            missing = False
            for i in range(size):
                result[i] |= inside[i]
                missing |= not result[i]
            if not missing:
                break


@kernel
def filter_by_bitmaps(cells, begin, group, bits, summary, coarse, low, high, mask):
    """Decide by bitmaps: boxes that may hold a row are the AND over its cells' bitmaps.

    Cell c of dimension k has row `group[begin[k] + c]` of `bits`, which is the last one where no
    box has the cell. Bit w of a row of `summary` says that word w of that row is not 0. In the
    dimensions `coarse` several cells share a bitmap, so there a box is compared in the end. Boxes
    are in the order of their bits.
    """
    # Flat views for unchecked loads; `at[k]` is the row's bitmap in dimension k.
    flat, width, d = cells.ravel(), np.int64(cells.shape[1]), cells.shape[0]
    words, heads = np.int64(bits.shape[1]), np.int64(summary.shape[1])
    words_of, heads_of = bits.ravel(), summary.ravel()
    lows, highs = low.ravel(), high.ravel()
    at, nothing = np.empty(d, np.int64), bits.shape[0] - 1
    for row in range(len(mask)):
        possible = True
        for k in range(d):  # to the end: leaving early was slower, being hard to predict
            cell = load_unchecked(flat, k * width + row)
            at[k] = load_unchecked(group, load_unchecked(begin, k) + cell)
            possible &= at[k] != nothing
        # 64 words at a time by their summary, then word by word, then box by box.
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
                    # Only shared bitmaps can let a box through that does not hold the row.
                    inside, c = True, np.int64(0)
                    while inside and c < len(coarse):
                        k = np.int64(load_unchecked(coarse, c))
                        cell = load_unchecked(flat, k * width + row)
                        inside = load_unchecked(lows, box * d + k) <= cell
                        inside &= cell < load_unchecked(highs, box * d + k)
                        c += 1
            h += 1
        mask[row] = inside


@plain_kernel
def fill_bitmaps(begin, group, low, high, bits):
    """Set the bit of every box in the rows of its cells, which are consecutive."""
    for box in range(low.shape[0]):
        word, bit = box // 64, np.uint64(1) << np.uint64(box % 64)
        for k in range(low.shape[1]):
            # Groups ascend with the cells, so those of a side are a range, too.
            first, last = group[begin[k] + low[box, k]], group[begin[k] + high[box, k] - 1]
            for row in range(first, last + 1):
                bits[row, word] |= bit
