"""One bitmap for all queries, where they ask about few attributes: an AND of one row for each.

The codes of a column are divided into buckets, and each bucket has a row of bits, with a bit for
each query that accepts a code in it or says nothing about the column. Where there are as many
buckets as codes, the AND of the rows of an event's buckets is the set of matches. Where there are
fewer, it holds some that just miss the event too, and these are checked.

Queries stand in Z-order, so that those which are near each other share words, and most words are
zero in the end.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked, lowest_bit
from headgate.matching.keyed.kernels.entries import row_of_atom

BLOCK = 128  # words that are ANDed before the next
TOGETHER = 4  # rows that are ANDed in one pass


@kernel
def fill_grid(conditions, numbers, columns, greatest, most_buckets):
    """The grid of the queries with these numbers, over these columns, in this order."""
    width = (len(numbers) + 63) // 64
    place_of = np.full(len(greatest), -1, np.int64)
    table_start = np.zeros(len(columns) + 1, np.int64)
    for k in range(len(columns)):
        place_of[columns[k]] = k
        table_start[k + 1] = table_start[k] + greatest[columns[k]] + 1
    row_of = np.empty(table_start[-1], np.int32)
    first_row = np.zeros(len(columns) + 1, np.int64)
    for k in range(len(columns)):
        g = greatest[columns[k]]
        exact = g < most_buckets
        first_row[k + 1] = first_row[k] + (g if exact else most_buckets - 1) + 1
        row_of[table_start[k]] = first_row[k]
        for code in range(1, g + 1):
            bucket = code if exact else 1 + (code - 1) * (most_buckets - 1) // g
            row_of[table_start[k] + code] = first_row[k] + bucket
    bits = np.zeros(first_row[-1] * width, np.uint64)
    for i in range(len(numbers)):
        for row in range(first_row[-1]):
            bits[row * width + (i >> 6)] |= np.uint64(1) << np.uint64(i & 63)
    start = np.zeros(len(numbers) + 1, np.int64)
    room = 0
    for q in numbers:
        for p in range(conditions.offsets[q], conditions.offsets[q + 1]):
            atom = conditions.program[p]
            if atom >= 0:
                room += conditions.starts[atom + 1] - conditions.starts[atom]
    column, low, high = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    used = 0
    for i in range(len(numbers)):
        q = numbers[i]
        for p in range(conditions.offsets[q], conditions.offsets[q + 1]):
            atom = conditions.program[p]
            if atom < 0:
                continue
            end = row_of_atom(conditions, atom, column, low, high, used)
            c = conditions.column[atom]
            k = place_of[c]
            rows = row_of[table_start[k] : table_start[k + 1]]
            _clear(bits, width, i, first_row[k], rows[low[used]])
            _clear(bits, width, i, rows[high[used]] + 1, first_row[k + 1])
            for gap in range(used + 1, end):  # rows that reach out of the gap stay
                begin = rows[low[gap]] + (rows[low[gap] - 1] == rows[low[gap]])
                behind = rows[high[gap]] + (rows[high[gap] + 1] != rows[high[gap]])
                _clear(bits, width, i, begin, behind)
            if greatest[c] >= most_buckets:
                used = end
        start[i + 1] = used
    return (
        table_start,
        row_of,
        bits,
        width,
        used == 0,
        start,
        column[:used].copy(),
        low[:used].copy(),
        high[:used].copy(),
    )


@kernel
def asked_about(conditions, numbers, columns):
    """By column: how many conditions of some queries are about it."""
    counts = np.zeros(columns, np.int64)
    for q in numbers:
        for p in range(conditions.offsets[q], conditions.offsets[q + 1]):
            if conditions.program[p] >= 0:
                counts[conditions.column[conditions.program[p]]] += 1
    return counts


@kernel
def z_order(conditions, numbers, columns, greatest):
    """The order of queries by the bits of their middles in a few columns, interleaved."""
    keys = np.zeros(len(numbers), np.int64)
    for i in range(len(numbers)):
        q = numbers[i]
        for p in range(conditions.offsets[q], conditions.offsets[q + 1]):
            atom = conditions.program[p]
            if atom < 0:
                continue
            interval = conditions.starts[atom]
            for k in range(len(columns)):
                if columns[k] == conditions.column[atom]:
                    middle = (conditions.low[interval] + conditions.high[interval]) // 2
                    fine = (middle << 16) // (greatest[columns[k]] + 1)
                    for bit in range(16):
                        keys[i] |= (fine >> bit & 1) << (bit * len(columns) + k)
    return np.argsort(keys, kind="mergesort")


@kernel
def _clear(bits, width, i, begin, end):
    """Take a query's bit out of some rows."""
    bit = ~(np.uint64(1) << np.uint64(i & 63))
    for row in range(begin, end):
        bits[row * width + (i >> 6)] &= bit


@inlined_kernel
def match_grid(grid, alive, codes, scratch, out, used):
    """Append the queries of a grid that accept an event's codes."""
    rows, block, full = scratch.rows, scratch.block, scratch.full
    count = len(grid.columns)
    for k in range(count):
        row = grid.row_of[grid.table_start[k] + codes[grid.columns[k]]]
        rows[k] = np.int64(row) * grid.width
    for k in range(count, count + TOGETHER - 1):
        rows[k] = rows[count - 1]
    for begin in range(0, grid.width, BLOCK):
        size = min(BLOCK, grid.width - begin)
        words = _and_rows(grid.bits, alive, rows, count, begin, size, block, full)
        for j in range(words):
            word, base = block[full[j]], (begin + full[j]) << 6
            while word != 0:
                i = base + lowest_bit(word)
                word &= word - np.uint64(1)
                out[used] = load_unchecked(grid.query, i)
                used += 1 if grid.exact else _accepts(grid, i, codes)
    return used


@inlined_kernel
def _and_rows(bits, alive, rows, count, begin, size, block, full):
    """The AND of parts of some rows in `block`; which of its words are not zero; and how many.

    Listing these words first saves a branch that the processor cannot foresee.
    """
    for w in range(size):
        block[w] = alive[begin + w] if len(alive) else ~np.uint64(0)
    for k in range(0, count, TOGETHER):
        a, b, c, d = rows[k] + begin, rows[k + 1] + begin, rows[k + 2] + begin, rows[k + 3] + begin
        for w in range(size):
            block[w] &= (
                load_unchecked(bits, a + w)
                & load_unchecked(bits, b + w)
                & load_unchecked(bits, c + w)
                & load_unchecked(bits, d + w)
            )
    words = 0
    for w in range(size):
        full[words] = w
        words += np.int64(block[w] != 0)
    return words


@inlined_kernel
def _accepts(grid, i, codes):
    """Does a query hold in the columns that have fewer buckets than codes?"""
    for k in range(grid.start[i], grid.start[i + 1]):
        column = grid.column[k]
        code = codes[column if column >= 0 else -1 - column]
        if (grid.low[k] <= code <= grid.high[k]) != (column >= 0):
            return 0
    return 1
