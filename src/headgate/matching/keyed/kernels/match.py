"""The inner loop: match events against the grid and the clusters that their values lead to."""

from __future__ import annotations

import numpy as np

from headgate.jit import (
    copy_lanes,
    inlined_kernel,
    load_unchecked,
    lowest_bit,
    plain_kernel,
    popcount,
    prefetch,
    store_unchecked,
)
from headgate.matching.keyed.kernels.clusters import (
    BITS,
    COLUMN,
    COLUMNS,
    COUNT,
    HALF,
    LIVING,
    MEMBERS,
    PROGRAMS,
    ROWS,
    TABLES,
    WORDS,
)
from headgate.matching.keyed.kernels.grid import match_grid
from headgate.matching.keyed.kernels.programs import program_holds
from headgate.matching.keyed.kernels.rows import (
    CODES,
    GAP,
    HEAD,
    INTERVAL,
    ITEM_BITS,
    MASK_BITS,
    MASK_CODES,
)

LINE, LINE_BYTES = 16, 64  # numbers of 32 bits, and bytes, in a cache line
MAX_LINES = 32  # of the columns of a bitmap, and of their tables, that are loaded ahead
ALL_BITS = ~np.uint64(0)


@plain_kernel
def match(programs, clusters, grid, events, begin, stop, scratch, living, appended, out, offsets):
    """Match events from `begin` on, up to `stop` or until `out` might not hold the next one.

    Return the event after the last. `offsets[e - begin]` is where the matches of event e begin,
    which are in no particular order. The groups of arrays are described in `arrays`.
    """
    used = 0
    codes = scratch.codes
    e = begin
    while e < stop:
        # an event can match every query once, and the appended ones: it must fit whole
        more = 0
        if len(appended.offsets):
            more = appended.offsets[e - begin + 1] - appended.offsets[e - begin]
        if len(out) - used < clusters.queries + more:
            break
        offsets[e - begin] = used
        # a new time makes all stamps of earlier events void, without clearing them
        scratch.clock[0] += 1
        now = scratch.clock[0]
        present, count = _load_event(clusters, events, e, codes, scratch.met)
        count = _follow_nulls(clusters, codes, scratch.met, count)
        if events.ranks.shape[1]:
            count = _follow_patterns(clusters, events, e, codes, scratch, now, count)
        if len(clusters.compared):
            count = _follow_bits(clusters, events, e, scratch.met, count)
        if len(grid.columns):
            used = match_grid(grid, living.grid, codes, scratch, out, used)
        # all that will be read is loaded while descriptions of other clusters are
        for i in range(count):
            _prefetch_cluster(clusters, scratch.met[i])
        absent = ~present & ((np.int64(1) << MASK_BITS) - 1)
        # the rows of bits of a cluster are found, and loaded, before the one before it is matched
        half = len(scratch.rows) >> 1
        if count:
            _find_rows(clusters, load_unchecked(scratch.met, 0), codes, scratch.rows, 0)
        for i in range(count):
            c = load_unchecked(scratch.met, i)
            if i + 1 < count:
                ahead = load_unchecked(scratch.met, i + 1)
                _find_rows(clusters, ahead, codes, scratch.rows, half * ((i + 1) & 1))
            if load_unchecked(clusters.descriptions, c + COUNT) != 0:
                first = used
                used = _match_bitmap(
                    clusters, c, living.bitmaps, scratch.rows, half * (i & 1), out, used
                )
                if load_unchecked(clusters.descriptions, c + PROGRAMS) != 0:
                    used = _check_members(
                        programs, clusters, c, events, e, scratch, now, out, first, used
                    )
            used = _match_rows(
                programs, clusters, c, events, e, absent, scratch, living.numbers, now, out, used
            )
        # queries that no key leads to
        for i in range(len(clusters.unkeyed)):
            if program_holds(
                np.int64(clusters.unkeyed_entry[i]),
                programs.tests,
                programs.lists,
                codes,
                events.bits,
                e,
                scratch.stamp,
                scratch.cells,
                now,
            ):
                out[used] = clusters.unkeyed[i]
                used += _is_alive(living.numbers, clusters.unkeyed[i])
        # from numbers to positions, with the matches of other parts behind them
        if len(appended.position):
            for i in range(offsets[e - begin], used):
                out[i] = appended.position[out[i]]
        for i in range(more):
            out[used + i] = appended.matches[appended.offsets[e - begin] + i]
        used += more
        # only what was set: there may be very many columns
        for k in range(events.start[e], events.start[e + 1]):
            codes[events.column[k]] = 0
        e += 1
    offsets[e - begin] = used
    return e


