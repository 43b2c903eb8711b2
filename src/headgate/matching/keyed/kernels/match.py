"""The inner loop: match events against the grid and the clusters that their values lead to."""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked, lowest_bit, plain_kernel, prefetch
from headgate.matching.keyed.arrays import NULL, TRUE
from headgate.matching.keyed.kernels.grid import match_grid
from headgate.matching.keyed.kernels.records import (
    HALF_MASK,
    HEAD,
    HEADER,
    INTERVAL,
    LEAF_COLUMN,
    LINE,
    LINE_WORDS,
    MASK_BITS,
    PROGRAM_ONCE,
    ROW,
)
from headgate.snapshot.arrays.atoms import COMPARE, CONSTANT, MATCHES, WITHIN

PREFETCHED_RECORDS = 4  # that are being loaded while one is read


@plain_kernel
def match(conditions, clusters, grid, events, begin, stop, scratch, living, appended, out, offsets):
    """Match events from `begin` on, up to `stop` or until `out` might not hold the next one.

    Return the event after the last. `offsets[e - begin]` is where the matches of event e begin,
    which are in no particular order. The groups of arrays are described in `arrays`.
    """
    used = 0
    count = len(conditions.offsets) - 1
    codes = scratch.codes
    e = begin
    while e < stop:
        # an event can match every query once, and the appended ones: it must fit whole
        more = 0
        if len(appended.offsets):
            more = appended.offsets[e - begin + 1] - appended.offsets[e - begin]
        if len(out) - used < count + more:
            break
        offsets[e - begin] = used
        # a new time makes all stamps of earlier events void, without clearing them
        scratch.clock[0] += 1
        now = scratch.clock[0]
        present = _load_event(events, e, codes)
        _stamp_patterns(events, e, codes, scratch.stamp, now)
        if len(grid.columns):
            used = match_grid(grid, living.grid, codes, scratch, out, used)
        # Heads are queued while their rows are being loaded, and checked when the queue is half
        # full: checking each at once would wait for memory.
        met = _find_records(conditions, clusters, events, e, codes, scratch.met)
        waiting = 0
        for i in range(met):
            ahead = scratch.met[min(i + PREFETCHED_RECORDS, met - 1)] * LINE
            prefetch(clusters.records, ahead)
            prefetch(clusters.records, ahead + LINE)
            base = scratch.met[i] * LINE
            if clusters.records[base] > 0:
                used = _match_bitmap(clusters, base, living.bitmaps, scratch, out, used)
            head, end = _head_range(clusters.records, base)
            while head < end:
                head, waiting = _queue_heads(
                    clusters.records, base, head, end, present, scratch.waiting, waiting
                )
                if head < end or waiting > len(scratch.waiting) // 2:
                    used = _check_queue(
                        conditions, clusters, events, e, now, scratch, waiting, living, out, used
                    )
                    waiting = 0
        used = _check_queue(
            conditions, clusters, events, e, now, scratch, waiting, living, out, used
        )
        # queries that no key leads to
        for q in clusters.unkeyed:
            if _program_holds(
                conditions, events.bits[e], q, codes, scratch.stamp, now, scratch.stack
            ):
                out[used] = q
                used += _is_alive(living.numbers, q)
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
def _load_event(events, e, codes):
    """Spread an event's codes by column; return the columns that it has, as a mask of bits."""
    present = np.int64(0)
    for k in range(events.start[e], events.start[e + 1]):
        column = events.column[k]
        codes[column] = events.code[k]
        present |= np.int64(1) << (column % MASK_BITS)
    return present


@inlined_kernel
def _is_alive(alive, number):
    """Return 1 for a query that is alive, 0 for one that was removed."""
    if len(alive) == 0:
        return np.int64(1)
    return np.int64(alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1))


@kernel
def count_reachable_records(clusters):
    """Return how many records an event can lead to at most."""
    # a match of each pattern, each comparison, and a path to the root for each column
    count = 2 * len(clusters.plain_line) + len(clusters.compared)
    for width in clusters.width:
        node = width
        while node >= 1:
            count += 1
            node >>= 1
    return count


