"""Matching: Algorithms 1 and 2 of the BE-Tree paper, and predicates as in section 6.1.

Each distinct predicate is evaluated at most once for an event. Those below `Bits.end` are looked up
in the result bits, which are copied from a bitmap when the event arrives; the others are evaluated
when first asked for, and remembered in `passed` and `failed` (lazy), or not (direct).

Deviations: the listing overwrites the matches of earlier calls, here they add up; buckets to visit
are on a stack. An attribute of the event leads to the bucket of its value and to all buckets on the
way to its point in the binary tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headgate.matching.be_tree.directory import found, of_bucket, of_partition
from headgate.matching.be_tree.leaves import bloom_word
from headgate.matching.be_tree.place import middle
from headgate.matching.be_tree.pools import (
    AFTER,
    ATTRIBUTE,
    BEGIN,
    DISCARDED,
    FALSE_ONES,
    FIRST,
    FIRST_HASHED,
    GIVEN,
    HIGH,
    LEFT,
    LIVE,
    LOW,
    NONE,
    PARTITIONS,
    RIGHT,
    ROOT,
    TOGETHER,
    TOP,
    USED,
    VISITS,
    filled_up,
    header,
)
from headgate.matching.keyed.compiled import kernel, part_of_kernel
from headgate.matching.keyed.intrinsics import prefetch, unchecked

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
    touched: Any  # words of the last two that are not 0
    stack: Any
    met: Any  # by position: when it was last given out, by a clock that no event repeats
    seen: Any  # how often: see above


@kernel
def match(
    tree, expressions, predicates, bits, events, room, bloom, memo, rows, adapt, begin, out, offsets
):
    """Match events from `begin` on, until `out` might not hold the next one; how far it got.

    Arrays are taken out of their groups first: Numba counts a reference each time one is.
    """
    bucket, partitions, fact, table = tree.bucket, tree.partition, tree.fact, tree.table
    records, domain_low, domain_high = tree.records, tree.domain_low, tree.domain_high
    start, column, point, key = events.start, events.column, events.point, events.key
    at, result, stack, met, seen = room.at, room.result, room.stack, room.met, room.seen
    listed = records if rows else expressions.predicate
    first_of, count_of = expressions.start, expressions.count
    lines = bucket.reshape(-1)
    head, in_bitmap = header(bloom), np.uint64(bits.end)
    result[0] = ALL
    most = tree.state[LIVE]
    used, candidates = 0, 0
    e = begin
    while e < len(start) - 1 and len(out) - used >= most:
        offsets[e - begin] = used
        filter_ = begin_event(bits, events, room, bloom, e)
        clock = seen[EVENTS] + e + 1
        first, last = start[e], start[e + 1]
        touched, depth = 0, 1
        stack[0] = ROOT
        while depth:
            depth -= 1
            b = stack[depth]
            if depth:
                prefetch(records, bucket[stack[depth - 1], BEGIN])
            place = bucket[b, BEGIN]
            end = place + bucket[b, USED]
            discarded, false_ones = 0, 0
            while place < end:
                size = records[place]
                candidates += 1
                holds, evaluated = True, 0
                if bloom:
                    holds = passes(records, place, bloom, filter_)
                if holds:
                    i, stop = place + head, place + size
                    if not rows:
                        i = first_of[records[place + 2]]
                        stop = i + filled_up(count_of[records[place + 2]])
                    truth, greatest = np.uint64(1), np.uint64(0)
                    for k in range(i, stop, TOGETHER):  # to the end: leaving early costs more
                        for j in range(TOGETHER):
                            p = np.uint64(unchecked(listed, k + j))
                            word = np.uint64(0) if p >= in_bitmap else p >> np.uint64(6)
                            truth &= unchecked(result, word) >> (p & np.uint64(63))
                            greatest = max(greatest, p)
                    evaluated = stop - i
                    holds = truth & np.uint64(1) != np.uint64(0)
                    if holds and greatest >= in_bitmap:
                        for k in range(i, stop):
                            p = np.uint64(listed[k])
                            if holds and p >= in_bitmap:
                                holds, touched = late(
                                    predicates, bits, events, room, memo, p, touched
                                )
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
                place += size
            if adapt:
                fact[b, VISITS] += 1
                fact[b, DISCARDED] += discarded
                fact[b, FALSE_ONES] += false_ones
            count = bucket[b, PARTITIONS]
            if count == 0:
                continue
            partition, k = bucket[b, FIRST], first
            by_list = count <= last - first
            while partition != NONE if by_list else k < last:
                if by_list:
                    inner = partition
                    k = at[partitions[partition, ATTRIBUTE]]
                    partition = partitions[partition, AFTER]
                    if k == NONE:
                        continue
                else:
                    inner = found(table, of_partition(b), np.int64(column[k]))
                    k += 1
                    if inner == NONE:
                        continue
                value = k if by_list else k - 1
                if partitions[inner, FIRST_HASHED] != NONE:
                    to = found(table, of_bucket(inner), key[value])
                    if to != NONE:
                        stack[depth] = to
                        prefetch(lines, 8 * to)
                        depth += 1
                to = partitions[inner, TOP]
                if to != NONE:
                    c = partitions[inner, ATTRIBUTE]
                    here = min(max(point[value], domain_low[c]), domain_high[c])
                    while to != NONE:
                        if bucket[to, USED] or bucket[to, PARTITIONS]:
                            stack[depth] = to
                            depth += 1
                        cut = middle(bucket[to, LOW], bucket[to, HIGH])
                        to = bucket[to, LEFT] if here <= cut else bucket[to, RIGHT]
        end_event(bits, events, room, e, touched)
        e += 1
    offsets[e - begin] = used
    seen[EVENTS] += e - begin
    seen[TRUE_ONES] += used
    seen[CANDIDATES] += candidates
    return e


@kernel
def begin_event(bits, events, room, bloom, e):
    """Lay out an event's values and bits; gives its Bloom filter."""
    filter_ = np.int64(0)
    at, result, passed = room.at, room.result, room.passed
    column, code, rows, words_of = events.column, events.code, bits.bits, bits.words
    for k in range(events.start[e], events.start[e + 1]):
        c = column[k]
        at[c] = k
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
    return filter_


