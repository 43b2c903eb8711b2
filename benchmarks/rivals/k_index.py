"""The k-index (Whang et al. 2009, "Indexing Boolean expressions"), with ranges enumerated.

Entries are partitioned by their number of predicates, K. In each partition there is a list for each
attribute and value, in the order of the entries. An entry of partition K matches where it stands in
K lists of the event; these are walked together, in the order of their current entries, and what
cannot stand in K of them is skipped. Entries with more predicates than the event has values are
never looked at.

`<>` and NOT IN are refused: the k-index takes them to hold for an absent attribute, and to make
them fail would need a value for each absent attribute of each event (section 8.3 of the BE-Tree
paper).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rivals.entries import Entries
from benchmarks.rivals.listing import lists_of
from benchmarks.rivals.static import Filed, StaticIndex
from headgate.jit import kernel
from headgate.predicate import Atom, Within
from headgate.schema import ValueSet

END = np.uint64((1 << 64) - 1)  # the current entry of a list that was walked to its end
ONE = np.uint64(1)
LIST = np.uint64(16)  # bits for the number of a list, below those of its current entry
MOST_LISTS = 1 << 16


class KIndex(StaticIndex):
    """Walks the lists of an event's values together, for each number of predicates.

    Memory: four bytes for each value that each predicate accepts.

    >>> from benchmarks.workloads import range_queries
    >>> queries = range_queries(1, seed=2)
    >>> index = KIndex.from_encoded(queries.stream, queries.encoded())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "k-index"
    title = "the k-index"
    how = "listed under every value that one of its predicates accepts, by its number of predicates"

    @classmethod
    def _flaw(cls, atom: Atom) -> str | None:
        if isinstance(atom, Within) and _all_but_some(atom.values):
            return (
                f"<>, NOT IN or NOT BETWEEN on `{atom.column.name}`; {cls.title} would take it "
                "to hold for an absent attribute"
            )
        return super()._flaw(atom)

    def _file(self, entries: Entries) -> Filed:
        sizes = np.diff(entries.start)
        order = np.argsort(sizes, kind="stable")
        lists = lists_of(entries, order=order)
        sizes = sizes[order]
        partitions = Partitions(*partitioned(lists.start, lists.entry, sizes))
        return Filed(
            (*lists, *partitions, order),
            partial(
                walked, lists.entry, partitions, entries.base, order, int(sizes.max(initial=0))
            ),
        )


def _all_but_some(values: ValueSet) -> bool:
    """Has the set no least and no greatest value, and yet a gap?"""
    return values.starts_inside and len(values.cuts) > 0 and len(values.cuts) % 2 == 0


class Partitions(NamedTuple):
    """The lists of value v are those from `start[v]` to `start[v + 1]`: list g is of the entries
    with `size[g]` predicates, and stands at `place[g]` up to `place[g + 1]`."""

    start: Any
    size: Any
    place: Any


@kernel
def partitioned(start, entry, sizes):
    first = np.zeros(len(start), np.int64)
    count = 0
    for value in range(len(start) - 1):
        for k in range(start[value], start[value + 1]):
            if k == start[value] or sizes[entry[k]] != sizes[entry[k - 1]]:
                count += 1
        first[value + 1] = count
    size, place = np.empty(count, np.int64), np.empty(count + 1, np.int64)
    place[count] = len(entry)
    g = 0
    for value in range(len(start) - 1):
        for k in range(start[value], start[value + 1]):
            if k == start[value] or sizes[entry[k]] != sizes[entry[k - 1]]:
                size[g], place[g] = sizes[entry[k]], k
                g += 1
    return first, size, place


@kernel
def walked(entry, partitions, base, order, greatest, events, row, stop, out, offsets):
    """For each K the lists of the event's values, and the entries that stand in K of them."""
    widest = 1
    for e in range(row, stop):
        widest = max(widest, events.start[e + 1] - events.start[e])
    group, last = np.empty(widest, np.int64), np.empty(widest, np.int64)
    place, end = np.empty(widest, np.int64), np.empty(widest, np.int64)
    current = np.empty(widest, np.uint64)
    used = 0
    e = row
    while e < stop and len(out) - used >= len(order):
        values = events.start[e + 1] - events.start[e]
        for i in range(values):
            k = events.start[e] + i
            value = base[events.column[k]] + events.low[k]
            group[i], last[i] = partitions.start[value], partitions.start[value + 1]
        for size in range(1, min(values, greatest) + 1):
            count = 0
            for i in range(values):
                g = group[i]
                if g < last[i] and partitions.size[g] == size:
                    place[count], end[count] = partitions.place[g], partitions.place[g + 1]
                    group[i] += 1
                    count += 1
            if size == 1:
                used = all_of(entry, place, end, count, order, out, used)
            elif count >= size:
                used = in_all(entry, place, end, current[:count], size, order, out, used)
        e += 1
        offsets[e - row] = used
    return e


@kernel
def all_of(entry, place, end, count, order, out, used):
    for i in range(count):
        for k in range(np.uint64(place[i]), np.uint64(end[i])):
            out[used] = order[np.uint32(entry[k])]
            used += 1
    return used


@kernel
def in_all(entry, place, end, current, size, order, out, used):
    """The entries that stand in `size` lists: `current` has the current entry of each list, with
    the list's number below it, and ascends."""
    count = np.uint64(len(current))
    for i in range(len(current)):
        current[i] = (np.uint64(entry[place[i]]) << LIST) | np.uint64(i)
    current.sort()
    while current[size - 1] != END:
        least, most = current[0] >> LIST, current[size - 1] >> LIST
        target = most
        if least == most:
            out[used] = order[most]
            used += 1
            target = most + ONE
        for j in range(size - 1, -1, -1):
            if current[j] >> LIST < target:
                moved = skipped(entry, place, end, current[j], target)
                at = np.uint64(j)
                while at + ONE < count and current[at + ONE] < moved:
                    current[at] = current[at + ONE]
                    at += ONE
                current[at] = moved
    return used


@kernel
def skipped(entry, place, end, current, target):
    """Move a list to its first entry that is not below the target: in growing steps, then back."""
    i = current & np.uint64(MOST_LISTS - 1)
    at, stop, step = np.uint64(place[i]) + ONE, np.uint64(end[i]), ONE
    while at + step < stop and np.uint64(entry[at + step]) < target:
        at += step
        step <<= ONE
    while step:
        while at + step < stop and np.uint64(entry[at + step]) < target:
            at += step
        step >>= ONE
    while at < stop and np.uint64(entry[at]) < target:
        at += ONE
    place[i] = at
    if at >= stop:
        return END
    return (np.uint64(entry[at]) << LIST) | i
