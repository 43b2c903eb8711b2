"""Kernels of Gryphon: walk a tree of predicates, testing every edge of a node."""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel

ONE = np.uint64(1)


@inlined_kernel
def accepts_code(interval, low, high, atom, code):
    """Return whether a code is in one of the intervals of a predicate."""
    # no early exit: a predicate has few intervals, and without a branch this is faster
    accepted = False
    for i in range(np.uint64(interval[atom]), np.uint64(interval[atom + 1])):
        accepted |= (low[i] <= code) & (code <= high[i])
    return accepted


@inlined_kernel
def rest_holds(edges, tail, interval, low, high, codes, i):
    """Return whether the predicates hold that no edge has tested."""
    # a row of `tail` is column, low, high, and the predicate to test in full, or −1
    k, stop = np.uint64(edges[i, 2]), np.uint64(edges[i + ONE, 2])
    while k < stop:
        code = codes[np.uint32(tail[k, 0])]
        if code < tail[k, 1] or tail[k, 2] < code:
            break
        if tail[k, 3] >= 0 and not accepts_code(interval, low, high, tail[k, 3], code):
            break
        k += ONE
    return k == stop


@kernel
def walk_predicates(tree, tail, exact, room, most, events, row, stop, out, offsets):
    """Append the entries that match each event; return the first event that was not tried.

    A row of `nodes` is first group and first end, of `groups` column and first edge, of `edges`
    child, attribute ahead, start of its tail, low, high and the predicate to test in full.
    """
    nodes, groups, edges, ended = tree
    interval, low, high = exact
    codes, queue = room
    used = 0
    e = row
    while e < stop and len(out) - used >= most:
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = events.low[i]
        # breadth first: `queue` holds the nodes that the event reaches
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
                    # nothing below can match without the attribute ahead
                    if codes[np.uint32(edges[i, 1])] == 0:
                        continue
                    if edges[i, 5] >= 0 and not accepts_code(
                        interval, low, high, edges[i, 5], code
                    ):
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
