"""Matching: Algorithms 1 and 2 of the BE-Tree paper, and predicates as in section 6.1.

Each distinct predicate is evaluated at most once for an event. Those below `Bits.end` are looked up
in the result bits, which are copied from a bitmap when the event arrives; the others are evaluated
when first asked for, and remembered in `passed` and `failed` (lazy), or not (direct).

Deviations: the listing overwrites the matches of earlier calls, here they add up; buckets to visit
are queued, and their leaves checked when all are known. An attribute of the event leads to the
bucket of its value and to all buckets on the way to its point in the binary tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headgate.jit import inlined_kernel, kernel, load_unchecked, prefetch
from headgate.matching.be_tree.kernels.leaves import bloom_word
from headgate.matching.be_tree.kernels.nodes import found, middle, of_bucket, of_partition
from headgate.matching.be_tree.kernels.pools import (
    BEGIN,
    DISCARDED,
    FALSE_ONES,
    FIRST_HASHED,
    GIVEN,
    HIGH,
    LEFT,
    LIVE,
    LOW,
    MASK,
    NONE,
    RIGHT,
    ROOT,
    TOGETHER,
    TOP,
    USED,
    VISITS,
    header,
    mask_of,
)

AHEAD = 4  # leaves that are being loaded
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
CANDIDATES, TRUE_ONES, EVENTS = range(3)  # places in `Room.seen`


class Bits(NamedTuple):
    """The bitmap: column c has the words from `word[c]` on, `words[c]` of them; its row for a code
    begins at `row[c] + code · words[c]`. Predicates from `end` on are not in it."""

    end: int
    word: Any
    words: Any
    row: Any
    bits: Any


class Events(NamedTuple):
    """Event e has, for k from `start[e]` to `start[e + 1]`, a column with its value, as predicates
    are evaluated; its point and its key, as directories tell it apart; and its row in the bitmap.
    Predicates `given` from `given_start[e]` on are TRUE, and others of their kind are not."""

    start: Any
    column: Any
    value: Any
    point: Any
    key: Any
    code: Any
    given_start: Any
    given: Any


class Room(NamedTuple):
    """What one thread works in; all is 0, or NONE, between two events."""

    at: Any  # by column: the place of the event's value, or NONE
    result: Any  # bits of the predicates in the bitmap
    passed: Any
    failed: Any
    touched: Any  # words of the last two that are not 0, after their number
    queue: Any
    met: Any  # by position: when it was last given out, by a clock that no event repeats
    seen: Any  # how often: see above


@kernel
def match(
    tree, expressions, predicates, bits, events, room, bloom, memo, rows, adapt, begin, out, offsets
):
    """Match events from `begin` on, until `out` might not hold the next one; how far it got."""
    most, seen = tree.state[LIVE], room.seen
    no_late = len(predicates.flags) <= bits.end
    room.result[0] = ALL
    used = 0
    e = begin
    while e < len(events.start) - 1 and len(out) - used >= most:
        offsets[e - begin] = used
        filter_, mask = begin_event(bits, events, room, bloom, e)
        visited = buckets_for(tree, events, room.queue, mask, e)
        clock = seen[EVENTS] + (e - begin) + 1
        if rows and no_late and not bloom and not adapt:
            used = check_plain(tree, room, visited, clock, out, used)
        else:
            used = check(
                tree,
                expressions,
                predicates,
                bits,
                events,
                room,
                bloom,
                memo,
                rows,
                adapt,
                filter_,
                visited,
                clock,
                out,
                used,
            )
        end_event(bits, events, room, e)
        e += 1
    offsets[e - begin] = used
    seen[EVENTS] += e - begin
    seen[TRUE_ONES] += used
    return e


@kernel
def buckets_for(tree, events, queue, mask, e):
    """Queue the buckets that an event leads to, level by level; how many they are.

    What is queued is also on its way into the cache. Arrays are taken out of their groups first:
    Numba counts a reference each time one is.
    """
    bucket, partitions, table = tree.bucket, tree.partition, tree.table
    domain_low, domain_high = tree.domain_low, tree.domain_high
    column, point, key = events.column, events.point, events.key
    lines, first, last = bucket.reshape(-1), events.start[e], events.start[e + 1]
    queue[0] = ROOT
    head, tail = 0, 1
    while head < tail:
        b = queue[head]
        head += 1
        shared = bucket[b, MASK] & mask
        if shared == 0:
            continue
        for k in range(first, last):
            c = np.int64(column[k])
            if shared & mask_of(c) == 0:
                continue
            partition = found(table, of_partition(b), c)
            if partition == NONE:
                continue
            if partitions[partition, FIRST_HASHED] != NONE:
                to = found(table, of_bucket(partition), key[k])
                if to != NONE:
                    queue[tail] = to
                    prefetch(lines, 8 * to)
                    tail += 1
            to = partitions[partition, TOP]
            if to != NONE:
                here = min(max(point[k], domain_low[c]), domain_high[c])
                while to != NONE:
                    if bucket[to, USED] or bucket[to, MASK]:
                        queue[tail] = to
                        tail += 1
                    cut = middle(bucket[to, LOW], bucket[to, HIGH])
                    to = bucket[to, LEFT] if here <= cut else bucket[to, RIGHT]
    return tail


@kernel
def check_plain(tree, room, visited, clock, out, used):
    """Append the positions of the expressions in the leaves of visited buckets that hold: where all
    predicates are in the bitmap and in the rows."""
    bucket, records, queue = tree.bucket, tree.records, room.queue
    result, met = room.result, room.met
    candidates = 0
    for j in range(min(AHEAD, visited)):
        prefetch(records, bucket[queue[j], BEGIN])
    for j in range(visited):
        if j + AHEAD < visited:
            prefetch(records, bucket[queue[j + AHEAD], BEGIN])
        place = np.uint64(bucket[queue[j], BEGIN])
        end = place + np.uint64(bucket[queue[j], USED])
        while place < end:
            following = place + np.uint64(load_unchecked(records, place))
            truth = np.uint64(1)
            k = place + np.uint64(3)
            while k < following:  # to the end: leaving early costs more
                for i in range(np.uint64(TOGETHER)):
                    p = np.uint64(load_unchecked(records, k + i))
                    truth &= load_unchecked(result, p >> np.uint64(6)) >> (p & np.uint64(63))
                k += np.uint64(TOGETHER)
            position = np.int64(load_unchecked(records, place + np.uint64(1)))
            if truth and position < 0:
                position = -1 - position
                truth = np.uint64(met[position] != clock)
                met[position] = clock
            if truth:
                out[used] = position
                used += 1
            candidates += 1
            place = following
    room.seen[CANDIDATES] += candidates
    return used


@kernel
def check(  # noqa: PLR0915 (one loop; its parts would hand over twenty arrays)
    tree,
    expressions,
    predicates,
    bits,
    events,
    room,
    bloom,
    memo,
    rows,
    adapt,
    filter_,
    visited,
    clock,
    out,
    used,
):
    """As `check_plain`, with everything that can be chosen."""
    bucket, records, fact, queue = tree.bucket, tree.records, tree.fact, room.queue
    result, passed, failed, at = room.result, room.passed, room.failed, room.at
    touched, met, value = room.touched, room.met, events.value
    flags, column_of = predicates.flags, predicates.column
    first_of, last_of = predicates.first, predicates.last
    low, high = predicates.low, predicates.high
    start_of, count_of = expressions.start, expressions.count
    listed = records if rows else expressions.predicate
    head, in_bitmap = header(bloom), bits.end
    candidates = 0
    for j in range(visited):
        b = queue[j]
        place = bucket[b, BEGIN]
        end = place + bucket[b, USED]
        discarded, false_ones = 0, 0
        while place < end:
            size, evaluated, holds = records[place], 0, True
            if bloom:
                holds = passes(records, place, bloom, filter_)
            if holds:
                k, stop = place + head, place + size
                if not rows:
                    k = start_of[records[place + 2]]
                    stop = k + count_of[records[place + 2]]
                while holds and k < stop:
                    p = np.int64(listed[k])
                    k += 1
                    evaluated += 1
                    if p < in_bitmap:
                        word = result[p >> 6] >> np.uint64(p & 63)
                        holds = word & np.uint64(1) != np.uint64(0)
                        continue
                    at_word, bit = late_place(p - in_bitmap)
                    holds = passed[at_word] & bit != np.uint64(0)
                    if holds or flags[p] & GIVEN or failed[at_word] & bit != np.uint64(0):
                        continue
                    i = at[column_of[p]]
                    if i != NONE:
                        for n in range(first_of[p], last_of[p]):
                            holds = holds or low[n] <= value[i] <= high[n]
                    if memo:
                        if passed[at_word] == np.uint64(0) and failed[at_word] == np.uint64(0):
                            touched[0] += 1
                            touched[touched[0]] = at_word
                        if holds:
                            passed[at_word] |= bit
                        else:
                            failed[at_word] |= bit
            if holds:
                position = np.int64(records[place + 1])
                if position < 0:
                    position = -1 - position
                    holds = met[position] != clock
                    met[position] = clock
                if holds:
                    out[used] = position
                    used += 1
            else:
                discarded += evaluated
                false_ones += 1
            candidates += 1
            place += size
        if adapt:
            fact[b, VISITS] += 1
            fact[b, DISCARDED] += discarded
            fact[b, FALSE_ONES] += false_ones
    room.seen[CANDIDATES] += candidates
    return used


@inlined_kernel
def late_place(number):
    """The word and the bit of a predicate that is not in the bitmap."""
    return number >> 6, np.uint64(1) << np.uint64(number & 63)


@kernel
def begin_event(bits, events, room, bloom, e):
    """Lay out an event's values and bits; gives its Bloom filter and the mask of its attributes."""
    filter_, mask = np.int64(0), np.int64(0)
    at, result, passed = room.at, room.result, room.passed
    column, code, rows, words_of = events.column, events.code, bits.bits, bits.words
    for k in range(events.start[e], events.start[e + 1]):
        c = column[k]
        at[c] = k
        mask |= mask_of(c)
        words = words_of[c]
        if words:
            row, word = bits.row[c] + code[k] * words, bits.word[c]
            for i in range(words):
                result[word + i] = rows[row + i]
        if bloom:
            filter_ |= np.int64(1) << bloom_word(c, bloom)
    for i in range(events.given_start[e], events.given_start[e + 1]):
        p = events.given[i]
        if p < bits.end:
            result[p >> 6] |= np.uint64(1) << np.uint64(p & 63)
        else:
            passed[(p - bits.end) >> 6] |= np.uint64(1) << np.uint64((p - bits.end) & 63)
    return filter_, mask


