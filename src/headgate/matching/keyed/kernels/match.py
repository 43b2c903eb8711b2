"""The inner loop: events against clusters."""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked, lowest_bit, prefetch
from headgate.matching.keyed.arrays import NULL, TRUE
from headgate.matching.keyed.kernels.grid import match_grid
from headgate.matching.keyed.kernels.records import (
    HALF,
    HEAD,
    HEADER,
    INTERVAL,
    LEAF_COLUMN,
    LINE,
    LINE_WORDS,
    MASKED,
    PROGRAM_ONCE,
    ROW,
)
from headgate.snapshot.arrays.atoms import COMPARE, CONSTANT, MATCHES, WITHIN

AHEAD = 4  # records that are being loaded while one is read


@kernel
def match(conditions, clusters, grid, events, begin, stop, scratch, living, given, out, offsets):
    """Match events from `begin` on, up to `stop` or until `out` might not hold the next one.

    Gives how far it got. `offsets[e - begin]` is where the matches of event e begin, which are in
    no particular order. `living` and `given` are described in `arrays`.
    """
    used = 0
    count = len(conditions.offsets) - 1
    codes = scratch.codes
    e = begin
    while e < stop:
        more = 0
        if len(given.offsets):
            more = given.offsets[e - begin + 1] - given.offsets[e - begin]
        if len(out) - used < count + more:
            break
        offsets[e - begin] = used
        scratch.clock[0] += 1
        now = scratch.clock[0]
        present = _take(events, e, codes)
        _stamp_patterns(events, e, codes, scratch.stamp, now)
        if len(grid.columns):
            used = match_grid(grid, living.grid, codes, scratch, out, used)
        met = _lines_met(conditions, clusters, events, e, codes, scratch.met)
        waiting = 0
        for i in range(met):
            prefetch(clusters.records, scratch.met[min(i + AHEAD, met - 1)] * LINE)
            prefetch(clusters.records, scratch.met[min(i + AHEAD, met - 1)] * LINE + LINE)
            base = scratch.met[i] * LINE
            if clusters.records[base] > 0:
                used = _match_bitmap(clusters, base, living.bitmaps, scratch, out, used)
            head, end = _heads(clusters.records, base)
            while head < end:
                head, waiting = _gather(
                    clusters.records, base, head, end, present, scratch.waiting, waiting
                )
                if head < end or waiting > len(scratch.waiting) // 2:
                    used = _check(
                        conditions, clusters, events, e, now, scratch, waiting, living, out, used
                    )
                    waiting = 0
        used = _check(conditions, clusters, events, e, now, scratch, waiting, living, out, used)
        for q in clusters.unkeyed:
            if _program_holds(
                conditions, events.bits[e], q, codes, scratch.stamp, now, scratch.stack
            ):
                out[used] = q
                used += _lives(living.numbers, q)
        if len(given.position):
            for i in range(offsets[e - begin], used):
                out[i] = given.position[out[i]]
        for i in range(more):
            out[used + i] = given.found[given.offsets[e - begin] + i]
        used += more
        for k in range(events.start[e], events.start[e + 1]):
            codes[events.column[k]] = 0
        e += 1
    offsets[e - begin] = used
    return e


@inlined_kernel
def _take(events, e, codes):
    """Spread an event's codes; the columns that it has, as bits, of which several may share one."""
    present = np.int64(0)
    for k in range(events.start[e], events.start[e + 1]):
        column = events.column[k]
        codes[column] = events.code[k]
        present |= np.int64(1) << (column % MASKED)
    return present


@inlined_kernel
def _lives(alive, number):
    """1 for a query that is alive, 0 for one that was removed."""
    if len(alive) == 0:
        return np.int64(1)
    return np.int64(alive[number >> 6] >> np.uint64(number & 63) & np.uint64(1))


@kernel
def most_met(clusters):
    """How many records an event can lead to at most."""
    most = 2 * len(clusters.plain_line) + len(clusters.compared)
    for width in clusters.width:
        node = width
        while node >= 1:
            most += 1
            node >>= 1
    return most


@inlined_kernel
def _lines_met(conditions, clusters, events, e, codes, met):
    """The records that an event's codes, texts and comparisons lead to; gives their number."""
    count = 0
    for k in range(events.start[e], events.start[e + 1]):
        if clusters.filed[events.column[k]]:
            count = _path(clusters, events.column[k], events.code[k], met, count)
    for c in clusters.null_keyed:
        if codes[c] == 0:
            count = _path(clusters, c, 0, met, count)
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
def _path(clusters, column, code, met, count):
    """The records on the way from a code up to the root of its column."""
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
    for p in range(events.ranks.shape[1]):
        if codes[events.pattern_column[p]] != 0:
            text = events.first_text[p] + events.ranks[e, p]
            for i in range(events.matched_start[text], events.matched_start[text + 1]):
                stamp[events.matched[i]] = now


