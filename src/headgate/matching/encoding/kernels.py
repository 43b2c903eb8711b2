"""Kernels that turn values into codes, and columns of codes into rows."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel


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
