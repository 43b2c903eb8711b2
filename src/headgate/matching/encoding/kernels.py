"""Kernels that turn values into codes, and columns of codes into rows."""

from __future__ import annotations

import numpy as np

from headgate.events.kernels.arrow import (
    NULLS,
    OFFSET,
    VALIDITY,
    VALUES,
    load_bits,
    load_ordinal,
)
from headgate.jit import (
    inlined_kernel,
    kernel,
    load_unchecked,
    lowest_bit,
    plain_kernel,
    prefetch_at,
)

PREFETCHED_COLUMNS = 12  # whose bits are being loaded while those of one are counted
BLOCK_ROWS = 512  # whose codes stay in the nearest cache while column after column adds to them


@plain_kernel
def count_codes(layout, total, first, widths, rows, other_rows, start):
    """Count the codes of `rows` rows from row `first` on, and write where those of each begin.

    `layout` has the columns whose values lie in memory, of `total` rows, with the bytes that a
    value takes in `widths`; `other_rows` are the rows of what is encoded already.
    """
    # A small batch of many columns is mostly not in the cache. All values that will be read then
    # fit into it, and are loaded while they are counted: that takes a third of the time off both.
    is_small = rows <= BLOCK_ROWS
    # start[r + 1] first counts the codes of row r, then is where they end
    full = np.int64(0)
    for row in range(rows + 1):
        start[row] = 0
    for k in range(len(layout)):
        nulls, offset, validity = layout[k, NULLS], layout[k, OFFSET] + first, layout[k, VALIDITY]
        values, width = layout[k, VALUES], widths[k]
        ahead = min(k + PREFETCHED_COLUMNS, len(layout) - 1)
        prefetch_at(layout[ahead, VALIDITY] + ((layout[ahead, OFFSET] + first) >> 3))
        full += nulls == 0
        if nulls in (0, total):
            continue
        for begin in range(0, rows, 64):
            word = load_bits(validity, offset + begin, min(np.int64(64), rows - begin))
            while word != 0:
                row = begin + lowest_bit(word)
                start[row + 1] += 1
                word &= word - np.uint64(1)
                if is_small:
                    prefetch_at(values + width * (offset + row))
    for i in range(len(other_rows)):
        start[other_rows[i] + 1] += 1
    for row in range(rows):
        start[row + 1] += start[row] + full


@plain_kernel
def write_codes(
    layout,
    total,
    first,
    forms,
    columns,
    bounds,
    tables,
    cuts,
    other_rows,
    other_columns,
    other_codes,
    start,
    column,
    code,
):
    """Write the columns and codes of each row, where `count_codes` says that they begin.

    Item k of `forms` and `columns` says how the values of a column are written, and its number.
    Row c of `bounds` says how a value in column c becomes a code: see `Regions`. In between,
    `start[r]` is where the next code of row r goes.
    """
    rows = len(start) - 1
    for block in range(0, rows, BLOCK_ROWS):
        stop = min(rows, block + BLOCK_ROWS)
        for k in range(len(layout)):
            nulls, offset = layout[k, NULLS], layout[k, OFFSET] + first
            validity, values = layout[k, VALIDITY], layout[k, VALUES]
            number, form = columns[k], forms[k]
            if nulls == total:
                continue
            for begin in range(block, stop, 64):
                count = min(np.int64(64), stop - begin)
                if nulls == 0:
                    for row in range(begin, begin + count):
                        ordinal = load_ordinal(values, offset + row, form)
                        place = start[row]
                        column[place] = number
                        code[place] = find_code(ordinal, bounds, number, tables, cuts)
                        start[row] = place + 1
                    continue
                word = load_bits(validity, offset + begin, count)
                while word != 0:
                    row = begin + lowest_bit(word)
                    word &= word - np.uint64(1)
                    ordinal = load_ordinal(values, offset + row, form)
                    place = start[row]
                    column[place] = number
                    code[place] = find_code(ordinal, bounds, number, tables, cuts)
                    start[row] = place + 1
    for i in range(len(other_rows)):
        place = start[other_rows[i]]
        column[place], code[place] = other_columns[i], other_codes[i]
        start[other_rows[i]] = place + 1
    # each start has become the next one
    for row in range(rows, 0, -1):
        start[row] = start[row - 1]
    start[0] = 0


@inlined_kernel
def find_code(ordinal, bounds, number, tables, cuts):
    """Return the code of a value, by the table of its column, or by its cuts if it has no table."""
    begin, end = bounds[number, 0], bounds[number, 1]
    if bounds[number, 2]:
        # the first entry is for `least` and all below it, the last for the greatest and all above
        least = bounds[number, 3]
        place = min(max(ordinal, least), least + (end - begin - 1)) - least
        return load_unchecked(tables, begin + place)
    # cuts that are not above the value, and one more, since code 0 is NULL
    left, right = begin, end
    while left < right:
        middle = (left + right) >> 1
        if load_unchecked(cuts, middle) <= ordinal:
            left = middle + 1
        else:
            right = middle
    return np.int32(left - begin + 1)


@kernel
def group_by_row(count, rows, columns, codes):
    """Return where each of `count` rows begins, and its columns and codes, in their order.

    A counting sort by row: entry i says that row `rows[i]` has `codes[i]` in `columns[i]`.
    """
    # start[r + 1] first counts the entries of row r, then becomes where they end
    start = np.zeros(count + 1, np.int64)
    for row in rows:
        start[row + 1] += 1
    for row in range(count):
        start[row + 1] += start[row]
    next_free = start[:-1].copy()
    column, code = np.empty_like(columns), np.empty_like(codes)
    for i in range(len(rows)):
        place = next_free[rows[i]]
        column[place], code[place] = columns[i], codes[i]
        next_free[rows[i]] = place + 1
    return start, column, code


@kernel
def look_up(values, least, table):
    """Return the table's entry for each value.

    Its first entry is for `least` and all below it, its last for the greatest and all above.
    """
    entries, greatest = np.empty(len(values), table.dtype), np.int64(least + len(table) - 1)
    # one pass: `np.clip` and indexing would write two more arrays of the batch's length
    for i in range(len(values)):
        value = np.int64(values[i])
        value = least if value < least else greatest if value > greatest else value
        entries[i] = table[value - least]
    return entries