@kernel
def end_event(bits, events, room, e):
    """Clear what the event has left."""
    at, result, passed, failed = room.at, room.result, room.passed, room.failed
    column, words, word = events.column, bits.words, bits.word
    for k in range(events.start[e], events.start[e + 1]):
        c = column[k]
        at[c] = NONE
        for i in range(words[c]):
            result[word[c] + i] = 0
    for i in range(events.given_start[e], events.given_start[e + 1]):
        p = events.given[i]
        if p < bits.end:
            result[p >> 6] = 0
        else:
            passed[(p - bits.end) >> 6] = 0
            failed[(p - bits.end) >> 6] = 0
    for i in range(room.touched[0]):
        passed[room.touched[1 + i]] = 0
        failed[room.touched[1 + i]] = 0
    room.touched[0] = 0


@inlined_kernel
def passes(records, place, bloom, filter_):
    """Has the event all attributes of an expression, as far as its filter tells?"""
    wanted = np.int64(records[place + 3]) & np.int64(0xFFFFFFFF)
    if bloom == 64:
        wanted |= np.int64(records[place + 4]) << np.int64(32)
    return wanted & ~filter_ == 0


@kernel
def fill_rows(bits, row, words, owner, low, high):
    """Set the bit of each owner in the rows of its codes."""
    for i in range(len(owner)):
        bit = np.uint64(1) << np.uint64(owner[i] & 63)
        for code in range(low[i], high[i] + 1):
            bits[row + code * words + (owner[i] >> 6)] |= bit
