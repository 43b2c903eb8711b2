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
def walk_predicates(tree, tail, exact, scratch, most, events, row, stop, out, offsets):
    """Append the entries that match each event; return the first event that was not tried.

    A row of `nodes` is first group and first end, of `groups` column and first edge, of `edges`
    child, attribute ahead, start of its tail, low, high and the predicate to test in full.
    """
    nodes, groups, edges, ended = tree
    interval, low, high = exact
    codes, queue = scratch
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


# Kernels of Advanced Gryphon: walk a tree of intervals, skipping what a failed one covers.


@kernel
def arrange_intervals(groups, low, high):
    """Return where the intervals of each group begin, and for each the next it does not cover.

    Single values come before the intervals of a group.
    """
    intervals = groups[1:].astype(np.int32)
    beyond = np.empty(len(low), np.int32)
    for g in range(len(groups) - 1):
        # backwards, so that what lies beyond the intervals behind is known already
        for i in range(groups[g + 1] - 1, groups[g] - 1, -1):
            beyond[i] = i + 1
            if low[i] != high[i]:
                intervals[g] = i
                while beyond[i] < groups[g + 1] and high[beyond[i]] <= high[i]:
                    beyond[i] = beyond[beyond[i]]
    return intervals, beyond


@kernel
def keep_exact(narrow, codes, out, used, end):
    """Keep of `out[used:end]` the entries whose predicates narrower than intervals hold too."""
    starts, records = narrow
    for n in range(used, end):
        k, stop = np.uint64(starts[out[n]]), np.uint64(starts[out[n] + 1])
        holds = True
        while holds and k < stop:
            c = records[k, 0]
            # the intervals of one predicate lie together, and one of them must hold
            holds = False
            while k < stop and records[k, 0] == c:
                holds |= (records[k, 1] <= codes[c]) & (codes[c] <= records[k, 2])
                k += np.uint64(1)
        out[used] = out[n]
        used += holds
    return used


@inlined_kernel
def rest_of_intervals_holds(edges, tail, codes, i):
    """Return whether the intervals hold that no edge has tested."""
    # a row of `tail` is column, low and high
    k, stop = np.uint64(edges[i, 2]), np.uint64(edges[i + ONE, 2])
    while k < stop:
        code = codes[np.uint32(tail[k, 0])]
        if code < tail[k, 1] or tail[k, 2] < code:
            break
        k += ONE
    return k == stop


@inlined_kernel
def equal_edge(edges, begin, end, code):
    """Return the edge of this very value among ascending single values, or `end`."""
    # by halving
    at, stop = begin, end
    while at < stop:
        middle = (at + stop) >> ONE
        if edges[middle, 3] < code:
            at = middle + ONE
        else:
            stop = middle
    return at if at < end and edges[at, 3] == code else end


@kernel
def walk_intervals(tree, tail, arrangement, narrow, scratch, events, row, stop, out, offsets):
    """Append the entries that match each event; return the first event that was not tried."""
    nodes, groups, edges, ended = tree
    intervals, beyond = arrangement
    codes, queue = scratch
    used = 0
    e = row
    while e < stop and len(out) - used >= len(narrow[0]) - 1:
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = events.low[i]
        # breadth first; entries from `used` to `reached` are candidates until `keep_exact`
        queue[0], first, last, reached = 0, 0, 1, used
        while first < last:
            node = np.uint64(queue[first])
            first += 1
            for k in range(np.uint64(nodes[node, 1]), np.uint64(nodes[node + ONE, 1])):
                out[reached] = ended[k]
                reached += 1
            for g in range(np.uint64(nodes[node, 0]), np.uint64(nodes[node + ONE, 0])):
                code = codes[np.uint32(groups[g, 0])]
                if code == 0:
                    continue
                covering, end = np.uint64(intervals[g]), np.uint64(groups[g + ONE, 1])
                i = equal_edge(edges, np.uint64(groups[g, 1]), covering, code)
                while i < end and edges[i, 3] <= code:
                    # a covering interval fails, and so do those that it covers
                    if edges[i, 4] < code:
                        i = np.uint64(beyond[i])
                        continue
                    child = edges[i, 0]
                    if codes[np.uint32(edges[i, 1])] != 0:
                        if child >= 0:
                            queue[last] = child
                            last += 1
                        elif rest_of_intervals_holds(edges, tail, codes, i):
                            out[reached] = -1 - child
                            reached += 1
                    i = covering if i < covering else i + ONE
        used = keep_exact(narrow, codes, out, used, reached)
        for i in range(events.start[e], events.start[e + 1]):
            codes[events.column[i]] = 0
        e += 1
        offsets[e - row] = used
    return e
