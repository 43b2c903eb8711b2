"""Match by one bitmap for all queries, if they mention few attributes: an AND of a row for each.

The codes of a column are divided into buckets, and each bucket has a row of bits, with a bit for
each query that accepts a code in it or does not mention the column. With as many buckets as codes,
the AND of the rows of an event's buckets is the set of matches. With fewer it also holds queries
that just miss the event, so each is checked.

Queries stand in Z-order: neighbours share words, and most words are zero in the end.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked, lowest_bit

BLOCK_WORDS = 128  # that are ANDed over all rows before the next: they stay in the cache
ROWS_PER_PASS = 4  # rows that are ANDed in registers, before a word is written


@kernel
def fill_grid(conditions, numbers, columns, greatest, max_buckets):
    """Return the arrays of `Grid` for queries, by number, over these columns, in this order."""
    width = (len(numbers) + 63) // 64
    # by column: its place in the grid; by place: where the rows of its codes are listed
    place_of = np.full(len(greatest), -1, np.int64)
    table_start = np.zeros(len(columns) + 1, np.int64)
    for k in range(len(columns)):
        place_of[columns[k]] = k
        table_start[k + 1] = table_start[k] + greatest[columns[k]] + 1
    # the bucket of each code, as the number of its row; code 0, NULL, has a row of its own
    row_of = np.empty(table_start[-1], np.int32)
    first_row = np.zeros(len(columns) + 1, np.int64)
    for k in range(len(columns)):
        g = greatest[columns[k]]
        exact = g < max_buckets
        first_row[k + 1] = first_row[k] + (g if exact else max_buckets - 1) + 1
        row_of[table_start[k]] = first_row[k]
        for code in range(1, g + 1):
            bucket = code if exact else 1 + (code - 1) * (max_buckets - 1) // g
            row_of[table_start[k] + code] = first_row[k] + bucket
    # every query accepts every bucket, until its conditions say otherwise
    bits = np.zeros(first_row[-1] * width, np.uint64)
    for i in range(len(numbers)):
        for row in range(first_row[-1]):
            bits[row * width + (i >> 6)] |= np.uint64(1) << np.uint64(i & 63)
    # intervals that are left to check, of the columns that have fewer buckets than codes
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
            c = conditions.column[atom]
            starts, lows, highs = conditions.starts, conditions.low, conditions.high
            # from the first interval's begin to the last one's end, and the gaps between, whose
            # column is −1 − c
            first, last = starts[atom], starts[atom + 1] - 1
            column[used], low[used], high[used] = c, lows[first], highs[last]
            end = used + 1
            for j in range(first, last):
                column[end], low[end], high[end] = -1 - c, highs[j] + 1, lows[j + 1] - 1
                end += 1
            k = place_of[c]
            rows = row_of[table_start[k] : table_start[k + 1]]
            _clear(bits, width, i, first_row[k], rows[low[used]])
            _clear(bits, width, i, rows[high[used]] + 1, first_row[k + 1])
            # of the gaps, only rows that lie wholly inside: others hold accepted codes too
            for gap in range(used + 1, end):
                begin = rows[low[gap]] + (rows[low[gap] - 1] == rows[low[gap]])
                behind = rows[high[gap]] + (rows[high[gap] + 1] != rows[high[gap]])
                _clear(bits, width, i, begin, behind)
            if greatest[c] >= max_buckets:
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
def count_conditions(conditions, numbers, columns):
    """Return, by column, how many conditions of some queries are about it."""
    # AND stands in a program as a negative entry, and is no condition
    counts = np.zeros(columns, np.int64)
    for q in numbers:
        for p in range(conditions.offsets[q], conditions.offsets[q + 1]):
            if conditions.program[p] >= 0:
                counts[conditions.column[conditions.program[p]]] += 1
    return counts


@kernel
def z_order(conditions, numbers, columns, greatest):
    """Return the order of queries by the interleaved bits of their middles in a few columns."""
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
                    # 16 bits, of which bit b of column k becomes bit b · columns + k of the key
                    fine = (middle << 16) // (greatest[columns[k]] + 1)
                    for bit in range(16):
                        keys[i] |= (fine >> bit & 1) << (bit * len(columns) + k)
    return np.argsort(keys, kind="mergesort")


@kernel
def _clear(bits, width, i, begin, end):
    """Clear a query's bit in some rows."""
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
    # repeat the last row, so that each pass has its full number of rows
    for k in range(count, count + ROWS_PER_PASS - 1):
        rows[k] = rows[count - 1]
    # block by block, so that the ANDed words stay in the cache
    for begin in range(0, grid.width, BLOCK_WORDS):
        size = min(BLOCK_WORDS, grid.width - begin)
        words = _and_rows(grid.bits, alive, rows, count, begin, size, block, full)
        for j in range(words):
            word, base = block[full[j]], (begin + full[j]) << 6
            while word != 0:
                i = base + lowest_bit(word)
                word &= word - np.uint64(1)
                # written first and counted only if accepted: no branch around the store
                out[used] = load_unchecked(grid.query, i)
                used += 1 if grid.exact else _accepts(grid, i, codes)
    return used


@inlined_kernel
def _and_rows(bits, alive, rows, count, begin, size, block, full):
    """AND parts of some rows into `block`; list its words that are not zero, and return how many.

    Listing these words first saves a branch that the processor cannot predict.
    """
    # `alive` is empty if no query was removed
    for w in range(size):
        block[w] = alive[begin + w] if len(alive) else ~np.uint64(0)
    for k in range(0, count, ROWS_PER_PASS):
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
    """Return 1 if a query accepts the codes in columns with fewer buckets than codes, else 0."""
    for k in range(grid.start[i], grid.start[i + 1]):
        column = grid.column[k]
        code = codes[column if column >= 0 else -1 - column]
        if (grid.low[k] <= code <= grid.high[k]) != (column >= 0):
            return 0
    return 1