@inlined_kernel
def _find_records(conditions, clusters, events, e, codes, met):
    """List the records that an event's codes, texts and comparisons lead to; return how many."""
    count = 0
    # codes that are there, then columns whose NULL leads somewhere
    for k in range(events.start[e], events.start[e + 1]):
        if clusters.is_used[events.column[k]]:
            count = _add_path(clusters, events.column[k], events.code[k], met, count)
    for c in clusters.null_columns:
        if codes[c] == 0:
            count = _add_path(clusters, c, 0, met, count)
    # patterns that matched the event's texts, for LIKE and NOT LIKE
    for p in range(events.ranks.shape[1]):
        if codes[events.pattern_column[p]] != 0:
            text = events.first_text[p] + events.ranks[e, p]
            for i in range(events.matched_start[text], events.matched_start[text + 1]):
                slot = events.matched[i]
                for line in (clusters.plain_line[slot], clusters.negated_line[slot]):
                    if line >= 0:
                        met[count] = line
                        count += 1
    for atom in clusters.compared:
        truth = events.bits[e, conditions.slot[atom]]
        line = clusters.line_of[clusters.bit_base + 3 * atom + truth]
        if line >= 0:
            met[count] = line
            count += 1
    return count


@inlined_kernel
def _add_path(clusters, column, code, met, count):
    """Add the records of the nodes from a code up to the root of its column."""
    # a heap: the leaf of code c is node `width + c`, the parent of node n is n / 2
    node = clusters.width[column] + code
    while node >= 1:
        line = clusters.line_of[clusters.node_base[column] + node]
        if line >= 0:
            met[count] = line
            count += 1
        node >>= 1
    return count


@inlined_kernel
def _stamp_patterns(events, e, codes, stamp, now):
    """Stamp the patterns that match the texts of an event with its time."""
    for p in range(events.ranks.shape[1]):
        if codes[events.pattern_column[p]] != 0:
            text = events.first_text[p] + events.ranks[e, p]
            for i in range(events.matched_start[text], events.matched_start[text + 1]):
                stamp[events.matched[i]] = now


@inlined_kernel
def _head_range(records, base):
    """Return where the heads of a record begin and end."""
    begin = base + records[base + 4]
    return begin, begin + HEAD * records[base + 3]


@inlined_kernel
def _queue_heads(records, base, head, end, present, waiting, count):
    """Put the heads whose columns are all present into `waiting`, and begin to load their rows.

    Return the head before which the queue was full, and how many are waiting.
    """
    absent_low, absent_high = ~present & HALF_MASK, ~(present >> 31) & HALF_MASK
    while head < end and count < len(waiting):
        # written first and counted only then: no branch around the store
        waiting[count, 0], waiting[count, 1] = base, head
        if not (records[head + 2] & absent_low or records[head + 3] & absent_high):
            prefetch(records, base + records[head + 1])
            prefetch(records, base + records[head + 1] + LINE)
            count += 1
        head += HEAD
    return head, count


@inlined_kernel
def _check_queue(conditions, clusters, events, e, now, scratch, count, living, out, used):
    """Append the waiting queries that hold for an event; return the end of the output."""
    records, codes = clusters.records, scratch.codes
    for i in range(count):
        base, head = scratch.waiting[i, 0], scratch.waiting[i, 1]
        q, row = records[head], base + records[head + 1]
        holds = _intervals_hold(records, row, codes)
        then = records[row + 1]
        if holds and then != 0:
            # more than one literal may lead to the query, which must be appended once
            if then == PROGRAM_ONCE:
                holds = scratch.seen[q] != now
                scratch.seen[q] = now
            holds = holds and _program_holds(
                conditions, events.bits[e], q, codes, scratch.stamp, now, scratch.stack
            )
        if holds:
            out[used] = q
            used += _is_alive(living.numbers, q)
    return used


@inlined_kernel
def _intervals_hold(records, row, codes):
    # column, low, high: a column c that is written −1 − c must have its code outside
    place = row + ROW
    for _ in range(records[row]):
        column = load_unchecked(records, place)
        code = load_unchecked(codes, column if column >= 0 else -1 - column)
        inside = load_unchecked(records, place + 1) <= code <= load_unchecked(records, place + 2)
        if inside != (column >= 0):
            return False
        place += INTERVAL
    return True


