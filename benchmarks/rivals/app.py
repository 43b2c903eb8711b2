"""APP: access predicate pruning (Farroukh et al. 2011), with ranges enumerated.

Counting as in SIFT, but each entry has an access predicate, its rarest. An event first opens the
entries whose access predicate it satisfies; in the lists of all other predicates, only entries that
are open are counted.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.rivals.entries import Entries
from benchmarks.rivals.listing import lists_of
from benchmarks.rivals.static import Filed, StaticIndex
from headgate.jit import kernel


class AppIndex(StaticIndex):
    """Counts the predicates that hold, for queries whose rarest one does.

    Memory: four bytes for each value that each predicate accepts.

    >>> from benchmarks.workloads import range_queries
    >>> queries = range_queries(1, seed=2)
    >>> index = AppIndex.from_encoded(queries.stream, queries.encoded())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "app"
    title = "APP"
    how = "counted once its rarest predicate holds"

    def _file(self, entries: Entries) -> Filed:
        access = rarest(entries.start, entries.atom, entries.likelihood())
        first, others = lists_of(entries, access), lists_of(entries, ~access)
        needed = np.diff(entries.start).astype(np.int32)
        left = np.zeros(len(entries), np.int32)
        arrays = (*first, *others, needed)
        return Filed(arrays, partial(opened, first, others, entries.base, needed, left))


@kernel
def rarest(start, atom, likelihood):
    """By predicate: is it the access predicate of its entry?"""
    access = np.zeros(len(atom), np.bool_)
    for e in range(len(start) - 1):
        best = start[e]
        for k in range(start[e], start[e + 1]):
            if likelihood[atom[k]] < likelihood[atom[best]]:
                best = k
        access[best] = True
    return access


@kernel
def opened(first, others, base, needed, left, events, row, stop, out, offsets):
    """`left` holds the predicates that an open entry still waits for, and 0 for any other."""
    used = 0
    e = row
    while e < stop and len(out) - used >= len(needed):
        begin, end = np.uint64(events.start[e]), np.uint64(events.start[e + 1])
        for i in range(begin, end):
            value = base[events.column[i]] + events.low[i]
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
                if left[q] != 0:
                    left[q] -= 1
                    if left[q] == 0:
                        out[used] = q
                        used += 1
        for i in range(begin, end):
            value = base[events.column[i]] + events.low[i]
            for k in range(np.uint64(first.start[value]), np.uint64(first.start[value + 1])):
                left[np.uint32(first.entry[k])] = 0
        e += 1
        offsets[e - row] = used
    return e
