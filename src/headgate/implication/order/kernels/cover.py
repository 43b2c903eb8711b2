"""Decide whether a union of products covers a product, exactly, whatever gaps their sides have.

In each column every cell of the product lies in some of the union's parts: a word with a bit for
each. Cells that lie in the same parts are alike, and one that lies in fewer is harder to cover. So
a column is the few words that contain no other, and the product is covered if every choice of one
word from each column shares a part. The search takes column after column and ends a branch once a
part that is still shared holds all cells of the columns that are left.

`hulls` are `Products`, which describes the arrays.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, plain_kernel

COVERED = 0
UNCOVERED = 1
UNDECIDED = 2  # past the budget

MAX_STEPS = 100_000
MAX_WORDS = 4096  # of all columns
MAX_COLUMNS = 256


@inlined_kernel
def side_in(hulls, hull, column):
    """Return the side of a hull in a column, or -1."""
    # Linear: a query mentions few columns.
    low, high = hulls.offsets[hull], hulls.offsets[hull + 1]
    result = np.int64(-1)
    for side in range(low, high):
        if hulls.column[side] == column:
            result = side
            break
    return result


@inlined_kernel
def _overlap(hulls, hull, other):
    """Return whether two hulls have a row in common."""
    # Sides ascend by column in both hulls, and ranges within a side, so both are merged.
    meets = True
    hull_side, end = hulls.offsets[hull], hulls.offsets[hull + 1]
    side = hulls.offsets[other]
    while meets and side < hulls.offsets[other + 1]:
        while hull_side < end and hulls.column[hull_side] < hulls.column[side]:
            hull_side += 1
        if hull_side < end and hulls.column[hull_side] == hulls.column[side]:
            a, b = hulls.first[hull_side], hulls.first[side]
            meets = False
            while not meets and a < hulls.last[hull_side] and b < hulls.last[side]:
                meets = hulls.lows[a] < hulls.highs[b] and hulls.lows[b] < hulls.highs[a]
                # The range that ends first meets no later range of the other side.
                if hulls.highs[a] < hulls.highs[b]:
                    a += 1
                else:
                    b += 1
        side += 1
    return meets


@plain_kernel
def _fill_words(hulls, inner, column, only, union, count, words, begin):
    """Write the words of a column that contain no other, from `begin` on; return where they end.

    The end is -1 if there is no room. `union` are the hulls of the bits. If `only` is not -1, and
    the inner hull has no side here, then no other cell counts.
    """
    inner_side = side_in(hulls, inner, column)
    ranges = 1 if inner_side < 0 else hulls.last[inner_side] - hulls.first[inner_side]
    end = begin
    # The inner side range by range; without a side it is all cells of the column.
    for number in range(ranges):
        if inner_side < 0 and only >= 0:
            cell, stop = only, only + 1
        elif inner_side < 0:
            cell, stop = hulls.bottom[column], hulls.top[column]
        else:
            at = hulls.first[inner_side] + number
            cell, stop = hulls.lows[at], hulls.highs[at]
        # From `cell` up to before `change` all cells lie in the same parts.
        while cell < stop:
            word, change = np.uint64(0), stop
            for bit in range(count):
                side = side_in(hulls, union[bit], column)
                # A part without a side in this column holds all of its cells.
                inside = side < 0
                if side >= 0:
                    for at in range(hulls.first[side], hulls.last[side]):
                        if hulls.lows[at] > cell:
                            change = min(change, hulls.lows[at])
                            break
                        if cell < hulls.highs[at]:
                            inside = True
                            change = min(change, hulls.highs[at])
                            break
                if inside:
                    word |= np.uint64(1) << np.uint64(bit)
            cell = change
            # Keep the word if it contains no other, and drop those that contain it.
            is_new = True
            for at in range(begin, end):
                is_new &= words[at] & ~word != np.uint64(0)
            if is_new:
                kept = begin
                for at in range(begin, end):
                    if word & ~words[at] != np.uint64(0):
                        words[kept] = words[at]
                        kept += 1
                if kept == len(words):
                    return -1
                words[kept] = word
                end = kept + 1
    return end


@kernel
def check_cover(hulls, inner, free, parts, start, stop):
    """Decide whether the hulls `parts[start:stop]`, at most 64, cover the hull `inner`.

    Where that has no side in a column it has the cell `free[column]`, or all if that is -1.
    """
    # Only parts that overlap the hull count; each has a bit.
    union = np.empty(stop - start, np.int64)
    count = 0
    for at in range(start, stop):
        if _overlap(hulls, parts[at], inner):
            union[count] = parts[at]
            count += 1
    if count == 0:
        return UNCOVERED
    # `words[ends[d]:ends[d + 1]]` are those of the d-th column; `everywhere[d]` is their AND: the
    # parts that hold all cells of the column.
    words = np.empty(MAX_WORDS, np.uint64)
    ends = np.zeros(MAX_COLUMNS + 1, np.int64)
    taken = np.empty(MAX_COLUMNS, np.int64)
    everywhere = np.empty(MAX_COLUMNS, np.uint64)
    full = ~np.uint64(0) if count == 64 else (np.uint64(1) << np.uint64(count)) - np.uint64(1)
    depth = 0
    # Columns in which no part has a side cannot tell cells apart, so only those of the parts count.
    for bit in range(count):
        for side in range(hulls.offsets[union[bit]], hulls.offsets[union[bit] + 1]):
            column = hulls.column[side]
            known = False
            for at in range(depth):
                known |= taken[at] == column
            if known:
                continue
            if depth == MAX_COLUMNS:
                return UNDECIDED
            end = _fill_words(hulls, inner, column, free[column], union, count, words, ends[depth])
            if end < 0:
                return UNDECIDED
            taken[depth] = column
            everywhere[depth] = full
            for at in range(ends[depth], end):
                everywhere[depth] &= words[at]
            ends[depth + 1] = end
            depth += 1
    # `rest[d]`: the parts that hold all cells of the columns from d on.
    rest = np.empty(depth + 1, np.uint64)
    rest[depth] = full
    for level in range(depth - 1, -1, -1):
        rest[level] = rest[level + 1] & everywhere[level]
    # Depth first over columns: `so_far[d]` are the parts that all words chosen before share.
    so_far = np.empty(depth + 1, np.uint64)
    place = np.zeros(depth + 1, np.int64)
    so_far[0] = full
    if depth > 0:
        place[0] = ends[0]
    if so_far[0] & rest[0] != np.uint64(0):
        return COVERED
    level, steps = 0, 0
    while level >= 0:
        if place[level] == ends[level + 1]:
            level -= 1
            continue
        steps += 1
        if steps > MAX_STEPS:
            return UNDECIDED
        left = so_far[level] & words[place[level]]
        place[level] += 1
        # Rows with these words lie in no part: the product sticks out.
        if left == np.uint64(0):
            return UNCOVERED
        # A part that is still shared holds every choice in the columns that are left.
        if left & rest[level + 1] != np.uint64(0):
            continue
        level += 1
        so_far[level] = left
        place[level] = ends[level]
    return COVERED
