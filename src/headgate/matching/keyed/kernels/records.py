"""Lay out clusters as records in one array, so that an event reads each from end to end.

A record begins at a multiple of LINE numbers and consists of

    a header       queries in the bitmap, its columns, where its bits begin, entries in rows, where
                   their heads begin, the first word of its living queries
    columns        of the bitmap: column, where its bounds begin, their number, its first row
    bounds         of these columns, in order
    queries        of the bitmap
    heads          of the entries in rows: query, where its row is, and two halves of a mask of the
                   columns that must be present
    rows           the number of intervals, what decides then, and for each interval column, low,
                   high; of column c the code must be inside, or outside if that is written −1 − c

All places are relative to the record. Those of bits are in the array of words, in lines of them.

A bitmap has a row of bits for each region of each column, a bit for each query. A query's bit is
set in the row of a region when the query accepts the region, or does not mention the column. The
AND of one row for each column is the set of matches. Where the queries of a cluster mention few
columns, that reads far less memory than their conditions one by one. Regions are those of the
cluster, which are fewer than those of the whole set: the ends of its own queries' intervals.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel

LINE, LINE_WORDS = 16, 8  # numbers and words in 64 bytes
HEADER, LEAF_COLUMN, HEAD, ROW, INTERVAL = 6, 4, 4, 2, 3  # numbers in each, see above
# what decides once all intervals hold: the program, or the program unless it was run already
PROGRAM, PROGRAM_ONCE = 1, 2
MASK_BITS = 62  # of a mask of columns; those with the same remainder share a bit
HALF_MASK = (1 << 31) - 1

MIN_BITMAP_QUERIES = 32  # of a cluster
MAX_BITMAP_GROWTH = 10  # how many times larger than the rows that it replaces


@kernel
def plan_records(start, fit, row, column, low, high):
    """Return for each cluster the columns and bounds of its bitmap, or 0 and 0, and its lines.

    The entries of cluster c are those from `start[c]` to `start[c + 1]`, of which the first
    `fit[c]` are nothing but intervals. The last of the lines are where records and bits end.
    """
    clusters = len(start) - 1
    columns, bounds = np.zeros(clusters, np.int64), np.zeros(clusters, np.int64)
    line, bits_line = np.zeros(clusters + 1, np.int64), np.zeros(clusters + 1, np.int64)
    for c in range(clusters):
        n, entries = fit[c], start[c + 1] - start[c]
        words = 0  # of the bitmap; 0 for none
        if n >= MIN_BITMAP_QUERIES:
            keys = _collect_edges(start[c], start[c] + n, row, column, low, high)
            here, edges = _count_distinct(keys)
            size = (edges + here) * ((n + 63) >> 6)
            conditions = row[start[c] + n] - row[start[c]]
            # In units that were fitted to measurements, a bitmap takes 2 to find each of `here`
            # rows and ½ for each of the row's n / 64 words; n queries in rows take 2 each.
            if (
                here * (2 + n / 128) < 2 * n
                and 8 * size <= MAX_BITMAP_GROWTH * 4 * INTERVAL * conditions
            ):
                columns[c], bounds[c], words = here, edges, size
        # numbers that the record takes: queries in the bitmap have neither head nor row
        in_leaf = n if words else 0
        intervals = row[start[c + 1]] - row[start[c] + in_leaf]
        numbers = HEADER + LEAF_COLUMN * columns[c] + bounds[c] + in_leaf
        numbers += (HEAD + ROW) * (entries - in_leaf) + INTERVAL * intervals
        line[c + 1] = line[c] + (numbers + LINE - 1) // LINE
        bits_line[c + 1] = bits_line[c] + (words + LINE_WORDS - 1) // LINE_WORDS
    return columns, bounds, line, bits_line


@kernel
def _collect_edges(begin, end, row, column, low, high):
    """Return where the intervals of some entries begin and end, as column · 2^32 + code, sorted."""
    keys = np.empty(2 * (row[end] - row[begin]), np.int64)
    used = 0
    for k in range(row[begin], row[end]):
        # a gap in an interval has the column −1 − c, and cuts it in the same way
        c = np.int64(column[k] if column[k] >= 0 else -1 - column[k])
        keys[used], keys[used + 1] = (c << 32) + low[k], (c << 32) + high[k] + 1
        used += 2
    keys.sort()
    return keys


@kernel
def _count_distinct(keys):
    """Return how many columns and how many bounds there are among sorted edges."""
    columns, bounds, last = 0, 0, np.int64(-1)
    for key in keys:
        columns += last < 0 or key >> 32 != last >> 32
        bounds += key != last
        last = key
    return columns, bounds


@kernel
def fill_records(start, fit, queries, mask, then, row, column, low, high, plan):
    """Return the records, the bits, and how many words a bit for each query in a bitmap takes."""
    columns, bounds, line, bits_line = plan
    living_words = 0
    records = np.zeros(line[-1] * LINE, np.int32)
    bits = np.zeros(bits_line[-1] * LINE_WORDS, np.uint64)
    for c in range(len(columns)):
        record = records[line[c] * LINE : line[c + 1] * LINE]
        begin, end = start[c], start[c + 1]
        # first the bitmap of the entries that fit one, then heads and rows of all others
        if columns[c] > 0:
            record[0], record[1], record[2] = fit[c], columns[c], bits_line[c]
            record[5] = living_words
            living_words += (fit[c] + 63) >> 6
            words = bits[bits_line[c] * LINE_WORDS : bits_line[c + 1] * LINE_WORDS]
            _fill_leaf(record, words, begin, begin + fit[c], queries, row, column, low, high)
            begin += fit[c]
        record[3] = end - begin
        place = HEADER + LEAF_COLUMN * columns[c] + bounds[c] + record[0]
        record[4] = place
        _fill_heads(record, place, begin, end, queries, mask, then, row, column, low, high)
    return records, bits, living_words


@kernel
def pack_living(records, lines, living_words, alive):
    """Return a bit for each query of each bitmap, whose records are at these lines: is it alive?

    `alive` has a bit for each number of a query.
    """
    living = np.zeros(living_words, np.uint64)
    for line in lines:
        record = records[line * LINE :]
        first = record[4] - record[0]  # the queries of a bitmap stand before the heads
        for i in range(record[0]):
            number = record[first + i]
            bit = alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1)
            living[record[5] + (i >> 6)] |= bit << np.uint64(i & 63)
    return living


@kernel
def _fill_heads(record, place, begin, end, queries, mask, then, row, column, low, high):
    # all heads lie together, so that the masks of a cluster are read without its rows
    at = place + HEAD * (end - begin)
    for i in range(begin, end):
        record[place], record[place + 1] = queries[i], at
        record[place + 2], record[place + 3] = mask[i] & HALF_MASK, mask[i] >> 31
        place += HEAD
        record[at], record[at + 1] = row[i + 1] - row[i], then[i]
        at += ROW
        for k in range(row[i], row[i + 1]):
            record[at], record[at + 1], record[at + 2] = column[k], low[k], high[k]
            at += INTERVAL


@kernel
def _fill_leaf(record, words, begin, end, queries, row, column, low, high):
    # the columns, bounds and first rows of the bitmap, from the sorted edges
    keys = _collect_edges(begin, end, row, column, low, high)
    size = end - begin
    width = (size + 63) >> 6
    about = HEADER - LEAF_COLUMN
    bound = HEADER + LEAF_COLUMN * record[1]
    rows = 0
    last = np.int64(-1)
    for key in keys:
        if last < 0 or key >> 32 != last >> 32:
            about += LEAF_COLUMN
            # the first edge of a column: its region 0, below all bounds, has a row too
            record[about] = key >> 32
            record[about + 1] = bound
            record[about + 3] = rows
            rows += 1
        if key != last:
            record[bound] = key & 0xFFFFFFFF
            record[about + 2] += 1
            bound += 1
            rows += 1
        last = key
    # every query accepts every region, until its conditions say otherwise
    for i in range(size):
        record[bound + i] = queries[begin + i]
        for w in range(rows):
            words[w * width + (i >> 6)] |= np.uint64(1) << np.uint64(i & 63)
    for i in range(size):
        for k in range(row[begin + i], row[begin + i + 1]):
            _clear(record, words, width, i, column[k], low[k], high[k])


@kernel
def _clear(record, words, width, i, column, low, high):
    """Clear a query's bit in the rows of the regions that it does not accept."""
    about = HEADER
    while record[about] != (column if column >= 0 else -1 - column):
        about += LEAF_COLUMN
    word, bit = i >> 6, ~(np.uint64(1) << np.uint64(i & 63))
    bound, rows = record[about + 1], record[about + 3]
    # region 0 lies below the first bound; none is cut by an interval, so its begin decides
    for region in range(record[about + 2] + 1):
        begins = record[bound + region - 1] if region else np.int32(-1)
        if (low <= begins <= high) != (column >= 0):
            words[(rows + region) * width + word] &= bit