@inlined_kernel
def _heads(records, base):
    """Where the heads of a record begin and end."""
    begin = base + records[base + 4]
    return begin, begin + HEAD * records[base + 3]


@inlined_kernel
def _gather(records, base, head, end, present, waiting, count):
    """Put the heads whose columns are all present into `waiting`, and begin to load what they ask.

    Gives the head before which there was no more room, and how many are waiting.
    """
    absent_low, absent_high = ~present & HALF, ~(present >> 31) & HALF
    while head < end and count < len(waiting):
        waiting[count, 0], waiting[count, 1] = base, head
        if not (records[head + 2] & absent_low or records[head + 3] & absent_high):
            prefetch(records, base + records[head + 1])
            prefetch(records, base + records[head + 1] + LINE)
            count += 1
        head += HEAD
    return head, count


@inlined_kernel
def _check(conditions, clusters, events, e, now, scratch, count, living, out, used):
    """Append the waiting queries that hold for an event."""
    records, codes = clusters.records, scratch.codes
    for i in range(count):
        base, head = scratch.waiting[i, 0], scratch.waiting[i, 1]
        q, row = records[head], base + records[head + 1]
        holds = _intervals_hold(records, row, codes)
        then = records[row + 1]
        if holds and then != 0:
            if then == PROGRAM_ONCE:
                holds = scratch.seen[q] != now
                scratch.seen[q] = now
            holds = holds and _program_holds(
                conditions, events.bits[e], q, codes, scratch.stamp, now, scratch.stack
            )
        if holds:
            out[used] = q
            used += _lives(living.numbers, q)
    return used


@inlined_kernel
def _intervals_hold(records, row, codes):
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
    """Append the queries of a bitmap that accept an event's codes."""
    records, bits = clusters.records, clusters.bits
    codes, rows = scratch.codes, scratch.rows
    size, columns = records[base], records[base + 1]
    width = (size + 63) >> 6
    first_word = np.int64(records[base + 2]) * LINE_WORDS
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
    query = base + records[base + 4] - size
    w = 0
    while w < width:
        word = alive[records[base + 5] + w] if len(alive) else ~np.uint64(0)
        for k in range(columns):
            word &= load_unchecked(bits, load_unchecked(rows, k) + w)
        used = _append(word, records, query + (w << 6), out, used)
        w += 1
    return used


@inlined_kernel
def _append(word, records, first, out, used):
    while word != 0:
        out[used] = load_unchecked(records, first + lowest_bit(word))
        used += 1
        word &= word - np.uint64(1)
    return used


@inlined_kernel
def _program_holds(conditions, bits, q, codes, stamp, now, stack):
    """The truth of a condition for one event: a stack machine over the program."""
    depth = 0
    for i in range(conditions.offsets[q], conditions.offsets[q + 1]):
        entry = conditions.program[i]
        if entry >= 0:
            stack[depth] = _atom(conditions, bits, entry, codes, stamp, now)
            depth += 1
        elif entry == -1:
            if stack[depth - 1] != NULL:
                stack[depth - 1] = 1 - stack[depth - 1]
        elif entry > -16:
            stack[depth - 1] = ((-8 - entry) >> stack[depth - 1]) & 1
        else:
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
        if conditions.deciding[i] and stack[depth - 1] != TRUE:
            return False
    return stack[0] == TRUE


@inlined_kernel
def _atom(conditions, bits, atom, codes, stamp, now):
    what = conditions.kind[atom]
    if what in (COMPARE, CONSTANT):
        return np.int64(bits[conditions.slot[atom]])
    code = codes[conditions.column[atom]]
    if what == MATCHES:
        if code == 0:
            return np.int64(NULL)
        return np.int64((stamp[conditions.slot[atom]] == now) != (conditions.negated[atom] == 1))
    if what == WITHIN and code == 0:
        return np.int64(NULL)
    left, right = conditions.starts[atom], conditions.starts[atom + 1]
    while left < right:  # the first interval that does not end before the code
        middle = (left + right) >> 1
        if conditions.high[middle] < code:
            left = middle + 1
        else:
            right = middle
    return np.int64(left < conditions.starts[atom + 1] and conditions.low[left] <= code)
