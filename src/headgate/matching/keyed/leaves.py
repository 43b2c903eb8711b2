"""Clusters as bitmaps: a row of bits for each region of each column, a bit for each query.

A query's bit is set in the row of a region when the query accepts the region, or says nothing about
the column. The AND of one row for each column is the set of matches. Where the queries of a cluster
ask about few columns, that reads far less memory than their conditions one by one.

Regions are those of the cluster, which are fewer than those of the whole set: the ends of the
intervals of its own queries.
"""

from __future__ import annotations

import numpy as np

from headgate.matching.keyed.bits import lowest_bit
from headgate.matching.keyed.compiled import kernel

FEWEST = 64  # queries that are worth a bitmap
TIMES_LARGER = 10  # than the rows that it stands for, at most
ROW_BYTES = 12  # of a condition in a row


@kernel
def leaf_plan(start, fit, row, column, low, high):
    """Which clusters become bitmaps of the entries that fit; and how much room these need.

    `start` has the clusters' entries, of which the first `fit[c]` are rows alone. Gives for each
    cluster 0 or 1, and the total number of columns, bounds and words.
    """
    clusters = len(start) - 1
    chosen = np.zeros(clusters, np.uint8)
    columns = bounds = words = 0
    for c in range(clusters):
        n = fit[c]
        if n < FEWEST:
            continue
        keys = _edges(start[c], start[c] + n, row, column, low, high)
        width = (n + 63) >> 6
        here, edges = 0, 0
        last_column, last_key = -1, -1
        for key in keys:
            if key >> 32 != last_column:
                here += 1
                last_column = key >> 32
            if key != last_key:
                edges += 1
                last_key = key
        size = (edges + here) * width
        conditions = row[start[c] + n] - row[start[c]]
        if here * (2 + n / 128) < 5 * n and 8 * size <= TIMES_LARGER * ROW_BYTES * conditions:
            chosen[c] = 1
            columns += here
            bounds += edges
            words += size
    return chosen, columns, bounds, words


@kernel
def _edges(begin, end, row, column, low, high):
    """Where the intervals of some entries begin and end: column · 2^32 + code, in order."""
    keys = np.empty(2 * (row[end] - row[begin]), np.int64)
    used = 0
    for k in range(row[begin], row[end]):
        keys[used] = (np.int64(column[k]) << 32) + low[k]
        keys[used + 1] = (np.int64(column[k]) << 32) + high[k] + 1
        used += 2
    keys.sort()
    return keys


@kernel
def fill_leaves(start, fit, chosen, row, column, low, high, columns, bounds, words):
    """The bitmaps.

    Leaf l has `size[l]` queries and the columns from `first[l]` to `first[l + 1]`. Column k of them
    is `leaf_column[k]`; its bounds are from `first_bound[k]` to `first_bound[k + 1]`, and the row
    of its region 0 begins at `first_word[k]`.
    """
    leaves = chosen.sum()
    first = np.zeros(leaves + 1, np.int64)
    leaf_column = np.empty(columns, np.int32)
    first_bound = np.zeros(columns + 1, np.int64)
    first_word = np.zeros(columns + 1, np.int64)
    bound = np.empty(bounds, np.int32)
    bits = np.empty(words, np.uint64)
    leaf = k = b = w = 0
    for c in range(len(chosen)):
        if not chosen[c]:
            continue
        n = fit[c]
        width = (n + 63) >> 6
        keys = _edges(start[c], start[c] + n, row, column, low, high)
        last_column, last_key = -1, -1
        first[leaf] = k
        for key in keys:
            if key >> 32 != last_column:
                if last_column >= 0:
                    w += (b - first_bound[k - 1] + 1) * width
                last_column = key >> 32
                leaf_column[k] = last_column
                first_bound[k] = b
                first_word[k] = w
                k += 1
            if key != last_key:
                bound[b] = key & 0xFFFFFFFF
                b += 1
                last_key = key
        if last_column >= 0:
            w += (b - first_bound[k - 1] + 1) * width
        first_bound[k] = b
        first_word[k] = w
        for i in range(first_word[first[leaf]], w):
            bits[i] = ~np.uint64(0)
        for i in range(n):
            _clear(
                start[c] + i,
                i,
                first[leaf],
                row,
                column,
                low,
                high,
                leaf_column,
                first_bound,
                first_word,
                bound,
                bits,
                width,
            )
        leaf += 1
    first[leaf] = k
    return first, leaf_column, first_bound, first_word, bound, bits


@kernel
def _clear(
    entry,
    i,
    first,
    row,
    column,
    low,
    high,
    leaf_column,
    first_bound,
    first_word,
    bound,
    bits,
    width,
):
    """Take an entry's bit out of the rows of the regions that it does not accept."""
    word, bit = i >> 6, ~(np.uint64(1) << np.uint64(i & 63))
    for p in range(row[entry], row[entry + 1]):
        k = first
        while leaf_column[k] != column[p]:
            k += 1
        for region in range(first_bound[k + 1] - first_bound[k] + 1):
            begins = bound[first_bound[k] + region - 1] if region else -1
            if begins < low[p] or begins > high[p]:
                bits[first_word[k] + region * width + word] &= bit


@kernel
def match_leaf(leaves, leaf, query, size, codes, rows, bitmap, span):
    """Set the bits of the queries of a leaf that accept an event's codes; `rows` is scratch room.

    `span` grows to the words of the bitmap in which bits are set.
    """
    first, end = leaves.first[leaf], leaves.first[leaf + 1]
    width = (size + 63) >> 6
    for k in range(first, end):
        code = codes[leaves.column[k]]
        left, right = leaves.first_bound[k], leaves.first_bound[k + 1]
        begin = left
        while left < right:  # how many bounds are not above the code
            middle = (left + right) >> 1
            if leaves.bound[middle] <= code:
                left = middle + 1
            else:
                right = middle
        rows[k - first] = leaves.first_word[k] + (left - begin) * width
    count = end - first
    first_hit = last = np.int64(-1)
    for w in range(width):
        word = ~np.uint64(0)
        for k in range(count):
            word &= leaves.bits[rows[k] + w]
            if word == 0:
                break
        base = w << 6
        while word != 0:
            place = base + lowest_bit(word)
            if place >= size:
                break
            number = query[place]
            bitmap[number >> 6] |= np.uint64(1) << np.uint64(number & 63)
            last = number >> 6
            if first_hit < 0:
                first_hit = last
            word &= word - np.uint64(1)
    if first_hit >= 0:  # the queries of a leaf ascend
        span[0], span[1] = min(span[0], first_hit), max(span[1], last)
