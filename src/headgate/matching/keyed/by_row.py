"""From columns to rows: the codes of a batch, event by event."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel


@kernel
def by_row(count, rows, columns, codes):
    """Where each of `count` rows begins, and its columns and codes, in the order that they had."""
    start = np.zeros(count + 1, np.int64)
    for row in rows:
        start[row + 1] += 1
    for row in range(count):
        start[row + 1] += start[row]
    free = start[:-1].copy()
    column, code = np.empty_like(columns), np.empty_like(codes)
    for i in range(len(rows)):
        place = free[rows[i]]
        column[place], code[place] = columns[i], codes[i]
        free[rows[i]] = place + 1
    return start, column, code
