"""Lay out clusters: the queries at one node, as a bitmap of rows of bits, as packed rows, or both.

Cluster c is described by the eight words from `8 · c` on, which are one cache line:

    COUNT      queries in the bitmap, and its columns in the upper half
    BITS       the first word of its bits
    COLUMNS    where its columns begin
    TABLES     where their tables begin
    MEMBERS    where its queries begin
    PROGRAMS   how many of these have a program
    ROWS       where the packed rows of all other queries begin (`kernels.rows`)
    LIVING     the first word of a bit for each query of the bitmap: is it alive?

Each part ends where that of the next cluster begins. Behind the last cluster there is one more
description, of an empty cluster.

A bitmap has a row of bits for each region of each column, a bit for each query. A query's bit is
set in the row of a region when the query accepts the region, or does not mention the column. The
AND of one row for each column is the set of matches. Regions are those of the cluster, which are
fewer than those of the whole set: the ends of its own queries' intervals.

A column of a bitmap is four numbers: the column, where the regions of its codes are, its first row
and the number of its bounds. A column of up to 255 codes has a table of the region of each code,
and no bounds; any other has its bounds, ascending, among which the event's code is searched.

A member of a bitmap is a query. If it has a program, it is −1 − p instead: at p, behind all
members, are the query and twice where the program begins, and one more if the query may be met more
than once for an event.
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
COUNT, BITS, COLUMNS, TABLES, MEMBERS, PROGRAMS, ROWS, LIVING = range(WORDS)
HALF = 32  # bits of a word, of which the upper half counts the columns
COLUMN = 4  # numbers about a column of a bitmap
PIECE = 4  # numbers about an interval while a bitmap is filled
MAX_TABLE_CODE = 254  # so that a region fits into a byte
PADDING = 3  # words behind all bits, since rows are read in blocks of four

MIN_BITMAP_QUERIES = 8  # of a cluster
# In units that were fitted to measurements, a bitmap takes 2 to find each of its rows of bits and ½
# for each word of them; a query in a row takes 5.
ROW_COST, WORD_COST, QUERY_COST = 2.0, 0.5, 5.0
MAX_BITMAP_GROWTH = 10  # how many times larger than the rows that it replaces


@kernel
def make_brief(column, starts, low, high):
    """Return by atom: its column, the number of its intervals, the first low and the last high.

    They lie together, since atoms are read in no order.
    """
    # (atoms, 4), of which the ends stay 0 where there is no interval
    brief = np.zeros((len(column), 4), np.int32)
    for a in range(len(column)):
        brief[a, 0], brief[a, 1] = column[a], starts[a + 1] - starts[a]
        if brief[a, 1] > 0:
            brief[a, 2], brief[a, 3] = low[starts[a]], high[starts[a + 1] - 1]
    return brief


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
    brief,
    starts,
    low,
    high,
    greatest,
    code_base,
):
    """Return for each cluster: columns, bounds, listed bounds, tables and numbers of rows.

    The entries of cluster c are those from `start[c]` to `start[c + 1]`, of which the first
    `fit[c]` may be in a bitmap. Entry i is query `queries[i]` without the condition `key_atom[i]`,
    which holds wherever it is met; `entry[q]` is 0 or greater if query q has a program besides.
    `brief` has by atom its column, the number of its intervals, the first low and the last high.
    A cluster without a bitmap has −1 columns. Listed bounds are those of columns without a table.
    """
    clusters = len(start) - 1
    plan = np.zeros((clusters, 5), np.int64)
    # the last cluster that had a bound at a code, or a condition on a column
    met_code = np.full(code_base[-1], -1, np.int64)
    met_column = np.full(len(greatest), -1, np.int64)
    pieces = np.empty((64, PIECE), np.int32)
    for c in range(clusters):
        n = fit[c] if fit[c] >= MIN_BITMAP_QUERIES else 0
        columns, bounds, listed, table = 0, 0, 0, 0
        if n > 0:
            pieces, used = _gather(
                start[c],
                start[c] + n,
                queries,
                key_atom,
                offsets,
                program,
                in_row,
                brief,
                starts,
                low,
                high,
                pieces,
            )
            for k in range(used):
                o = pieces[k, 1]
                if met_column[o] != c:
                    met_column[o] = c
                    columns += 1
                    table += greatest[o] + 1 if greatest[o] <= MAX_TABLE_CODE else 0
                # a bound at 0, or behind the greatest code, would divide nothing
                for code in (pieces[k, 2], pieces[k, 3]):
                    at = code_base[o] + code
                    if 0 < code <= greatest[o] and met_code[at] != c:
                        met_code[at] = c
                        bounds += 1
                        listed += greatest[o] > MAX_TABLE_CODE
        words = (n + 63) >> 6
        numbers = _count_numbers(
            start[c], start[c] + n, queries, key_atom, entry, offsets, program, in_row, size
        )
        in_bytes = 8 * (bounds + columns) * words + table + 4 * (n + listed + COLUMN * columns)
        if not (
            n > 0
            and columns * (ROW_COST + WORD_COST * words) < QUERY_COST * n
            and in_bytes <= MAX_BITMAP_GROWTH * 4 * numbers
        ):
            columns, bounds, listed, table, n = -1, 0, 0, 0, 0
        plan[c, 0], plan[c, 1], plan[c, 2], plan[c, 3] = columns, bounds, listed, table
        plan[c, 4] = _count_numbers(
            start[c] + n, start[c + 1], queries, key_atom, entry, offsets, program, in_row, size
        )
    return plan


@kernel
def _count_numbers(begin, end, queries, key_atom, entry, offsets, program, in_row, size):
    """Return how many numbers the packed rows of some entries take."""
    numbers = 0
    for i in range(begin, end):
        q = queries[i]
        # a head, an item for the program, and each condition but the key
        numbers += HEAD + (2 if entry[q] >= 0 else 0)
        for k in range(offsets[q], offsets[q + 1]):
            if in_row[k] and program[k] != key_atom[i]:
                numbers += size[program[k]]
    return numbers


@kernel
def _gather(
    begin,
    end,
    queries,
    key_atom,
    offsets,
    program,
    in_row,
    brief,
    starts,
    low,
    high,
    pieces,
):
    """Collect the intervals of some entries, so that what follows reads them in a row.

    A piece is the entry's number among these, negated and less one if the piece is not the first
    of its condition; the column, the low end, and the high end plus one. Return the pieces, which
    may have grown, and their number.
    """
    used = 0
    for i in range(begin, end):
        q = queries[i]
        for k in range(offsets[q], offsets[q + 1]):
            a = program[k]
            if not in_row[k] or a == key_atom[i]:
                continue
            count = brief[a, 1]
            # how many there will be is not known, so the array doubles
            if used + count > len(pieces):
                more = np.empty((2 * len(pieces) + count, PIECE), np.int32)
                more[:used] = pieces[:used]
                pieces = more
            pieces[used, 0], pieces[used, 1] = i - begin, brief[a, 0]
            pieces[used, 2], pieces[used, 3] = brief[a, 2], brief[a, 3] + 1
            # most conditions are one interval; others are read one by one
            if count > 1:
                for j in range(count):
                    at = used + j
                    pieces[at, 0] = i - begin if j == 0 else begin - i - 1
                    pieces[at, 1] = brief[a, 0]
                    pieces[at, 2], pieces[at, 3] = low[starts[a] + j], high[starts[a] + j] + 1
            used += count
    return pieces, used


@kernel
def _describe(plan, start, fit, queries, entry):
    """Return the descriptions of all clusters, with the ends of all parts behind them."""
    clusters = len(plan)
    descriptions = np.zeros((clusters + 1, WORDS), np.int64)
    for c in range(clusters):
        has_bitmap = plan[c, 0] >= 0
        n, columns = (fit[c], plan[c, 0]) if has_bitmap else (np.int64(0), np.int64(0))
        words = (n + 63) >> 6
        # where a part ends is where that of the next cluster begins
        here, behind = descriptions[c], descriptions[c + 1]
        here[COUNT] = n | columns << HALF
        for i in range(start[c], start[c] + n):
            here[PROGRAMS] += entry[queries[i]] >= 0
        behind[BITS] = here[BITS] + (plan[c, 1] + columns) * words
        behind[COLUMNS] = here[COLUMNS] + COLUMN * columns + plan[c, 2]
        behind[TABLES] = here[TABLES] + plan[c, 3]
        behind[MEMBERS] = here[MEMBERS] + n + 2 * here[PROGRAMS]
        behind[ROWS] = here[ROWS] + plan[c, 4]
        behind[LIVING] = here[LIVING] + words
    return descriptions


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
    brief,
    starts,
    low,
    high,
    greatest,
    code_base,
):
    """Return descriptions, bits, columns, tables, members, rows, and how many living words."""
    clusters = len(plan)
    descriptions = _describe(plan, start, fit, queries, entry)
    totals = descriptions[clusters]
    bits = np.zeros(totals[BITS] + PADDING, np.uint64)
    about, tables = np.zeros(totals[COLUMNS], np.int32), np.zeros(totals[TABLES], np.uint8)
    members, rows = np.empty(totals[MEMBERS], np.int32), np.empty(totals[ROWS], np.int32)
    # by code: the last cluster with a bound there, and the region that begins at it; by column: the
    # last cluster that mentions it, by how many pieces, and where it stands among its columns
    met_code, region_at = np.full(code_base[-1], -1, np.int64), np.empty(code_base[-1], np.int32)
    met_column, place_of = np.full(len(greatest), -1, np.int64), np.empty(len(greatest), np.int64)
    mentions, met = np.zeros(len(greatest), np.int64), np.empty(len(greatest), np.int64)
    pieces = np.empty((64, PIECE), np.int32)
    edges = np.empty(64, np.int64)
    for c in range(clusters):
        n = descriptions[c, COUNT] & ((1 << HALF) - 1)
        if n > 0:
            _fill_members(descriptions[c], start[c], n, queries, entry, repeated, members)
            pieces, used = _gather(
                start[c],
                start[c] + n,
                queries,
                key_atom,
                offsets,
                program,
                in_row,
                brief,
                starts,
                low,
                high,
                pieces,
            )
            if plan[c, 2] > len(edges):
                edges = np.empty(2 * plan[c, 2], np.int64)
            columns, listed = 0, 0
            for k in range(used):
                o = pieces[k, 1]
                if met_column[o] != c:
                    met_column[o] = c
                    mentions[o] = 0
                    met[columns] = o
                    columns += 1
                mentions[o] += 1
                for code in (pieces[k, 2], pieces[k, 3]):
                    at = code_base[o] + code
                    if 0 < code <= greatest[o] and met_code[at] != c:
                        met_code[at] = c
                        if greatest[o] > MAX_TABLE_CODE:
                            edges[listed] = at
                            listed += 1
            # the column that most queries mention first: its rows of bits are the emptiest
            order = met[:columns][np.argsort(-mentions[met[:columns]])]
            if listed:
                edges[:listed].sort()  # by column and code, as `code_base` ascends
            _fill_columns(
                descriptions[c],
                order,
                edges[:listed],
                greatest,
                code_base,
                met_code,
                c,
                region_at,
                about,
                tables,
                place_of,
            )
            _fill_bits(
                descriptions[c],
                descriptions[c + 1, BITS],
                pieces[:used],
                greatest,
                code_base,
                region_at,
                about,
                place_of,
                bits,
            )
        _fill_rows(
            descriptions[c, ROWS],
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
            brief,
            starts,
            low,
            high,
            rows,
        )
    return descriptions.ravel(), bits, about, tables, members, rows, totals[LIVING]


@kernel
def _fill_members(description, begin, n, queries, entry, repeated, members):
    """Write the queries of a bitmap, and behind them those that have a program."""
    member, behind = description[MEMBERS], n
    for i in range(n):
        q = queries[begin + i]
        members[member + i] = q
        # a negative number says where the query and its program are
        if entry[q] >= 0:
            members[member + i] = -1 - behind
            members[member + behind] = q
            members[member + behind + 1] = 2 * np.int64(entry[q]) + repeated[q]
            behind += 2


@kernel
def _fill_columns(
    description,
    order,
    edges,
    greatest,
    code_base,
    met_code,
    c,
    region_at,
    about,
    tables,
    place_of,
):
    """Write the columns of a bitmap with their tables or bounds; number the regions."""
    first = description[COLUMNS]
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
                tables[description[TABLES] + table + code] = regions
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
    description,
    end,
    pieces,
    greatest,
    code_base,
    region_at,
    about,
    place_of,
    bits,
):
    """Write the rows of bits of a bitmap, which end at `end`.

    First a bit says that the query changes its mind between a region and the one below. Then each
    row is made from the one below, which takes one pass over the bits.
    """
    first, origin = description[COLUMNS], description[BITS]
    words = ((description[COUNT] & ((1 << HALF) - 1)) + 63) >> 6
    columns = description[COUNT] >> HALF
    for place in range(columns):
        # below all bounds, every query accepts a column that it does not mention
        row = np.int64(about[first + COLUMN * place + 2])
        for w in range(words):
            bits[origin + row * words + w] = ~np.uint64(0)
    for k in range(len(pieces)):
        i, o, low, high = pieces[k, 0], pieces[k, 1], pieces[k, 2], pieces[k, 3]
        is_first = i >= 0
        i = i if is_first else -1 - i
        base, row = code_base[o], np.int64(about[first + COLUMN * place_of[o] + 2])
        at, bit = origin + row * words + (i >> 6), np.uint64(1) << np.uint64(i & 63)
        if is_first:
            bits[at] ^= bit
        bits[at + (region_at[base + low] if low > 0 else 0) * words] ^= bit
        if high <= greatest[o]:
            bits[at + region_at[base + high] * words] ^= bit
    for place in range(columns):
        begin = origin + (np.int64(about[first + COLUMN * place + 2]) + 1) * words
        behind = end
        if place + 1 < columns:
            behind = origin + np.int64(about[first + COLUMN * (place + 1) + 2]) * words
        for at in range(begin, behind):
            bits[at] ^= bits[at - words]


@kernel
def _fill_rows(
    at,
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
    brief,
    starts,
    low,
    high,
    rows,
):
    """Write the packed rows of some entries."""
    for i in range(begin, end):
        q, head, mask = queries[i], at, np.int64(0)
        at += HEAD
        for k in range(offsets[q], offsets[q + 1]):
            a = program[k]
            if in_row[k] and a != key_atom[i]:
                column = np.int64(brief[a, 0])
                # code 0 is NULL: without it the column must be present
                if brief[a, 2] > 0:
                    mask |= np.int64(1) << (column % MASK_BITS)
                if form[a] == SHORT:
                    rows[at] = to_signed(column << 16 | brief[a, 2] << 8 | brief[a, 3])
                    at += 1
        rows[head + 3] = at - head
        for k in range(offsets[q], offsets[q + 1]):
            a = program[k]
            if in_row[k] and a != key_atom[i] and form[a] != SHORT:
                at = write_atom(a, form[a], brief[a, 0], starts, low, high, rows, at)
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
            if number < 0:
                number = members[descriptions[c + MEMBERS] - 1 - number]
            bit = alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1)
            living[descriptions[c + LIVING] + (i >> 6)] |= bit << np.uint64(i & 63)
    return living
