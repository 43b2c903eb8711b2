"""Advanced Gryphon (ADGR): Gryphon's tree over intervals, where covering prunes.

Each predicate becomes an interval by Table I of the BE-Tree paper: `<>` and NOT IN the whole
domain, IN what lies between its ends. More entries share an edge then, and the edges of a node that
an event takes are found without testing all of them: single values by halving; intervals in the
order of their lower ends, a covering one before those that it covers, so that where it fails they
are skipped. An entry with a predicate that is narrower than its interval is checked at last.

A domain is what the queries tell apart: `<>` of its least value leaves that out. Attributes are
tested in the order of `gryphon`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.rivals.entries import Entries
from benchmarks.rivals.static import Filed, StaticIndex
from benchmarks.rivals.tree import Packed, no_codes, tree_of
from headgate.jit import inlined_kernel, kernel

ONE = np.uint64(1)


class AdvancedGryphonIndex(StaticIndex):
    """Walks a tree of intervals, one attribute after the other.

    >>> from benchmarks.workloads import range_queries
    >>> queries = range_queries(1, seed=2)
    >>> index = AdvancedGryphonIndex.from_encoded(queries.stream, queries.encoded())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "advanced-gryphon"
    title = "Advanced Gryphon"
    how = "below the edges of its intervals in a tree, which an event walks down as they hold"

    def _file(self, entries: Entries) -> Filed:
        low, high = (ends.astype(np.int64) for ends in entries.hull)
        keys = np.stack([entries.asked[entries.column], entries.column, low != high, low, -high])
        labels, label = np.unique(keys, axis=1, return_inverse=True)
        _, column, _, low, high = labels
        high = -high
        tree = tree_of(entries, label.reshape(-1)[entries.atom], column)
        packed = Packed.of(tree, low, high)
        tail = np.stack([column, low, high], axis=1)[tree.tail].astype(np.int32)
        arrangement = arranged(tree.edges, low[tree.label], high[tree.label])
        narrow = entries.spelt_out(entries.narrow)
        room = no_codes(entries), np.empty(len(tree.groups), np.int64)
        return Filed(
            (*packed, tail, *arrangement, *narrow),
            partial(walked, packed, tail, arrangement, narrow, room),
        )


@kernel
def arranged(groups, low, high):
    """Where the intervals of each group begin, behind the single values; and for each interval the
    next that it does not cover."""
    intervals = groups[1:].astype(np.int32)
    beyond = np.empty(len(low), np.int32)
    for g in range(len(groups) - 1):
        for i in range(groups[g + 1] - 1, groups[g] - 1, -1):
            beyond[i] = i + 1
            if low[i] != high[i]:
                intervals[g] = i
                while beyond[i] < groups[g + 1] and high[beyond[i]] <= high[i]:
                    beyond[i] = beyond[beyond[i]]
    return intervals, beyond


@kernel
def checked(narrow, codes, out, used, found):
    """Of the entries found, those of which the predicates hold that are narrower than intervals."""
    starts, records = narrow
    for n in range(used, found):
        k, stop = np.uint64(starts[out[n]]), np.uint64(starts[out[n] + 1])
        holds = True
        while holds and k < stop:
            c = records[k, 0]
            holds = False
            while k < stop and records[k, 0] == c:
                holds |= (records[k, 1] <= codes[c]) & (codes[c] <= records[k, 2])
                k += np.uint64(1)
        out[used] = out[n]
        used += holds
    return used


@inlined_kernel
def rest_holds(edges, tail, codes, i):
    """Do the intervals hold that no edge has tested?"""
    k, stop = np.uint64(edges[i, 2]), np.uint64(edges[i + ONE, 2])
    while k < stop:
        code = codes[np.uint32(tail[k, 0])]
        if code < tail[k, 1] or tail[k, 2] < code:
            break
        k += ONE
    return k == stop


@inlined_kernel
def equal_edge(edges, begin, end, code):
    """The edge of this very value among single values that ascend, or `end`."""
    at, stop = begin, end
    while at < stop:
        middle = (at + stop) >> ONE
        if edges[middle, 3] < code:
            at = middle + ONE
        else:
            stop = middle
    return at if at < end and edges[at, 3] == code else end


@kernel
def walked(tree, tail, arrangement, narrow, room, events, row, stop, out, offsets):
    nodes, groups, edges, ended = tree
    intervals, beyond = arrangement
    codes, queue = room
    used = 0
    e = row
    while e < stop and len(out) - used >= len(narrow[0]) - 1:
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = events.low[i]
        queue[0], first, last, found = 0, 0, 1, used
        while first < last:
            node = np.uint64(queue[first])
            first += 1
            for k in range(np.uint64(nodes[node, 1]), np.uint64(nodes[node + ONE, 1])):
                out[found] = ended[k]
                found += 1
            for g in range(np.uint64(nodes[node, 0]), np.uint64(nodes[node + ONE, 0])):
                code = codes[np.uint32(groups[g, 0])]
                if code == 0:
                    continue
                covering, end = np.uint64(intervals[g]), np.uint64(groups[g + ONE, 1])
                i = equal_edge(edges, np.uint64(groups[g, 1]), covering, code)
                while i < end and edges[i, 3] <= code:
                    if edges[i, 4] < code:
                        i = np.uint64(beyond[i])
                        continue
                    child = edges[i, 0]
                    if codes[np.uint32(edges[i, 1])] != 0:
                        if child >= 0:
                            queue[last] = child
                            last += 1
                        elif rest_holds(edges, tail, codes, i):
                            out[found] = -1 - child
                            found += 1
                    i = covering if i < covering else i + ONE
        used = checked(narrow, codes, out, used, found)
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = 0
        e += 1
        offsets[e - row] = used
    return e