@kernel
def end_event(bits, events, room, e, touched):
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
    for i in range(touched):
        passed[room.touched[i]] = 0
        failed[room.touched[i]] = 0


@part_of_kernel
def passes(records, place, bloom, filter_):
    """Has the event all attributes of an expression, as far as its filter tells?"""
    wanted = np.int64(records[place + 3]) & np.int64(0xFFFFFFFF)
    if bloom == 64:
        wanted |= np.int64(records[place + 4]) << np.int64(32)
    return wanted & ~filter_ == 0


@part_of_kernel
def late(predicates, bits, events, room, memo, p, touched):
    """Is a predicate TRUE that is not in the bitmap? And how many words are touched by now."""
    number = np.int64(p) - bits.end
    place, bit = number >> 6, np.uint64(1) << np.uint64(number & 63)
    truth = room.passed[place] & bit != np.uint64(0)
    known = truth or room.failed[place] & bit != np.uint64(0)
    if not known and not predicates.flags[p] & GIVEN:
        k = room.at[predicates.column[p]]
        if k != NONE:
            value = events.value[k]
            for i in range(predicates.first[p], predicates.last[p]):
                if predicates.low[i] <= value <= predicates.high[i]:
                    truth = True
        if memo:
            if room.passed[place] == np.uint64(0) and room.failed[place] == np.uint64(0):
                room.touched[touched] = place
                touched += 1
            if truth:
                room.passed[place] |= bit
            else:
                room.failed[place] |= bit
    return truth, touched
