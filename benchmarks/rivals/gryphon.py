"""Gryphon (Aguilera et al. 1999, "Matching events in a content-based subscription system").

The generic form: at a node, each distinct predicate on its attribute is an edge, and each edge is
tested. Attributes are tested in one order, the same on every way down: here the one that fewest
queries ask for comes first. Beginning with the most popular ones was as fast on a uniform workload,
and took six times as long where attributes follow Zipf's law.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.rivals.entries import Entries
from benchmarks.rivals.static import Filed, StaticIndex
from benchmarks.rivals.tree import Packed, no_codes, tree_of
from headgate.jit import inlined_kernel, kernel

ONE = np.uint64(1)


class GryphonIndex(StaticIndex):
    """Walks a tree that tests one attribute after the other.

    >>> from benchmarks.workloads import range_queries
    >>> queries = range_queries(1, seed=2)
    >>> index = GryphonIndex.from_encoded(queries.stream, queries.encoded())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "gryphon"
    title = "Gryphon"
    how = "below the edges of its predicates in a tree, which an event walks down as they hold"

    def _file(self, entries: Entries) -> Filed:
        order = np.lexsort((entries.column, entries.asked[entries.column]))
        label = np.empty(len(order), np.int64)
        label[order] = np.arange(len(order))
        column = entries.column[order].astype(np.int64)
        tree = tree_of(entries, label[entries.atom], column)
        low, high = (ends[order] for ends in entries.hull)
        atom = np.where(entries.is_hull[order], -1, order).astype(np.int32)
        packed = Packed.of(tree, low, high, atom)
        tail = np.stack([column, low, high, atom], axis=1)[tree.tail].astype(np.int32)
        exact = (entries.interval, entries.low, entries.high)
        room = no_codes(entries), np.empty(len(tree.groups), np.int64)
        return Filed(
            (*packed, tail, *exact), partial(walked, packed, tail, exact, room, len(entries))
        )


@inlined_kernel
def accepts(interval, low, high, atom, code):
    """Is a code in one of the intervals of a predicate?"""
    found = False
    for i in range(np.uint64(interval[atom]), np.uint64(interval[atom + 1])):
        found |= (low[i] <= code) & (code <= high[i])
    return found


@inlined_kernel
def rest_holds(edges, tail, interval, low, high, codes, i):
    """Do the predicates hold that no edge has tested?"""
    k, stop = np.uint64(edges[i, 2]), np.uint64(edges[i + ONE, 2])
    while k < stop:
        code = codes[np.uint32(tail[k, 0])]
        if code < tail[k, 1] or tail[k, 2] < code:
            break
        if tail[k, 3] >= 0 and not accepts(interval, low, high, tail[k, 3], code):
            break
        k += ONE
    return k == stop


@kernel
def walked(tree, tail, exact, room, most, events, row, stop, out, offsets):
    nodes, groups, edges, ended = tree
    interval, low, high = exact
    codes, queue = room
    used = 0
    e = row
    while e < stop and len(out) - used >= most:
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = events.low[i]
        queue[0], first, last = 0, 0, 1
        while first < last:
            node = np.uint64(queue[first])
            first += 1
            for k in range(np.uint64(nodes[node, 1]), np.uint64(nodes[node + ONE, 1])):
                out[used] = ended[k]
                used += 1
            for g in range(np.uint64(nodes[node, 0]), np.uint64(nodes[node + ONE, 0])):
                code = codes[np.uint32(groups[g, 0])]
                if code == 0:
                    continue
                for i in range(np.uint64(groups[g, 1]), np.uint64(groups[g + ONE, 1])):
                    if code < edges[i, 3] or edges[i, 4] < code:
                        continue
                    if codes[np.uint32(edges[i, 1])] == 0:
                        continue
                    if edges[i, 5] >= 0 and not accepts(interval, low, high, edges[i, 5], code):
                        continue
                    child = edges[i, 0]
                    if child >= 0:
                        queue[last] = child
                        last += 1
                    elif rest_holds(edges, tail, interval, low, high, codes, i):
                        out[used] = -1 - child
                        used += 1
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = 0
        e += 1
        offsets[e - row] = used
    return e
