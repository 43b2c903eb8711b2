"""SIFT: counting (Yan and García-Molina 1994, "Index structures for selective dissemination of
information under the Boolean model"), with ranges enumerated.

For each attribute and value there is a list of the entries with a predicate that accepts it. An
event counts up the entries in the lists of its own values; one whose count reaches the number of
its predicates matches. `<>` and NOT IN are enumerated too, so an absent attribute fails them.

`SiftIndex` is as fast as we could make it: counters of one byte, which are compared and cleared in
vector registers. Going through the lists once more to compare and clear only what was touched,
counters that carry the event's number, and a test after each step up were slower, by 25 % to 280 %.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.entries import Entries
from benchmarks.rivals.listing import lists_of
from benchmarks.rivals.static import Filed, StaticIndex
from headgate.errors import QuerySetError
from headgate.jit import kernel, lowest_bit

BLOCK = 512  # counters are compared so many at a time
MOST = 255  # predicates of a query that no counter reaches; it stands where there is no query
LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)


class SiftIndex(StaticIndex):
    """Counts the predicates that hold, for all queries at once.

    Memory: four bytes for each value that each predicate accepts.

    >>> from benchmarks.workloads import range_queries
    >>> queries = range_queries(1, seed=2)
    >>> next(queries.where_clauses())
    'a6 >= 64 AND a7 <= 21 AND a10 <= 31 AND a18 BETWEEN 20 AND 57'
    >>> index = SiftIndex.from_encoded(queries.stream, queries.encoded())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "sift"
    title = "SIFT"
    how = "listed under every value that one of its predicates accepts, and counted"

    def _file(self, entries: Entries) -> Filed:
        lists, needed = lists_of(entries), needed_by(entries)
        counters = np.zeros(len(needed), np.uint8)
        match = partial(counted, lists, entries.base, needed, counters, len(entries))
        return Filed((*lists, needed), match)


class SiftByStepsIndex(SiftIndex):
    """The same as the paper tells it: each step up is followed by a test.

    A counter that was last used for another event begins at 0.
    """

    kind = "sift-by-steps"

    def _file(self, entries: Entries) -> Filed:
        lists, needed = lists_of(entries), needed_by(entries)
        count = np.zeros(len(needed), np.int32)
        last = np.zeros(len(needed), np.int64)
        clock = np.zeros(1, np.int64)
        counting = (count, last, clock)
        match = partial(by_steps, lists, entries.base, needed, counting, len(entries))
        return Filed((*lists, needed), match)


def needed_by(entries: Entries) -> npt.NDArray[np.uint8]:
    """The number of predicates of each entry, in whole blocks."""
    sizes = np.diff(entries.start)
    if sizes.max(initial=0) >= MOST:
        raise QuerySetError(f"a query has {MOST} predicates or more; SIFT counts up to {MOST - 1}")
    needed = np.full(-(-len(entries) // BLOCK) * BLOCK, MOST, np.uint8)
    needed[: len(entries)] = sizes
    return needed


@kernel
def counted(lists, base, needed, counters, most, events, row, stop, out, offsets):
    words, wanted = counters.view(np.uint64), needed.view(np.uint64)
    equal = np.empty(BLOCK // 8, np.uint64)
    used = np.uint64(0)
    e = row
    while e < stop and len(out) - used >= most:
        count_up(lists.start, lists.entry, base, counters, events, e)
        used = take(words, wanted, equal, out, used)
        e += 1
        offsets[e - row] = used
    return e


@kernel
def count_up(start, entry, base, counters, events, e):
    # unsigned indices, because Numba tests signed ones for being negative
    for i in range(np.uint64(events.start[e]), np.uint64(events.start[e + 1])):
        value = base[events.column[i]] + events.low[i]
        for k in range(np.uint64(start[value]), np.uint64(start[value + 1])):
            counters[np.uint32(entry[k])] += np.uint8(1)


@kernel
def take(words, needed, equal, out, used):
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
def by_steps(lists, base, needed, counting, most, events, row, stop, out, offsets):
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
