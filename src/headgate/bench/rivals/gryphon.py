"""Gryphon (Aguilera et al. 1999, "Matching events in a content-based subscription system").

The generic form: at a node, each distinct predicate on its attribute is an edge, and each edge is
tested. Attributes are tested in one order, the same on every way down.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from headgate.bench.rivals.entries import Entries
from headgate.bench.rivals.static import Filed, StaticIndex
from headgate.bench.rivals.tree import no_codes, tree_of
from headgate.matching.keyed.compiled import kernel, part_of_kernel


class GryphonIndex(StaticIndex):
    """Walks a tree that tests one attribute after the other.

    >>> from headgate.workloads import range_queries
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
        column = entries.column[order]
        tree = tree_of(entries, label[entries.atom], column)
        low, high = (ends[order] for ends in entries.hull)
        atom = np.where(entries.is_hull[order], -1, order).astype(np.int32)
        edges = np.stack([*(part[tree.label] for part in (low, high, atom)), tree.ahead], axis=1)
        tail = np.stack([column, low, high, atom], axis=1)[tree.tail]
        exact = (entries.interval, entries.low, entries.high)
        codes = no_codes(entries)
        queue = np.empty(len(tree.groups), np.int64)
        return Filed(
            (*tree, edges, tail, *exact),
            partial(walked, tree, edges, tail, exact, codes, queue, len(entries)),
        )


@part_of_kernel
def accepts(exact, atom, code):
    """Is a code in one of the intervals of a predicate?"""
    found = False
    for i in range(np.uint64(exact[0][atom]), np.uint64(exact[0][atom + 1])):
        found |= (exact[1][i] <= code) & (code <= exact[2][i])
    return found


@part_of_kernel
def rest_holds(tree, tail, exact, codes, i):
    """Do the predicates hold that no edge has tested?"""
    k, stop = np.uint64(tree.rest[i]), np.uint64(tree.rest[i + np.uint64(1)])
    while k < stop:
        code = codes[np.uint32(tail[k, 0])]
        if code < tail[k, 1] or tail[k, 2] < code:
            break
        if tail[k, 3] >= 0 and not accepts(exact, tail[k, 3], code):
            break
        k += np.uint64(1)
    return k == stop


@kernel
def walked(tree, edges, tail, exact, codes, queue, most, events, row, stop, out, offsets):
    used = 0
    e = row
    while e < stop and len(out) - used >= most:
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = events.low[i]
        queue[0], first, last = 0, 0, 1
        while first < last:
            node = np.uint64(queue[first])
            first += 1
            for k in range(tree.ends[node], tree.ends[node + np.uint64(1)]):
                out[used] = tree.ended[k]
                used += 1
            for g in range(
                np.uint64(tree.groups[node]), np.uint64(tree.groups[node + np.uint64(1)])
            ):
                code = codes[np.uint32(tree.column[g])]
                if code == 0:
                    continue
                for i in range(np.uint64(tree.edges[g]), np.uint64(tree.edges[g + np.uint64(1)])):
                    if code < edges[i, 0] or edges[i, 1] < code:
                        continue
                    if codes[np.uint32(edges[i, 3])] == 0:
                        continue
                    if edges[i, 2] >= 0 and not accepts(exact, edges[i, 2], code):
                        continue
                    child = tree.child[i]
                    if child >= 0:
                        queue[last] = child
                        last += 1
                    elif rest_holds(tree, tail, exact, codes, i):
                        out[used] = -1 - child
                        used += 1
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = 0
        e += 1
        offsets[e - row] = used
    return e
