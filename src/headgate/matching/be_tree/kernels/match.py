"""Match events: Algorithms 1 and 2 of the BE-Tree paper, and predicates as in section 6.1.

"Analysis and optimization for Boolean expression indexing". Each distinct predicate is evaluated at
most once for an event. Those below `Bitmap.end` are looked up in the result bits, which are copied
from a bitmap when the event arrives; the others are evaluated when first needed, and remembered in
`passed` and `failed` (lazy), or not (direct).

Deviations: the listing overwrites the matches of earlier calls, here they add up; buckets to visit
are queued, and their leaves checked when all are known. An attribute of the event leads to the
bucket of its value and to all buckets on the way to its point in the binary tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headgate.jit import inlined_kernel, load_unchecked, plain_kernel, prefetch
from headgate.matching.be_tree.kernels.leaves import bloom_bit
from headgate.matching.be_tree.kernels.nodes import (
    bucket_owner,
    find_middle,
    look_up,
    partition_owner,
)
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE_MASK,
    DISCARDED,
    FALSE_CANDIDATES,
    FIRST_HASHED,
    HIGH,
    LEAF_BEGIN,
    LEAF_SIZE,
    LEFT,
    LIVE_EXPRESSIONS,
    LOW,
    NONE,
    PRECOMPUTED,
    PREDICATES_PER_STEP,
    RIGHT,
    ROOT,
    TOP_BUCKET,
    VISITS,
    Int32s,
    Int64s,
    Words,
    attribute_bit,
    header_size,
)

PREFETCHED_LEAVES = 4  # that are being loaded while one is read
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
CANDIDATES, MATCHES, EVENTS = range(3)  # places in `Scratch.seen`


class Bitmap(NamedTuple):
    """The bits of the predicates below `end`, in a row of words for each code of a column.

    Column c has the words from `word[c]` on, `words[c]` of them, of an event's result; its row for
    a code begins at `bits[row[c] + code * words[c]]`.
    """

    end: int
    word: Int64s  # (columns,)
    words: Int64s  # (columns,)
    row: Int64s  # (columns,)
    bits: Words  # all rows of all columns, flat


class EventArrays(NamedTuple):
    """The attributes of events: event e has those from `start[e]` to `start[e + 1]`.

    Of the precomputed predicates those from `true_start[e]` to `true_start[e + 1]` in `true` are
    TRUE, and all others are not.
    """

    start: Int64s  # (events + 1,)
    column: Int64s | Int32s
    value: Int64s  # as predicates are evaluated
    point: Int64s  # where it lies in the domain of its column
    key: Int64s  # by which it is hashed
    code: Int64s | Int32s  # its row in the bitmap
    true_start: Int64s  # (events + 1,)
    true: Int64s


class Scratch(NamedTuple):
    """Working memory of one thread.

    Between two events `at` is NONE, and `result`, `passed`, `failed` and the number in `touched`
    are 0, but for the first word of `result`: its bits are all set, as TRUE_PREDICATE is there. The
    rest is what the last event has left.
    """

    at: Int64s  # by column: the place of the event's value in `EventArrays`, or NONE
    result: Words  # bits of the predicates in the bitmap
    passed: Words  # bits of the others that were evaluated and hold,
    failed: Words  # or do not
    touched: Int64s  # the number of words of `passed` and `failed` that are not 0, and which
    queue: Int64s  # buckets to visit
    met: Int64s  # by position: when it last matched, by a clock that no event repeats
    seen: Int64s  # candidates, matches and events so far


@plain_kernel
def match_events(
    tree,
    expressions,
    predicates,
    bits,
    events,
    scratch,
    bloom,
    memo,
    rows,
    adapt,
    begin,
    out,
    offsets,
):
    """Match events from `begin` on, until `out` might not hold the next; return where it ended."""
    # An event matches each live expression at most once, so that many places must be free.
    max_matches, seen = tree.state[LIVE_EXPRESSIONS], scratch.seen
    no_late = len(predicates.flags) <= bits.end
    scratch.result[0] = ALL_BITS
    used = np.int64(
        0
    )  # a literal would have the kernels below compiled twice, for it and for int64
    e = begin
    while e < len(events.start) - 1 and len(out) - used >= max_matches:
        offsets[e - begin] = used
        filter_, mask = load_event(bits, events, scratch, bloom, e)
        visited = queue_buckets(tree, events, scratch.queue, mask, e)
        clock = seen[EVENTS] + (e - begin) + 1
        # By default the options need no more than a look at the bits of the bitmap.
        if rows and no_late and not bloom and not adapt:
            used = check_leaves_by_bitmap(tree, scratch, visited, clock, out, used)
        else:
            used = check_leaves(
                tree,
                expressions,
                predicates,
                bits,
                events,
                scratch,
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
        clear_event(bits, events, scratch, e)
        e += 1
    offsets[e - begin] = used
    seen[EVENTS] += e - begin
    seen[MATCHES] += used
    return e


@plain_kernel
def queue_buckets(tree, events, queue, mask, e):
    """Queue the buckets that an event leads to, level by level; return how many there are.

    What is queued is also on its way into the cache.
    """
    # Take arrays out of their tuples once: Numba counts a reference each time.
    bucket, partitions, table = tree.bucket, tree.partition, tree.table
    domain_low, domain_high = tree.domain_low, tree.domain_high
    column, point, key = events.column, events.point, events.key
    lines, first, last = bucket.reshape(-1), events.start[e], events.start[e + 1]
    queue[0] = ROOT
    head, tail = 0, 1
    while head < tail:
        b = queue[head]
        head += 1
        # most buckets have no partition by any attribute of the event
        shared = bucket[b, ATTRIBUTE_MASK] & mask
        if shared == 0:
            continue
        for k in range(first, last):
            c = np.int64(column[k])
            if shared & attribute_bit(c) == 0:
                continue
            partition = look_up(table, partition_owner(b), c)
            if partition == NONE:
                continue
            # the bucket of the very value, by hashing
            if partitions[partition, FIRST_HASHED] != NONE:
                to = look_up(table, bucket_owner(partition), key[k])
                if to != NONE:
                    queue[tail] = to
                    prefetch(lines, 8 * to)
                    tail += 1
            # and all buckets of the binary tree on the way to its point, unless they are empty
            to = partitions[partition, TOP_BUCKET]
            if to != NONE:
                here = min(max(point[k], domain_low[c]), domain_high[c])
                while to != NONE:
                    if bucket[to, LEAF_SIZE] or bucket[to, ATTRIBUTE_MASK]:
                        queue[tail] = to
                        tail += 1
                    cut = find_middle(bucket[to, LOW], bucket[to, HIGH])
                    to = bucket[to, LEFT] if here <= cut else bucket[to, RIGHT]
    return tail


@plain_kernel
def check_leaves_by_bitmap(tree, scratch, visited, clock, out, used):
    """Append the positions of the expressions that hold; return how many positions `out` has.

    For leaves that list their predicates, all of which are in the bitmap.
    """
    # Leaves lie apart from one another: have the next few loaded while one is read.
    bucket, records, queue = tree.bucket, tree.records, scratch.queue
    result, met = scratch.result, scratch.met
    candidates = 0
    for j in range(min(PREFETCHED_LEAVES, visited)):
        prefetch(records, bucket[queue[j], LEAF_BEGIN])
    for j in range(visited):
        if j + PREFETCHED_LEAVES < visited:
            prefetch(records, bucket[queue[j + PREFETCHED_LEAVES], LEAF_BEGIN])
        place = np.uint64(bucket[queue[j], LEAF_BEGIN])
        end = place + np.uint64(bucket[queue[j], LEAF_SIZE])
        while place < end:
            following = place + np.uint64(load_unchecked(records, place))
            truth = np.uint64(1)
            k = place + np.uint64(3)
            # A record is tested to its end: leaving early costs more, by branches mispredicted.
            while k < following:
                for i in range(np.uint64(PREDICATES_PER_STEP)):
                    p = np.uint64(load_unchecked(records, k + i))
                    truth &= load_unchecked(result, p >> np.uint64(6)) >> (p & np.uint64(63))
                k += np.uint64(PREDICATES_PER_STEP)
            position = np.int64(load_unchecked(records, place + np.uint64(1)))
            # a query with OR matches once, however many of its expressions hold
            if truth and position < 0:
                position = -1 - position
                truth = np.uint64(met[position] != clock)
                met[position] = clock
            if truth:
                out[used] = position
                used += 1
            candidates += 1
            place = following
    scratch.seen[CANDIDATES] += candidates
    return used


@plain_kernel
def check_leaves(  # noqa: PLR0915 (one loop; its parts would hand over twenty arrays)
    tree,
    expressions,
    predicates,
    bits,
    events,
    scratch,
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
    """Do the same as `check_leaves_by_bitmap`, with everything that can be chosen.

    Whether there is a Bloom filter (`bloom`), results are remembered (`memo`), leaves list their
    predicates (`rows`), and false candidates are counted (`adapt`).
    """
    bucket, records, fact, queue = tree.bucket, tree.records, tree.fact, scratch.queue
    result, passed, failed, at = scratch.result, scratch.passed, scratch.failed, scratch.at
    touched, met, value = scratch.touched, scratch.met, events.value
    flags, column_of = predicates.flags, predicates.column
    first_of, last_of = predicates.first, predicates.last
    low, high = predicates.low, predicates.high
    start_of, count_of = expressions.start, expressions.count
    listed = records if rows else expressions.predicate
    head, in_bitmap = header_size(bloom), bits.end
    candidates = 0
    for j in range(visited):
        b = queue[j]
        place = bucket[b, LEAF_BEGIN]
        end = place + bucket[b, LEAF_SIZE]
        discarded, false_ones = 0, 0
        while place < end:
            size, evaluated, holds = records[place], 0, True
            if bloom:
                holds = passes_bloom(records, place, bloom, filter_)
            if holds:
                # Predicates stand in the record, or are those of the expression.
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
                    # Not in the bitmap: remembered, precomputed, or to be evaluated now.
                    at_word, bit = locate_late(p - in_bitmap)
                    holds = passed[at_word] & bit != np.uint64(0)
                    if holds or flags[p] & PRECOMPUTED or failed[at_word] & bit != np.uint64(0):
                        continue
                    i = at[column_of[p]]
                    if i != NONE:
                        for n in range(first_of[p], last_of[p]):
                            holds = holds or low[n] <= value[i] <= high[n]
                    if memo:
                        # note which words are no longer 0, so that clearing them is cheap
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
                # a false candidate, and the predicates that were evaluated for it in vain
                discarded += evaluated
                false_ones += 1
            candidates += 1
            place += size
        if adapt:
            fact[b, VISITS] += 1
            fact[b, DISCARDED] += discarded
            fact[b, FALSE_CANDIDATES] += false_ones
    scratch.seen[CANDIDATES] += candidates
    return used


@inlined_kernel
def locate_late(number):
    """Return the word and the bit of a predicate that is not in the bitmap."""
    return number >> 6, np.uint64(1) << np.uint64(number & 63)


@plain_kernel
def load_event(bits, events, scratch, bloom, e):
    """Lay out an event's values and bits; return its Bloom filter and its attributes' mask."""
    filter_, mask = np.int64(0), np.int64(0)
    at, result, passed = scratch.at, scratch.result, scratch.passed
    column, code, rows, words_of = events.column, events.code, bits.bits, bits.words
    for k in range(events.start[e], events.start[e + 1]):
        c = column[k]
        at[c] = k
        mask |= attribute_bit(c)
        # copy the row of the bitmap for its value: all predicates of the column at once
        words = words_of[c]
        if words:
            row, word = bits.row[c] + code[k] * words, bits.word[c]
            for i in range(words):
                result[word + i] = rows[row + i]
        if bloom:
            filter_ |= np.int64(1) << bloom_bit(c, bloom)
    for i in range(events.true_start[e], events.true_start[e + 1]):
        # precomputed predicates that are TRUE, in the bitmap or behind it
        p = events.true[i]
        if p < bits.end:
            result[p >> 6] |= np.uint64(1) << np.uint64(p & 63)
        else:
            passed[(p - bits.end) >> 6] |= np.uint64(1) << np.uint64((p - bits.end) & 63)
    return filter_, mask


@plain_kernel
def clear_event(bits, events, scratch, e):
    """Set to 0, or NONE, what an event has left."""
    # only the words that it touched: clearing all would cost more than matching
    at, result, passed, failed = scratch.at, scratch.result, scratch.passed, scratch.failed
    column, words, word = events.column, bits.words, bits.word
    for k in range(events.start[e], events.start[e + 1]):
        c = column[k]
        at[c] = NONE
        for i in range(words[c]):
            result[word[c] + i] = 0
    for i in range(events.true_start[e], events.true_start[e + 1]):
        p = events.true[i]
        if p < bits.end:
            result[p >> 6] = 0
        else:
            passed[(p - bits.end) >> 6] = 0
            failed[(p - bits.end) >> 6] = 0
    for i in range(scratch.touched[0]):
        passed[scratch.touched[1 + i]] = 0
        failed[scratch.touched[1 + i]] = 0
    scratch.touched[0] = 0


@inlined_kernel
def passes_bloom(records, place, bloom, filter_):
    """Return whether the event has all attributes of an expression, as far as its filter tells."""
    wanted = np.int64(records[place + 3]) & np.int64(0xFFFFFFFF)
    if bloom == 64:
        wanted |= np.int64(records[place + 4]) << np.int64(32)
    return wanted & ~filter_ == 0


@plain_kernel
def fill_rows(bits, row, words, owner, low, high):
    """Set the bit of each owner, a place among a column's predicates, in the rows of its codes."""
    # owner i is TRUE for the codes from low[i] to high[i]; a row has `words` words
    for i in range(len(owner)):
        bit = np.uint64(1) << np.uint64(owner[i] & 63)
        for code in range(low[i], high[i] + 1):
            bits[row + code * words + (owner[i] >> 6)] |= bit