@inlined_kernel
def _load_event(clusters, events, e, codes, met):
    """Spread an event's codes by column, and list the clusters on their paths.

    Return the columns that it has, as a mask of bits, and the number of clusters.
    """
    present, count = np.int64(0), 0
    for k in range(events.start[e], events.start[e + 1]):
        column = np.int64(load_unchecked(events.column, k))
        code = np.int64(load_unchecked(events.code, k))
        # columns with the same remainder share a bit of the mask
        store_unchecked(codes, column, code)
        present |= np.int64(1) << (column % MASK_BITS)
        count = _follow_path(clusters, column, code, met, count)
    return present, count


@inlined_kernel
def _follow_path(clusters, column, code, met, count):
    """List the clusters at the nodes from a code up to the root of its column."""
    # a heap: the leaf of code c is node `width + c`, the parent of node n is n / 2
    levels = load_unchecked(clusters.levels, column)
    base = load_unchecked(clusters.node_base, column)
    leaf = load_unchecked(clusters.width, column) + code
    while levels != 0:
        node = base + (leaf >> lowest_bit(levels))
        levels &= levels - np.uint64(1)
        word, bit = node >> 6, np.uint64(node & 63)
        nodes = load_unchecked(clusters.is_cluster, word)
        if nodes >> bit & np.uint64(1) != 0:
            # clusters are numbered like their nodes: as many as there are before
            before = popcount(nodes & ((np.uint64(1) << bit) - np.uint64(1)))
            c = (np.int64(load_unchecked(clusters.clusters_before, word)) + before) * WORDS
            prefetch(clusters.descriptions, c)
            store_unchecked(met, count, c)
            count += 1
    return count


@inlined_kernel
def _follow_nulls(clusters, codes, met, count):
    """List the clusters of columns whose absence leads to one, where they are absent."""
    for i in range(len(clusters.null_columns)):
        column = clusters.null_columns[i]
        if codes[column] == 0:
            count = _follow_path(clusters, column, np.int64(0), met, count)
    return count


@inlined_kernel
def _follow_patterns(clusters, events, e, codes, scratch, now, count):
    """Stamp the patterns that match an event's texts; list the clusters for LIKE and NOT LIKE."""
    for p in range(events.ranks.shape[1]):
        if codes[events.pattern_column[p]] != 0:
            text = events.first_text[p] + events.ranks[e, p]
            for i in range(events.matched_start[text], events.matched_start[text + 1]):
                slot = events.matched[i]
                # a program that asks for the pattern compares its stamp with the time
                scratch.stamp[slot] = now
                for side in range(2):
                    if clusters.of_pattern[slot, side] >= 0:
                        scratch.met[count] = clusters.of_pattern[slot, side] * WORDS
                        count += 1
    return count


@inlined_kernel
def _follow_bits(clusters, events, e, met, count):
    """List the clusters of comparisons, by their truth."""
    for i in range(len(clusters.compared)):
        c = clusters.of_truth[i, events.bits[e, clusters.compared[i]]]
        if c >= 0:
            met[count] = c * WORDS
            count += 1
    return count


@inlined_kernel
def _prefetch_cluster(clusters, c):
    """Begin to load what a cluster has, but for its bits: which rows is not known yet."""
    descriptions = clusters.descriptions
    rows = load_unchecked(descriptions, c + ROWS)
    prefetch(clusters.rows, rows)
    prefetch(clusters.rows, rows + LINE)
    if load_unchecked(descriptions, c + COUNT) != 0:
        prefetch(clusters.members, load_unchecked(descriptions, c + MEMBERS))
        # columns and tables end where those of the next cluster begin
        begin = load_unchecked(descriptions, c + COLUMNS)
        end = min(load_unchecked(descriptions, c + WORDS + COLUMNS), begin + MAX_LINES * LINE)
        for line in range(begin, end, LINE):
            prefetch(clusters.columns, line)
        begin = load_unchecked(descriptions, c + TABLES)
        end = load_unchecked(descriptions, c + WORDS + TABLES)
        end = min(end, begin + MAX_LINES * LINE_BYTES)
        for line in range(begin, end, LINE_BYTES):
            prefetch(clusters.tables, line)