@inlined_kernel
def _match_bitmap(clusters, base, alive, scratch, out, used):
    """Append the queries of a bitmap that accept an event's codes; return the end of the output."""
    records, bits = clusters.records, clusters.bits
    codes, rows = scratch.codes, scratch.rows
    size, columns = records[base], records[base + 1]
    width = (size + 63) >> 6
    first_word = np.int64(records[base + 2]) * LINE_WORDS
    # rows[k]: the first word of the row for the event's region of the k-th column
    about = base + HEADER
    for k in range(columns):
        code = codes[records[about]]
        left = base + records[about + 1]
        right = left + records[about + 2]
        row = records[about + 3] - left
        while left < right:  # how many bounds are not above the code
            middle = (left + right) >> 1
            if load_unchecked(records, middle) <= code:
                left = middle + 1
            else:
                right = middle
        rows[k] = first_word + (row + left) * width
        about += LEAF_COLUMN
    # word by word, so that the AND stays in a register
    query = base + records[base + 4] - size
    w = 0
    while w < width:
        word = alive[records[base + 5] + w] if len(alive) else ~np.uint64(0)
        for k in range(columns):
            word &= load_unchecked(bits, load_unchecked(rows, k) + w)
        used = _append_bits(word, records, query + (w << 6), out, used)
        w += 1
    return used


@inlined_kernel
def _append_bits(word, records, first, out, used):
    """Append the queries whose bits are set in a word; return the end of the output."""
    while word != 0:
        out[used] = load_unchecked(records, first + lowest_bit(word))
        used += 1
        word &= word - np.uint64(1)
    return used


@inlined_kernel
def _program_holds(conditions, bits, q, codes, stamp, now, stack):
    """Return whether a condition holds for one event: a stack machine over its program.

    Entries of a program are those of `snapshot.arrays.trees`: an atom from 0 on, −1 for NOT, −8 − m
    for IS [NOT] TRUE and the like with a mask m of accepted truth values, −16 − 2n for an AND of n
    parts, −17 − 2n for an OR.
    """
    depth = 0
    for i in range(conditions.offsets[q], conditions.offsets[q + 1]):
        entry = conditions.program[i]
        if entry >= 0:
            stack[depth] = _atom_truth(conditions, bits, entry, codes, stamp, now)
            depth += 1
        elif entry == -1:
            # the NOT of NULL is NULL
            if stack[depth - 1] != NULL:
                stack[depth - 1] = 1 - stack[depth - 1]
        elif entry > -16:
            # whether its value is in the mask: TRUE or FALSE, never NULL
            stack[depth - 1] = ((-8 - entry) >> stack[depth - 1]) & 1
        else:
            # FALSE wins an AND, TRUE an OR, and NULL over the other one
            arity, wins = (-16 - entry) // 2, (-16 - entry) % 2
            result = 1 - wins
            for k in range(depth - arity, depth):
                if stack[k] == wins:
                    result = wins
                    break
                if stack[k] == NULL:
                    result = NULL
            depth -= arity - 1
            stack[depth - 1] = result
        # a part of the outermost AND that is not TRUE decides at once
        if conditions.deciding[i] and stack[depth - 1] != TRUE:
            return False
    return stack[0] == TRUE


@inlined_kernel
def _atom_truth(conditions, bits, atom, codes, stamp, now):
    kind = conditions.kind[atom]
    # known before the match began
    if kind in (COMPARE, CONSTANT):
        return np.int64(bits[conditions.slot[atom]])
    code = codes[conditions.column[atom]]
    if kind == MATCHES:
        # a pattern on an absent text is NULL; else it matched if its stamp is of this event
        if code == 0:
            return np.int64(NULL)
        return np.int64((stamp[conditions.slot[atom]] == now) != (conditions.negated[atom] == 1))
    if kind == WITHIN and code == 0:
        return np.int64(NULL)
    left, right = conditions.starts[atom], conditions.starts[atom + 1]
    while left < right:  # the first interval that does not end before the code
        middle = (left + right) >> 1
        if conditions.high[middle] < code:
            left = middle + 1
        else:
            right = middle
    return np.int64(left < conditions.starts[atom + 1] and conditions.low[left] <= code)
