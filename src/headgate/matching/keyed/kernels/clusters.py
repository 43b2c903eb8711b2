"""Lay out clusters: the queries at one node, as a bitmap of rows of bits, as packed rows, or both.

Cluster c is described by the eight words from `8 · c` on, which are one cache line:

    COUNT      queries in the bitmap, and its columns in the upper half
    BITS       the first word of its bits
    COLUMNS    where its columns begin
    TABLES     where their tables begin
    MEMBERS    where its queries begin
    ROWS, END  where the packed rows of all other queries begin and end (`kernels.rows`)
    LIVING     the first word of a bit for each query of the bitmap: is it alive?

A bitmap has a row of bits for each region of each column, a bit for each query. A query's bit is
set in the row of a region when the query accepts the region, or does not mention the column. The
AND of one row for each column is the set of matches. Regions are those of the cluster, which are
fewer than those of the whole set: the ends of its own queries' intervals.

A column of a bitmap is four numbers: the column, where the regions of its codes are, its first row
and the number of its bounds. A column of up to 255 codes has a table of the region of each code,
and no bounds; any other has its bounds, ascending, among which the event's code is searched.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.keyed.kernels.rows import (
    HEAD,
    ITEM_BITS,
    MASK_BITS,
    PROGRAM,
    SHORT,
    to_signed,
    write_atom,
)

WORDS = 8  # in a description
COUNT, BITS, COLUMNS, TABLES, MEMBERS, ROWS, END, LIVING = range(WORDS)
HALF = 32  # bits of a word, of which the upper half counts the columns
COLUMN = 4  # numbers about a column of a bitmap
MAX_TABLE_CODE = 254  # so that a region fits into a byte
PADDING = 3  # words behind all bits, since rows are read in blocks of four

MIN_BITMAP_QUERIES = 8  # of a cluster
# In units that were fitted to measurements, a bitmap takes 2 to find each of its rows of bits and ½
# for each word of them; a query in a row takes 5.
ROW_COST, WORD_COST, QUERY_COST = 2.0, 0.5, 5.0
MAX_BITMAP_GROWTH = 10  # how many times larger than the rows that it replaces


@kernel
def plan_clusters(
    start,
    fit,
    queries,
    key_atom,
    entry,
    offsets,
    program,
    in_row,
    size,
    column,
    starts,
    low,
    high,
    greatest,
    code_base,
):
    """Return, for each cluster: columns, bounds, tables and rows of its bitmap, numbers of its rows.

    The entries of cluster c are those from `start[c]` to `start[c + 1]`, of which the first
    `fit[c]` may be in a bitmap. Entry i is query `queries[i]` without the condition `key_atom[i]`,
    which holds wherever it is met; `entry[q]` is 0 or greater if query q has a program besides.
    A cluster without a bitmap has −1 columns.
    """
    clusters = len(start) - 1
    plan = np.zeros((clusters, 5), np.int64)
    # the last cluster that had a bound at a code, or a condition on a column
    met_code, met_column = (
        np.full(code_base[-1], -1, np.int64),
        np.full(len(greatest), -1, np.int64),
    )
    for c in range(clusters):
        n = fit[c] if fit[c] >= MIN_BITMAP_QUERIES else 0
        columns, bounds, listed, table, numbers = 0, 0, 0, 0, 0
        for i in range(start[c], start[c] + n):
            numbers += HEAD
            q = queries[i]
            for k in range(offsets[q], offsets[q + 1]):
                a = program[k]
                if not in_row[k] or a == key_atom[i]:
                    continue
                numbers += size[a]
                o = column[a]
                if met_column[o] != c:
                    met_column[o] = c
                    columns += 1
                    table += greatest[o] + 1 if greatest[o] <= MAX_TABLE_CODE else 0
                for j in range(starts[a], starts[a + 1]):
                    # a bound at 0, or behind the greatest code, would divide nothing
                    for code in (np.int64(low[j]), np.int64(high[j]) + 1):
                        at = code_base[o] + code
                        if 0 < code <= greatest[o] and met_code[at] != c:
                            met_code[at] = c
                            bounds += 1
                            listed += greatest[o] > MAX_TABLE_CODE
        words = (n + 63) >> 6
        bytes_ = 8 * (bounds + columns) * words + table + 4 * (n + listed + COLUMN * columns)
        if not (
            n > 0
            and columns * (ROW_COST + WORD_COST * words) < QUERY_COST * n
            and bytes_ <= MAX_BITMAP_GROWTH * 4 * numbers
        ):
            columns, bounds, listed, table, n = -1, 0, 0, 0, 0
        numbers = 0
        for i in range(start[c] + n, start[c + 1]):
            q = queries[i]
            numbers += HEAD + (2 if entry[q] >= 0 else 0)
            for k in range(offsets[q], offsets[q + 1]):
                if in_row[k] and program[k] != key_atom[i]:
                    numbers += size[program[k]]
        plan[c, 0], plan[c, 1], plan[c, 2] = columns, bounds, listed
        plan[c, 3], plan[c, 4] = table, numbers
    return plan


@kernel
def fill_clusters(
    plan,
    start,
    fit,
    queries,
    key_atom,
    entry,
    repeated,
    offsets,
    program,
    in_row,
    form,
    column,
    starts,
    low,
    high,
    greatest,
    code_base,
):
    """Return descriptions, bits, columns, tables, members and rows, and the words of living bits."""
    clusters = len(plan)
    descriptions = np.zeros((clusters, WORDS), np.int64)
    totals = np.zeros(WORDS, np.int64)
    for c in range(clusters):
        has_bitmap = plan[c, 0] >= 0
        n, columns = (fit[c], plan[c, 0]) if has_bitmap else (np.int64(0), np.int64(0))
        words = (n + 63) >> 6
        descriptions[c, COUNT] = n | columns << HALF
        for part in (BITS, COLUMNS, TABLES, MEMBERS, ROWS, LIVING):
            descriptions[c, part] = totals[part]
        totals[BITS] += (plan[c, 1] + columns) * words
        totals[COLUMNS] += COLUMN * columns + plan[c, 2]
        totals[TABLES] += plan[c, 3]
        totals[MEMBERS] += n
        totals[ROWS] += plan[c, 4]
        totals[LIVING] += words
        descriptions[c, END] = totals[ROWS]
    bits = np.zeros(totals[BITS] + PADDING, np.uint64)
    about, tables = np.zeros(totals[COLUMNS], np.int32), np.zeros(totals[TABLES], np.uint8)
    members, rows = np.empty(totals[MEMBERS], np.int32), np.empty(totals[ROWS], np.int32)
    # by code: the last cluster with a bound there, and the region that begins at it; by column: the
    # last cluster that mentions it, by how many queries, and where it stands among its columns
    met_code, region_at = np.full(code_base[-1], -1, np.int64), np.empty(code_base[-1], np.int32)
    met_column, place_of = np.full(len(greatest), -1, np.int64), np.empty(len(greatest), np.int64)
    mentions, found = np.zeros(len(greatest), np.int64), np.empty(len(greatest), np.int64)
    edges = np.empty(max(1, plan[:, 2].max()) if clusters else 1, np.int64)
    for c in range(clusters):
        n = descriptions[c, COUNT] & ((1 << HALF) - 1)
        if n > 0:
            # the columns, the one that most queries mention first: its rows have most bits at 0
            columns, listed = 0, 0
            for i in range(start[c], start[c] + n):
                members[descriptions[c, MEMBERS] + i - start[c]] = queries[i]
                q = queries[i]
                for k in range(offsets[q], offsets[q + 1]):
                    a = program[k]
                    if not in_row[k] or a == key_atom[i]:
                        continue
                    o = column[a]
                    if met_column[o] != c:
                        met_column[o] = c
                        mentions[o] = 0
                        found[columns] = o
                        columns += 1
                    mentions[o] += 1
                    for j in range(starts[a], starts[a + 1]):
                        for code in (np.int64(low[j]), np.int64(high[j]) + 1):
                            at = code_base[o] + code
                            if 0 < code <= greatest[o] and met_code[at] != c:
                                met_code[at] = c
                                if greatest[o] > MAX_TABLE_CODE:
                                    edges[listed] = at
                                    listed += 1
            order = found[:columns][np.argsort(-mentions[found[:columns]])]
            if listed:
                edges[:listed].sort()  # by column and code, as `code_base` ascends
            _fill_columns(
                descriptions,
                c,
                n,
                order,
                edges[:listed],
                greatest,
                code_base,
                met_code,
                region_at,
                about,
                tables,
                place_of,
            )
            _fill_bits(
                descriptions,
                c,
                n,
                start,
                queries,
                key_atom,
                offsets,
                program,
                in_row,
                column,
                starts,
                low,
                high,
                greatest,
                code_base,
                region_at,
                about,
                place_of,
                bits,
            )
        _fill_rows(
            descriptions,
            c,
            start[c] + n,
            start[c + 1],
            queries,
            key_atom,
            entry,
            repeated,
            offsets,
            program,
            in_row,
            form,
            column,
            starts,
            low,
            high,
            rows,
        )
    return descriptions.ravel(), bits, about, tables, members, rows, totals[LIVING]


@kernel
def _fill_columns(
    descriptions,
    c,
    n,
    order,
    edges,
    greatest,
    code_base,
    met_code,
    region_at,
    about,
    tables,
    place_of,
):
    """Write the columns of a bitmap with their tables or bounds; number the regions."""
    first = descriptions[c, COLUMNS]
    bound = COLUMN * len(order)  # from `first` on, behind all columns
    table, row = 0, 0
    for place in range(len(order)):
        o = order[place]
        place_of[o] = place
        at = first + COLUMN * place
        about[at], about[at + 2] = o, row
        base, regions = code_base[o], 0
        if greatest[o] <= MAX_TABLE_CODE:
            about[at + 1], about[at + 3] = table, 0
            for code in range(greatest[o] + 1):
                if met_code[base + code] == c:
                    regions += 1
                    region_at[base + code] = regions
                tables[descriptions[c, TABLES] + table + code] = regions
            table += greatest[o] + 1
        else:
            about[at + 1] = bound
            for k in range(np.searchsorted(edges, base), len(edges)):
                if edges[k] >= code_base[o + 1]:
                    break
                about[first + bound] = edges[k] - base
                regions += 1
                region_at[edges[k]] = regions
                bound += 1
            about[at + 3] = regions
        row += regions + 1


@kernel
def _fill_bits(
    descriptions,
    c,
    n,
    start,
    queries,
    key_atom,
    offsets,
    program,
    in_row,
    column,
    starts,
    low,
    high,
    greatest,
    code_base,
    region_at,
    about,
    place_of,
    bits,
):
    """Write the rows of bits of a bitmap.

    First a bit says that the query changes its mind between a region and the one below. Then each
    row is made from the one below, which takes one pass over the bits.
    """
    first, words = descriptions[c, COLUMNS], (n + 63) >> 6
    columns = descriptions[c, COUNT] >> HALF
    origin = descriptions[c, BITS]
    rows = 0
    for place in range(columns):
        # below all bounds, every query accepts a column that it does not mention
        row = about[first + COLUMN * place + 2]
        for w in range(words):
            bits[origin + row * words + w] = ~np.uint64(0)
    for i in range(n):
        q = queries[start[c] + i]
        word, bit = origin + (i >> 6), np.uint64(1) << np.uint64(i & 63)
        for k in range(offsets[q], offsets[q + 1]):
            a = program[k]
            if not in_row[k] or a == key_atom[start[c] + i]:
                continue
            o = column[a]
            base, row = code_base[o], np.int64(about[first + COLUMN * place_of[o] + 2])
            bits[word + row * words] ^= bit
            for j in range(starts[a], starts[a + 1]):
                begin = region_at[base + low[j]] if low[j] > 0 else 0
                bits[word + (row + begin) * words] ^= bit
                if high[j] < greatest[o]:
                    bits[word + (row + region_at[base + high[j] + 1]) * words] ^= bit
    for place in range(columns):
        row = np.int64(about[first + COLUMN * place + 2])
        if place + 1 < columns:
            rows = np.int64(about[first + COLUMN * (place + 1) + 2])
        else:
            rows = _count_rows(descriptions, c, words, len(bits))
        for at in range(origin + (row + 1) * words, origin + rows * words):
            bits[at] ^= bits[at - words]


@kernel
def _count_rows(descriptions, c, words, end):
    """Return how many rows of bits a bitmap has."""
    behind = descriptions[c + 1, BITS] if c + 1 < len(descriptions) else end - PADDING
    return (behind - descriptions[c, BITS]) // words


@kernel
def _fill_rows(
    descriptions,
    c,
    begin,
    end,
    queries,
    key_atom,
    entry,
    repeated,
    offsets,
    program,
    in_row,
    form,
    column,
    starts,
    low,
    high,
    rows,
):
    """Write the packed rows of some entries."""
    at = descriptions[c, ROWS]
    for i in range(begin, end):
        q, head, mask = queries[i], at, np.int64(0)
        at += HEAD
        for k in range(offsets[q], offsets[q + 1]):
            a = program[k]
            if in_row[k] and a != key_atom[i]:
                interval = starts[a]
                # code 0 is NULL: without it the column must be present
                if low[interval] > 0:
                    mask |= np.int64(1) << (column[a] % MASK_BITS)
                if form[a] == SHORT:
                    short = np.int64(column[a]) << 16 | low[interval] << 8 | high[interval]
                    rows[at] = to_signed(short)
                    at += 1
        rows[head + 3] = at - head
        for k in range(offsets[q], offsets[q + 1]):
            a = program[k]
            if in_row[k] and a != key_atom[i] and form[a] != SHORT:
                at = write_atom(a, form, column, starts, low, high, rows, at)
        if entry[q] >= 0:
            rows[at] = np.int64(repeated[q]) << ITEM_BITS | PROGRAM
            rows[at + 1] = entry[q]
            at += 2
        rows[head], rows[head + 1], rows[head + 2] = to_signed(mask), q, at - head


@kernel
def pack_living(descriptions, members, living_words, alive):
    """Return a bit for each query of each bitmap: is it alive? `alive` has one for each query."""
    # as many words more as are read behind the last
    living = np.zeros(living_words + PADDING, np.uint64)
    for c in range(0, len(descriptions), WORDS):
        for i in range(descriptions[c + COUNT] & ((1 << HALF) - 1)):
            number = members[descriptions[c + MEMBERS] + i]
            bit = alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1)
            living[descriptions[c + LIVING] + (i >> 6)] |= bit << np.uint64(i & 63)
    return living
