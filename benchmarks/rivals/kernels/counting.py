"""Kernels of the rivals that count predicates: enumeration, SIFT and APP.

Every `match_…` kernel reads events from `row` on, appends the entries that match to `out`, sets
`offsets`, and returns the event before which the room in `out` might not have sufficed.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, lowest_bit

BLOCK = 512  # counters are compared so many at a time
LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)


@kernel
def match_by_counting(lists, base, needed, counters, most, events, row, stop, out, offsets):
    """SIFT: count all predicates of an event, then compare all counters, eight in a word."""
    # one byte for each entry, viewed as words so that comparing takes vector registers
    words, needed_words = counters.view(np.uint64), needed.view(np.uint64)
    equal = np.empty(BLOCK // 8, np.uint64)
    used = np.uint64(0)
    e = row
    while e < stop and len(out) - used >= most:
        count_up(lists.start, lists.entry, base, counters, events, e)
        used = take_matches(words, needed_words, equal, out, used)
        e += 1
        offsets[e - row] = used
    return e


@kernel
def count_up(start, entry, base, counters, events, e):
    """Add one to the counter of every entry that accepts a value of event e."""
    # unsigned indices, because Numba tests signed ones for being negative
    for i in range(np.uint64(events.start[e]), np.uint64(events.start[e + 1])):
        value = base[events.column[i]] + events.low[i]
        for k in range(np.uint64(start[value]), np.uint64(start[value + 1])):
            counters[np.uint32(entry[k])] += np.uint8(1)


@kernel
def take_matches(words, needed, equal, out, used):
    """Append the queries whose counters have what is needed, and clear all counters.

    In a word of eight counters, the highest bit of a byte of `equal` says that they are equal.
    Eight such words are laid into one: bit i of byte b stands for counter b of word i.
    """
    for block in range(np.uint64(0), np.uint64(len(words)), np.uint64(BLOCK // 8)):
        for i in range(np.uint64(BLOCK // 8)):  # this loop and the next are for vector registers
            x = words[block + i] ^ needed[block + i]
            equal[i] = ~(((x & LOW_BITS) + LOW_BITS) | x | LOW_BITS)
        for i in range(np.uint64(BLOCK // 8)):
            words[block + i] = np.uint64(0)
        for first in range(np.uint64(0), np.uint64(BLOCK // 8), np.uint64(8)):
            bits = np.uint64(0)
            for i in range(np.uint64(8)):
                bits |= equal[first + i] >> (np.uint64(7) - i)
            while bits:
                place = np.uint64(lowest_bit(bits))
                word = block + first + (place & np.uint64(7))
                out[used] = (word << np.uint64(3)) + (place >> np.uint64(3))
                used += np.uint64(1)
                bits &= bits - np.uint64(1)
    return used


@kernel
def match_by_steps(lists, base, needed, counting, most, events, row, stop, out, offsets):
    """SIFT as the paper tells it: a test after each step up.

    `counting` has, for each entry, its count and the event that it was last used for, and a clock.
    """
    count, last, clock = counting
    used = 0
    now = clock[0]
    e = row
    while e < stop and len(out) - used >= most:
        now += 1
        for i in range(np.uint64(events.start[e]), np.uint64(events.start[e + 1])):
            value = base[events.column[i]] + events.low[i]
            for k in range(np.uint64(lists.start[value]), np.uint64(lists.start[value + 1])):
                q = np.uint32(lists.entry[k])
                # a counter that was last used for another event begins at 0
                if last[q] != now:
                    last[q], count[q] = now, 0
                count[q] += 1
                if count[q] == needed[q]:
                    out[used] = q
                    used += 1
        e += 1
        offsets[e - row] = used
    clock[0] = now
    return e


@kernel
def mark_rarest(start, atom, likelihood):
    """Return, for each predicate, whether it is the rarest of its entry."""
    # exactly one predicate for each entry; ties go to the first
    access = np.zeros(len(atom), np.bool_)
    for e in range(len(start) - 1):
        best = start[e]
        for k in range(start[e], start[e + 1]):
            if likelihood[atom[k]] < likelihood[atom[best]]:
                best = k
        access[best] = True
    return access


@kernel
def match_opened(first, others, base, needed, left, events, row, stop, out, offsets):
    """APP: count only for entries whose rarest predicate holds.

    `left` holds the predicates that an open entry still waits for, and 0 for any other.
    """
    used = 0
    e = row
    while e < stop and len(out) - used >= len(needed):
        begin, end = np.uint64(events.start[e]), np.uint64(events.start[e + 1])
        for i in range(begin, end):
            value = base[events.column[i]] + events.low[i]
            # open the entries whose access predicate accepts this value
            for k in range(np.uint64(first.start[value]), np.uint64(first.start[value + 1])):
                q = np.uint32(first.entry[k])
                left[q] = needed[q] - 1
                if left[q] == 0:
                    out[used] = q
                    used += 1
        for i in range(begin, end):
            value = base[events.column[i]] + events.low[i]
            for k in range(np.uint64(others.start[value]), np.uint64(others.start[value + 1])):
                q = np.uint32(others.entry[k])
                # only entries that are open are counted
                if left[q] != 0:
                    left[q] -= 1
                    if left[q] == 0:
                        out[used] = q
                        used += 1
        for i in range(begin, end):
            value = base[events.column[i]] + events.low[i]
            for k in range(np.uint64(first.start[value]), np.uint64(first.start[value + 1])):
                # closed again, for the next event
                left[np.uint32(first.entry[k])] = 0
        e += 1
        offsets[e - row] = used
    return e


@kernel
def fill_lists(entries, chosen, order):
    """List each entry under every value that its chosen predicates accept."""
    # first count the length of each list, then fill the lists in the given order
    start = np.zeros(entries.base[-1] + 1, np.int64)
    for k in range(len(entries.atom)):
        if chosen[k]:
            a = entries.atom[k]
            base = entries.base[entries.column[a]]
            for i in range(entries.interval[a], entries.interval[a + 1]):
                for value in range(base + entries.low[i], base + entries.high[i] + 1):
                    start[value + 1] += 1
    for value in range(len(start) - 1):
        start[value + 1] += start[value]
    used = start[:-1].copy()
    entry = np.empty(start[-1], np.int32)
    for n in range(len(order)):
        for k in range(entries.start[order[n]], entries.start[order[n] + 1]):
            if chosen[k]:
                a = entries.atom[k]
                base = entries.base[entries.column[a]]
                for i in range(entries.interval[a], entries.interval[a + 1]):
                    for value in range(base + entries.low[i], base + entries.high[i] + 1):
                        entry[used[value]] = n
                        used[value] += 1
    return start, entry