@inlined_kernel
def _is_alive(alive, number):
    """Return 1 for a query that is alive, 0 for one that was removed."""
    if len(alive) == 0:
        return np.int64(1)
    return np.int64(alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1))


@inlined_kernel
def _match_bitmap(clusters, c, alive, rows, begin, out, used):
    """Append the members of a bitmap in all its rows from `begin` on; return where they end."""
    size = load_unchecked(clusters.descriptions, c + COUNT)
    columns, size = size >> HALF, size & ((np.int64(1) << HALF) - 1)
    width = (size + 63) >> 6
    # the last word has bits for queries that are not there
    last = ALL_BITS
    if size & 63:
        last = (np.uint64(1) << np.uint64(size & 63)) - np.uint64(1)
    bits, members = clusters.bits, clusters.members
    member = load_unchecked(clusters.descriptions, c + MEMBERS)
    life = load_unchecked(clusters.descriptions, c + LIVING)
    # four words at a time, in registers; rows end with words of others, which are read in vain
    w = np.int64(0)
    while w + 1 < width:
        x0 = x1 = x2 = x3 = ALL_BITS
        if len(alive):
            x0, x1 = load_unchecked(alive, life + w), load_unchecked(alive, life + w + 1)
            x2, x3 = load_unchecked(alive, life + w + 2), load_unchecked(alive, life + w + 3)
        for k in range(columns):
            at = load_unchecked(rows, begin + k) + w
            x0 &= load_unchecked(bits, at)
            x1 &= load_unchecked(bits, at + 1)
            x2 &= load_unchecked(bits, at + 2)
            x3 &= load_unchecked(bits, at + 3)
            if (x0 | x1 | x2 | x3) == 0:
                break
        left = width - w
        x1 &= last if left == 2 else ALL_BITS
        x2 &= last if left == 3 else ALL_BITS if left > 3 else np.uint64(0)
        x3 &= last if left == 4 else ALL_BITS if left > 4 else np.uint64(0)
        at = member + (w << 6)
        used = _append_members(x0, members, at, out, used)
        used = _append_members(x1, members, at + 64, out, used)
        used = _append_members(x2, members, at + 128, out, used)
        used = _append_members(x3, members, at + 192, out, used)
        w += 4
    if w < width:
        word = last
        if len(alive):
            word &= load_unchecked(alive, life + w)
        for k in range(columns):
            word &= load_unchecked(bits, load_unchecked(rows, begin + k) + w)
            if word == 0:
                break
        used = _append_members(word, members, member + (w << 6), out, used)
    return used


@inlined_kernel
def _find_rows(clusters, c, codes, rows, begin):
    """Write, from `begin` on, the first word of the row for each column of a bitmap, if any."""
    size = load_unchecked(clusters.descriptions, c + COUNT)
    columns, size = size >> HALF, size & ((np.int64(1) << HALF) - 1)
    width = (size + 63) >> 6
    first = load_unchecked(clusters.descriptions, c + COLUMNS)
    origin = load_unchecked(clusters.descriptions, c + BITS)
    table = load_unchecked(clusters.descriptions, c + TABLES)
    about = first
    for k in range(columns):
        code = np.int64(load_unchecked(codes, np.int64(load_unchecked(clusters.columns, about))))
        place = np.int64(load_unchecked(clusters.columns, about + 1))
        row = np.int64(load_unchecked(clusters.columns, about + 2))
        bounds = np.int64(load_unchecked(clusters.columns, about + 3))
        # a column of few codes has a table of regions, any other its bounds
        if bounds == 0:
            row += np.int64(load_unchecked(clusters.tables, table + place + code))
        else:
            row += _count_bounds(clusters.columns, first + place, bounds, code)
        word = origin + row * width
        prefetch(clusters.bits, word)
        store_unchecked(rows, begin + k, word)
        about += COLUMN


@inlined_kernel
def _count_bounds(columns, begin, count, code):
    """Return how many of some ascending bounds are not above a code."""
    # by halves: all before `left` are not above, all from `right` on are
    left, right = begin, begin + count
    while left < right:
        middle = (left + right) >> 1
        if np.int64(load_unchecked(columns, middle)) <= code:
            left = middle + 1
        else:
            right = middle
    return left - begin


