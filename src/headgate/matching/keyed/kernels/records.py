"""Clusters as records in one array, so that an event reads each of them from end to end.

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
set in the row of a region when the query accepts the region, or says nothing about the column. The
AND of one row for each column is the set of matches. Where the queries of a cluster ask about few
columns, that reads far less memory than their conditions one by one. Regions are those of the
cluster, which are fewer than those of the whole set: the ends of its own queries' intervals.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel

LINE, LINE_WORDS = 16, 8  # numbers and words in 64 bytes
HEADER, LEAF_COLUMN, HEAD, ROW, INTERVAL = 6, 4, 4, 2, 3
PROGRAM, PROGRAM_ONCE = 1, 2  # decides when all intervals hold; or if it has not done so yet
MASKED = 62  # bits of a mask; columns with the same remainder share one
HALF = (1 << 31) - 1

FEWEST = 32  # queries that are worth a bitmap
TIMES_LARGER = 10  # than the rows that it stands for, at most


@kernel
def plan_records(start, fit, row, column, low, high):
    """For each cluster: the columns and bounds of its bitmap, or 0 and 0; and its line.

    `start` has the clusters' entries, of which the first `fit[c]` are intervals alone. The last of
    the lines are where the records and the bits end.
    """
    clusters = len(start) - 1
    columns, bounds = np.zeros(clusters, np.int64), np.zeros(clusters, np.int64)
    line, bits_line = np.zeros(clusters + 1, np.int64), np.zeros(clusters + 1, np.int64)
    for c in range(clusters):
        n, entries = fit[c], start[c + 1] - start[c]
        words = 0
        if n >= FEWEST:
            keys = _edges(start[c], start[c] + n, row, column, low, high)
            here, edges = _distinct(keys)
            size = (edges + here) * ((n + 63) >> 6)
            conditions = row[start[c] + n] - row[start[c]]
            if (
                here * (2 + n / 128) < 2 * n
                and 8 * size <= TIMES_LARGER * 4 * INTERVAL * conditions
            ):
                columns[c], bounds[c], words = here, edges, size
        in_leaf = n if words else 0
        intervals = row[start[c + 1]] - row[start[c] + in_leaf]
        numbers = HEADER + LEAF_COLUMN * columns[c] + bounds[c] + in_leaf
        numbers += (HEAD + ROW) * (entries - in_leaf) + INTERVAL * intervals
        line[c + 1] = line[c] + (numbers + LINE - 1) // LINE
        bits_line[c + 1] = bits_line[c] + (words + LINE_WORDS - 1) // LINE_WORDS
    return columns, bounds, line, bits_line


@kernel
def _edges(begin, end, row, column, low, high):
    """Where the intervals of some entries begin and end: column · 2^32 + code, in order."""
    keys = np.empty(2 * (row[end] - row[begin]), np.int64)
    used = 0
    for k in range(row[begin], row[end]):
        c = np.int64(column[k] if column[k] >= 0 else -1 - column[k])
        keys[used], keys[used + 1] = (c << 32) + low[k], (c << 32) + high[k] + 1
        used += 2
    keys.sort()
    return keys


@kernel
def _distinct(keys):
    """How many columns and how many bounds there are among edges."""
    columns, bounds, last = 0, 0, np.int64(-1)
    for key in keys:
        columns += last < 0 or key >> 32 != last >> 32
        bounds += key != last
        last = key
    return columns, bounds


@kernel
def fill_records(start, fit, queries, mask, then, row, column, low, high, plan):
    """The records and the bits; and how many words the queries of all bitmaps need."""
    columns, bounds, line, bits_line = plan
    words_of_living = 0
    records = np.zeros(line[-1] * LINE, np.int32)
    bits = np.zeros(bits_line[-1] * LINE_WORDS, np.uint64)
    for c in range(len(columns)):
        record = records[line[c] * LINE : line[c + 1] * LINE]
        begin, end = start[c], start[c + 1]
        if columns[c] > 0:
            record[0], record[1], record[2] = fit[c], columns[c], bits_line[c]
            record[5] = words_of_living
            words_of_living += (fit[c] + 63) >> 6
            words = bits[bits_line[c] * LINE_WORDS : bits_line[c + 1] * LINE_WORDS]
            _fill_leaf(record, words, begin, begin + fit[c], queries, row, column, low, high)
            begin += fit[c]
        record[3] = end - begin
        place = HEADER + LEAF_COLUMN * columns[c] + bounds[c] + record[0]
        record[4] = place
        _fill_heads(record, place, begin, end, queries, mask, then, row, column, low, high)
    return records, bits, words_of_living


@kernel
def living_words(records, lines, words_of_living, alive):
    """A bit for each query of each bitmap, whose records are at these lines: is it alive?"""
    found = np.zeros(words_of_living, np.uint64)
    for line in lines:
        record = records[line * LINE :]
        first = record[4] - record[0]
        for i in range(record[0]):
            number = record[first + i]
            bit = alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1)
            found[record[5] + (i >> 6)] |= bit << np.uint64(i & 63)
    return found


@kernel
def _fill_heads(record, place, begin, end, queries, mask, then, row, column, low, high):
    at = place + HEAD * (end - begin)
    for i in range(begin, end):
        record[place], record[place + 1] = queries[i], at
        record[place + 2], record[place + 3] = mask[i] & HALF, mask[i] >> 31
        place += HEAD
        record[at], record[at + 1] = row[i + 1] - row[i], then[i]
        at += ROW
        for k in range(row[i], row[i + 1]):
            record[at], record[at + 1], record[at + 2] = column[k], low[k], high[k]
            at += INTERVAL


@kernel
def _fill_leaf(record, words, begin, end, queries, row, column, low, high):
    keys = _edges(begin, end, row, column, low, high)
    size = end - begin
    width = (size + 63) >> 6
    about = HEADER - LEAF_COLUMN
    bound = HEADER + LEAF_COLUMN * record[1]
    rows = 0
    last = np.int64(-1)
    for key in keys:
        if last < 0 or key >> 32 != last >> 32:
            about += LEAF_COLUMN
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
    for i in range(size):
        record[bound + i] = queries[begin + i]
        for w in range(rows):
            words[w * width + (i >> 6)] |= np.uint64(1) << np.uint64(i & 63)
    for i in range(size):
        for k in range(row[begin + i], row[begin + i + 1]):
            _clear(record, words, width, i, column[k], low[k], high[k])


@kernel
def _clear(record, words, width, i, column, low, high):
    """Take a query's bit out of the rows of the regions that it does not accept."""
    about = HEADER
    while record[about] != (column if column >= 0 else -1 - column):
        about += LEAF_COLUMN
    word, bit = i >> 6, ~(np.uint64(1) << np.uint64(i & 63))
    bound, rows = record[about + 1], record[about + 3]
    for region in range(record[about + 2] + 1):
        begins = record[bound + region - 1] if region else np.int32(-1)
        if (low <= begins <= high) != (column >= 0):
            words[(rows + region) * width + word] &= bit
