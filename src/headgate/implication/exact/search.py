"""The search for what a union of boxes leaves uncovered: kernels.

A stack of parts of one query box, each with the boxes that overlap what it was split from. A part
keeps only the boxes that overlap it. It is done where one of them holds it; it is uncovered where
there is none; else the box that holds most of it is cut out, and what sticks out, side by side,
goes onto the stack. So nothing is stored but the parts beside the way down.

`parts` are (low, high) by number; `spans` say where in `lists` the boxes of each part's parent are.
The lists of a part lie after those of its parent, and are overwritten by those of its siblings.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel

COVERED = 0
UNCOVERED = 1
UNDECIDED = 2  # past the budget

SLACK = 1e-9  # shares are sums of rounded numbers


@inlined_kernel
def with_room(array, needed):
    """The array itself, or a larger one with the same content."""
    if needed <= len(array):
        return array
    larger = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@inlined_kernel
def cut_out(low, high, first, end, parts, spans, top, span):
    """Push what of a part sticks out of a box: the side that sticks out most is cut off first."""
    dimensions = len(low)
    for _ in range(dimensions):
        most, at = 0.0, -1
        for k in range(dimensions):
            out = max(0, low[k] - first[k]) + max(0, end[k] - high[k])
            if out > 0 and out / (end[k] - first[k]) > most:
                most, at = out / (end[k] - first[k]), k
        if at < 0:
            break
        for above in range(2):
            if (first[at] >= low[at]) if above == 0 else (high[at] >= end[at]):
                continue
            for k in range(dimensions):
                parts[top, 0, k] = first[k]
                parts[top, 1, k] = end[k]
            if above == 0:
                parts[top, 1, at] = low[at]
            else:
                parts[top, 0, at] = high[at]
            spans[top, 0], spans[top, 1] = span[0], span[1]
            top += 1
        first[at] = max(first[at], low[at])
        end[at] = min(end[at], high[at])
    return top


@kernel
def search_uncovered(low, high, parts, spans, lists, top, budget, wants_part):
    """Go on until a part is uncovered, which is then `parts[top]`, or nothing is left.

    Returns the state again, since it may have grown, then how many parts were stored at most, and
    how many sides were compared, at most about `budget`. Without `wants_part` it stops as soon as
    the boxes together are too small to cover a part.
    """
    dimensions = low.shape[1]
    first = np.empty(dimensions, np.int32)
    end = np.empty(dimensions, np.int32)
    span = np.empty(2, np.int64)
    most, compared = top, 0
    while top > 0:
        if compared >= budget:
            return UNDECIDED, parts, spans, lists, top, most, compared
        top -= 1
        for k in range(dimensions):
            first[k] = parts[top, 0, k]
            end[k] = parts[top, 1, k]
        begin, stop = spans[top, 0], spans[top, 1]
        lists = with_room(lists, 2 * stop - begin)
        count, best, largest, total = (
            stop,
            -1,
            -1.0,
            0.0,
        )  # a share may be 0.0, too small for a float
        for at in range(begin, stop):
            box = lists[at]
            share, inside, apart = 1.0, True, False
            for k in range(dimensions):
                compared += 1
                bottom = max(low[box, k], first[k])
                ceiling = min(high[box, k], end[k])
                if bottom >= ceiling:
                    apart = True
                    break
                if bottom != first[k] or ceiling != end[k]:
                    inside = False
                    share *= (ceiling - bottom) / (end[k] - first[k])
            if apart:
                continue
            if inside:
                best = -2
                break
            lists[count] = box
            count += 1
            total += share
            if share > largest:
                largest, best = share, box
        if best == -2:
            continue
        if best == -1 or (not wants_part and total < 1 - SLACK):
            return UNCOVERED, parts, spans, lists, top, most, compared
        parts = with_room(parts, top + 2 * dimensions)
        spans = with_room(spans, top + 2 * dimensions)
        span[0], span[1] = stop, count
        top = cut_out(low[best], high[best], first, end, parts, spans, top, span)
        most = max(most, top)
    return COVERED, parts, spans, lists, top, most, compared


@kernel
def match_boxes(query_low, query_high, low, high, budget):
    """Add each query box that the union does not cover to the union.

    `low` and `high` have room for all query boxes after the union's own. Returns the status, OPEN
    where the budget did not do, how many boxes there are in the end, and what was stored at most
    and compared.
    """
    queries, dimensions = query_low.shape
    count = len(low) - queries
    parts = np.empty((max(64, 2 * dimensions), 2, dimensions), np.int32)
    spans = np.empty((max(64, 2 * dimensions), 2), np.int64)
    lists = np.empty(2 * len(low) + 64, np.int32)
    for at in range(count):  # searches write only behind these
        lists[at] = at
    status, most, compared = COVERED, 0, 0
    for query in range(queries):
        parts[0, 0], parts[0, 1] = query_low[query], query_high[query]
        spans[0, 0], spans[0, 1] = 0, count
        found, parts, spans, lists, _, stored, sides = search_uncovered(
            low, high, parts, spans, lists, 1, budget - compared, False
        )
        compared += sides
        most = max(most, stored)
        if found != COVERED:
            low[count], high[count] = query_low[query], query_high[query]
            lists[count] = count
            count += 1
            status = max(status, found)
    return status, count, most, compared