@inlined_kernel
def _append_members(word, members, first, out, used):
    """Append the queries whose bits are set in a word; return the end of the output."""
    # where queries are alike, whole words of them match
    if word == ALL_BITS:
        copy_lanes(out, used, members, first)
        return used + 64
    while word != 0:
        store_unchecked(out, used, load_unchecked(members, first + lowest_bit(word)))
        used += 1
        word &= word - np.uint64(1)
    return used


@inlined_kernel
def _check_members(programs, clusters, c, events, e, scratch, now, out, begin, end):
    """Keep those of a bitmap's members whose programs accept an event; return where they end."""
    members = clusters.members
    first = load_unchecked(clusters.descriptions, c + MEMBERS)
    used = begin
    for i in range(begin, end):
        number, holds = np.int64(load_unchecked(out, i)), True
        if number < 0:
            # where the query and its program are
            at = first - 1 - number
            number = np.int64(load_unchecked(members, at))
            program = np.int64(load_unchecked(members, at + 1))
            # more than one literal may lead to the query, which must be appended once
            if program & 1:
                holds = scratch.seen[number] != now
                scratch.seen[number] = now
            holds = holds and program_holds(
                program >> 1,
                programs.tests,
                programs.lists,
                scratch.codes,
                events.bits,
                e,
                scratch.stamp,
                scratch.cells,
                now,
            )
        store_unchecked(out, used, number)
        used += np.int64(holds)
    return used


@inlined_kernel
def _match_rows(programs, clusters, c, events, e, absent, scratch, alive, now, out, used):
    """Append the queries of a cluster whose packed rows hold; return the end of the output."""
    rows, codes = clusters.rows, scratch.codes
    row = load_unchecked(clusters.descriptions, c + ROWS)
    end = load_unchecked(clusters.descriptions, c + WORDS + ROWS)
    while row < end:
        behind = row + np.int64(load_unchecked(rows, row + 2))
        # most queries fail the mask; of the others, most fail a short interval
        if np.int64(load_unchecked(rows, row)) & absent == 0:
            at, items = row + HEAD, row + np.int64(load_unchecked(rows, row + 3))
            holds = True
            while at < items:
                short = np.int64(load_unchecked(rows, at))
                code = np.int64(load_unchecked(codes, short >> 16 & 0xFFFF))
                if code < short >> 8 & 0xFF or code > short & 0xFF:
                    holds = False
                    break
                at += 1
            if holds and items < behind:
                holds = _items_hold(programs, rows, items, behind, row, events, e, scratch, now)
            if holds:
                query = np.int64(load_unchecked(rows, row + 1))
                store_unchecked(out, used, query)
                used += _is_alive(alive, query)
        row = behind
    return used


@inlined_kernel
def _items_hold(programs, rows, at, end, row, events, e, scratch, now):
    """Return whether what stands behind the short intervals of a row holds for an event."""
    codes = scratch.codes
    holds = True
    while holds and at < end:
        head = np.int64(load_unchecked(rows, at))
        kind, column = head & ((1 << ITEM_BITS) - 1), head >> ITEM_BITS
        first = np.int64(load_unchecked(rows, at + 1))
        if kind in (INTERVAL, GAP):
            code = np.int64(load_unchecked(codes, column))
            inside = first <= code <= np.int64(load_unchecked(rows, at + 2))
            holds = inside == (kind == INTERVAL)
            at += 3
        elif kind == CODES:
            distance = np.int64(load_unchecked(codes, column)) - first
            holds = False
            if 0 <= distance < MASK_CODES:
                half = np.int64(load_unchecked(rows, at + 2 + (distance >> 5)))
                holds = half >> (distance & 31) & 1 == 1
            at += 4
        else:
            # more than one literal may lead to the query, which must be appended once
            if column != 0:
                query = np.int64(load_unchecked(rows, row + 1))
                holds = scratch.seen[query] != now
                scratch.seen[query] = now
            holds = holds and program_holds(
                first,
                programs.tests,
                programs.lists,
                codes,
                events.bits,
                e,
                scratch.stamp,
                scratch.cells,
                now,
            )
            at += 2
    return holds
