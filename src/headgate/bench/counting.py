"""The rival that needs no key: counting, as in SIFT (the BE-Tree paper's section 8.1).

For each attribute and value there is a list of the queries with a predicate that accepts it. An
event counts up the queries in the lists of its own values; one whose count reaches the number of
its predicates matches.

It is as fast as we could make it: counters of one byte, which are compared and cleared in vector
registers. Going through the lists once more to compare and clear only what was touched, counters
that carry the event's number, and a test after each step up were slower, by 25 % to 280 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.errors import UsageError
from headgate.matching.keyed.compiled import kernel
from headgate.matching.keyed.intrinsics import lowest_bit
from headgate.workloads import Conjunctions
from headgate.workloads.integer_events import Numbers, Offsets
from headgate.workloads.operators import UNEQUAL

OUTPUT = 1 << 21  # matches of a chunk, unless a single event may have more
BLOCK = 512  # counters are compared so many at a time
MOST = 255  # predicates of a query that no counter reaches; it stands where there is no query
LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)


class Lists(NamedTuple):
    """Value v of attribute a is accepted by `query[start[i]:start[i + 1]]`, i = a·cardinality + v.

    Query q has `needed[q]` predicates.
    """

    cardinality: int
    start: npt.NDArray[np.int64]
    query: npt.NDArray[np.int32]
    needed: npt.NDArray[np.uint8]


class CountingIndex:
    """Exact for conjunctions of =, ranges and BETWEEN.

    Memory: four bytes for each value that each predicate accepts.

    >>> from headgate.workloads import range_queries
    >>> queries = range_queries(1, seed=2)
    >>> next(queries.where_clauses())
    'a6 >= 64 AND a7 <= 21 AND a10 <= 31 AND a18 BETWEEN 20 AND 57'
    >>> event = np.full((1, 20), -1, np.int32)
    >>> event[0, [6, 7, 10, 18]] = 64, 21, 0, 30
    >>> [ids.tolist() for _, ids in CountingIndex(queries).match_chunks(event)]
    [[0]]
    """

    def __init__(self, queries: Conjunctions) -> None:
        sizes = np.diff(queries.offsets)
        if len(queries.listed.predicate) or (queries.operator == UNEQUAL).any():
            raise UsageError("counting is for =, ranges and BETWEEN; here is IN, NOT IN or <>")
        if sizes.max(initial=0) >= MOST:
            raise UsageError(f"counting is for queries of fewer than {MOST} predicates")
        needed = np.full(-(-len(queries) // BLOCK) * BLOCK, MOST, np.uint8)
        needed[: len(queries)] = sizes
        count = len(queries.stream.attributes) * queries.cardinality
        start, query = inverted(
            queries.offsets,
            queries.attribute,
            queries.low,
            queries.high,
            queries.cardinality,
            count,
        )
        self._lists = Lists(queries.cardinality, start, query, needed)

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self._lists[1:])

    def match_chunks(self, events: Numbers) -> Iterator[tuple[Offsets, npt.NDArray[np.int32]]]:
        """Offsets and queries, as in `Matches`, but in no order and valid until the next chunk.

        Events are rows of values; those below 0 or beyond the cardinality are absent.
        """
        counters = np.zeros(len(self._lists.needed), np.uint8)
        return self._chunks(events, lambda *place: match(self._lists, events, counters, *place))

    def match_by_steps(self, events: Numbers) -> Iterator[tuple[Offsets, npt.NDArray[np.int32]]]:
        """The same, as the paper tells it: each step up is followed by a test."""
        count = np.zeros(len(self._lists.needed), np.int32)
        last = np.zeros(len(self._lists.needed), np.int64)
        return self._chunks(
            events, lambda *place: by_steps(self._lists, events, count, last, *place)
        )

    def _chunks(
        self, events: Numbers, matched: Callable[..., int]
    ) -> Iterator[tuple[Offsets, npt.NDArray[np.int32]]]:
        out = np.empty(max(OUTPUT, len(self._lists.needed)), np.int32)
        offsets = np.empty(len(events) + 1, np.int64)
        row = 0
        while row < len(events):
            end = matched(row, out, offsets)
            yield offsets[: end - row + 1], out[: offsets[end - row]]
            row = end


@kernel
def inverted(offsets, attribute, low, high, cardinality, count):
    """The lists of all attributes and values, and where each begins."""
    start = np.zeros(count + 1, np.int64)
    for k in range(len(attribute)):
        base = attribute[k] * cardinality
        for i in range(base + low[k], base + high[k] + 1):
            start[i + 1] += 1
    for i in range(count):
        start[i + 1] += start[i]
    used = start[:-1].copy()
    query = np.empty(start[-1], np.int32)
    for q in range(len(offsets) - 1):
        for k in range(offsets[q], offsets[q + 1]):
            base = attribute[k] * cardinality
            for i in range(base + low[k], base + high[k] + 1):
                query[used[i]] = q
                used[i] += 1
    return start, query


@kernel
def match(lists, events, counters, begin, out, offsets):
    """Match events from `begin` on until `out` might not hold the next one; how far it got."""
    words, needed = counters.view(np.uint64), lists.needed.view(np.uint64)
    equal = np.empty(BLOCK // 8, np.uint64)
    used = np.uint64(0)
    e = begin
    while e < len(events) and len(out) - used >= len(counters):
        offsets[e - begin] = used
        count_up(lists, events[e], counters)
        used = take(words, needed, equal, out, used)
        e += 1
    offsets[e - begin] = used
    return e


@kernel
def by_steps(lists, events, count, last, begin, out, offsets):
    """As `match`; a counter that was last used for another event, by `last`, begins at 0."""
    used = 0
    e = begin
    while e < len(events) and len(out) - used >= len(count):
        offsets[e - begin] = used
        for attribute in range(events.shape[1]):
            if np.uint32(events[e, attribute]) < lists.cardinality:
                place = attribute * lists.cardinality + events[e, attribute]
                for k in range(np.uint64(lists.start[place]), np.uint64(lists.start[place + 1])):
                    q = np.uint32(lists.query[k])
                    if last[q] != e + 1:
                        last[q], count[q] = e + 1, 0
                    count[q] += 1
                    if count[q] == lists.needed[q]:
                        out[used] = q
                        used += 1
        e += 1
    offsets[e - begin] = used
    return e


@kernel
def count_up(lists, event, counters):
    # unsigned indices, because Numba tests signed ones for being negative
    for attribute in range(len(event)):
        if np.uint32(event[attribute]) < lists.cardinality:
            place = attribute * lists.cardinality + event[attribute]
            for k in range(np.uint64(lists.start[place]), np.uint64(lists.start[place + 1])):
                counters[np.uint32(lists.query[k])] += np.uint8(1)


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
