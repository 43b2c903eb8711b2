"""How the conditions of a query are written in a packed row, and which queries are only such a row.

A row is what is left to check of a query that an event's key leads to. It consists of

    head      a mask of the columns that must be present, the query, the numbers up to the next row,
              and those up to the end of the short intervals
    short     one number for each condition of one interval on small codes: column, low, high
    items     whatever else there is, each with its kind in the low bits of the first number:
              a wide interval, the gaps in one, a set of codes as a mask, or a program that decides

Conditions in a row are parts of the outermost AND of a query that are a few intervals of codes, or
any number of them within 64 codes.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel
from headgate.snapshot.arrays.atoms import IS_NULL, WITHIN

HEAD = 4  # numbers in the head of a row
MASK_BITS = 32  # of the mask of columns; those with the same remainder share a bit

# what a condition is in a row: nothing, one short number, a wide interval, a mask, or one with gaps
ABSENT, SHORT, WIDE, MASK, GAPPED = range(5)
MAX_SHORT_CODE, MAX_SHORT_COLUMN = (1 << 8) - 1, (1 << 16) - 1
MASK_CODES = 64  # from the first to the last code of a set that is written as a mask
MAX_GAPPED_INTERVALS = 8  # of a condition; one with more is evaluated by a program

# kinds of items, in the low bits of their first number; what else is in it, and behind it
INTERVAL = 0  # column; low, high
GAP = 1  # column; low, high: the code must be outside
CODES = 2  # column; low, and a mask of 64 codes from there in two halves
PROGRAM = 3  # 1 if the query may be met more than once for an event, else 0; where its code begins
ITEM_BITS = 2


@kernel
def classify_atoms(kind, column, starts, low, high):
    """Return how each atom is written in a row, and how many numbers that takes."""
    form, size = np.zeros(len(kind), np.uint8), np.zeros(len(kind), np.int32)
    for a in range(len(kind)):
        count = starts[a + 1] - starts[a]
        if (kind[a] != WITHIN and kind[a] != IS_NULL) or count == 0:
            continue
        first, last = low[starts[a]], high[starts[a + 1] - 1]
        if count == 1 and last <= MAX_SHORT_CODE and column[a] <= MAX_SHORT_COLUMN:
            form[a], size[a] = SHORT, 1
        elif count == 1:
            form[a], size[a] = WIDE, 3
        elif last - first < MASK_CODES:
            form[a], size[a] = MASK, 4
        elif count <= MAX_GAPPED_INTERVALS:
            # from the first to the last, and each gap between
            form[a], size[a] = GAPPED, 3 * count
    return form, size


@kernel
def mark_rows(offsets, program, deciding, form, column, columns):
    """Return which entries of programs are in rows, and which queries are nothing but a row.

    `is_fit` says of a query that it has no two conditions in its row that are on the same column.
    """
    in_row = np.zeros(len(program), np.bool_)
    is_pure, is_fit = np.zeros(len(offsets) - 1, np.bool_), np.zeros(len(offsets) - 1, np.bool_)
    owner = np.full(columns, -1, np.int64)  # by column: the last query that mentioned it
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        pure, fit = end > begin, True
        for k in range(begin, end):
            entry = program[k]
            # a part of the outermost AND, or the whole condition
            if entry >= 0 and (deciding[k] or end - begin == 1) and form[entry] != ABSENT:
                in_row[k] = True
                fit = fit and owner[column[entry]] != q
                owner[column[entry]] = q
            # the last entry of a longer program is its AND
            elif end - begin == 1 or k < end - 1:
                pure = False
        is_pure[q] = pure
        is_fit[q] = fit
    return in_row, is_pure, is_fit


@inlined_kernel
def to_signed(bits):
    """Return 32 bits as the number that has them in an array of int32."""
    return (bits ^ (1 << 31)) - (1 << 31)


@inlined_kernel
def write_atom(atom, form, column, starts, low, high, rows, at):
    """Write an atom that is no short interval into a row; return where it ends."""
    first, last = starts[atom], starts[atom + 1] - 1
    c = np.int64(column) << ITEM_BITS
    # a bit for each code from the first on, in two halves
    if form == MASK:
        codes = np.uint64(0)
        for i in range(first, last + 1):
            for code in range(low[i], high[i] + 1):
                codes |= np.uint64(1) << np.uint64(code - low[first])
        rows[at], rows[at + 1] = c | CODES, low[first]
        rows[at + 2] = to_signed(np.int64(codes & np.uint64(0xFFFFFFFF)))
        rows[at + 3] = to_signed(np.int64(codes >> np.uint64(32)))
        return at + 4
    rows[at], rows[at + 1], rows[at + 2] = c | INTERVAL, low[first], high[last]
    at += 3
    for i in range(first, last):
        rows[at], rows[at + 1], rows[at + 2] = c | GAP, high[i] + 1, low[i + 1] - 1
        at += 3
    return at
