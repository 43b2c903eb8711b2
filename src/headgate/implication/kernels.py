"""Search for what a union of boxes leaves uncovered.

The search keeps a stack of parts of one query box, each with the boxes that overlap the part it was
split from. A part keeps only the boxes that overlap it. It is done where one of them holds it; it
is uncovered where there is none; otherwise the box that holds most of it is cut out, and what
sticks out, dimension by dimension, goes onto the stack. So only the siblings along one path are
ever stored.

`parts[n]` is (low, high) of part n, and `lists[spans[n, 0]:spans[n, 1]]` are the boxes of its
parent. The list of a part lies behind that of its parent, and its siblings overwrite it.
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
    """Return the array itself, or a larger one with the same content."""
    # Doubling keeps the copies linear in what is stored in the end.
    if needed <= len(array):
        return array
    larger = np.empty((max(needed, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@inlined_kernel
def cut_out(low, high, first, end, parts, spans, top, span):
    """Push what of the part [first, end) sticks out of a box; return the new top of the stack."""
    dimensions = len(low)
    # The side that sticks out most is cut off first: the largest piece is then pushed whole, and
    # what is left to cut is small.
    for _ in range(dimensions):
        largest, at = 0.0, -1
        for k in range(dimensions):
            out = max(0, low[k] - first[k]) + max(0, end[k] - high[k])
            if out > 0 and out / (end[k] - first[k]) > largest:
                largest, at = out / (end[k] - first[k]), k
        if at < 0:
            break
        for above in range(2):  # the piece below the box, then the one above it
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
        # Go on with what lies inside the box in this dimension.
        first[at] = max(first[at], low[at])
        end[at] = min(end[at], high[at])
    return top


@kernel
def search_uncovered(low, high, parts, spans, lists, top, budget, wants_part):
    """Search until a part is uncovered, which is then `parts[top]`, or the stack is empty.

    Return the state, which may have moved to larger arrays, then the number of parts that were
    stored at most, and of the sides that were compared, at most about `budget`. Without
    `wants_part` the search stops as soon as the boxes together are too small to cover a part.
    """
    dimensions = low.shape[1]
    first = np.empty(dimensions, np.int32)
    end = np.empty(dimensions, np.int32)
    span = np.empty(2, np.int64)
    max_stored, compared = top, 0
    while top > 0:
        if compared >= budget:
            return UNDECIDED, parts, spans, lists, top, max_stored, compared
        top -= 1
        for k in range(dimensions):
            first[k] = parts[top, 0, k]
            end[k] = parts[top, 1, k]
        begin, stop = spans[top, 0], spans[top, 1]
        lists = with_room(lists, 2 * stop - begin)
        # Keep the boxes that overlap the part, behind those of its parent, and find the one that
        # covers most of it. `best` is -2 where a box holds the whole part. A share may be 0.0: too
        # small for a float.
        count, best, largest, total = stop, -1, -1.0, 0.0
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
        # Boxes whose shares do not add up to one cannot cover the part, however they lie.
        if best == -1 or (not wants_part and total < 1 - SLACK):
            return UNCOVERED, parts, spans, lists, top, max_stored, compared
        parts = with_room(parts, top + 2 * dimensions)
        spans = with_room(spans, top + 2 * dimensions)
        span[0], span[1] = stop, count
        top = cut_out(low[best], high[best], first, end, parts, spans, top, span)
        max_stored = max(max_stored, top)
    return COVERED, parts, spans, lists, top, max_stored, compared


@kernel
def match_boxes(query_low, query_high, low, high, budget):
    """Add each query box that the union does not cover to the union.

    `low` and `high` have room for the query boxes behind the union's own. Return the status,
    UNDECIDED where the budget did not suffice, the number of boxes in the end, and how many parts
    were stored at most and sides compared.
    """
    queries, dimensions = query_low.shape
    count = len(low) - queries
    # The stack of the search and its lists, reused by all query boxes.
    parts = np.empty((max(64, 2 * dimensions), 2, dimensions), np.int32)
    spans = np.empty((max(64, 2 * dimensions), 2), np.int64)
    lists = np.empty(2 * len(low) + 64, np.int32)
    for at in range(count):  # searches write only behind these
        lists[at] = at
    status, max_stored, compared = COVERED, 0, 0
    for query in range(queries):
        parts[0, 0], parts[0, 1] = query_low[query], query_high[query]
        spans[0, 0], spans[0, 1] = 0, count
        result, parts, spans, lists, _, stored, sides = search_uncovered(
            low, high, parts, spans, lists, 1, budget - compared, False
        )
        compared += sides
        max_stored = max(max_stored, stored)
        if result != COVERED:
            # As in the paper, the query box is added whole.
            low[count], high[count] = query_low[query], query_high[query]
            lists[count] = count
            count += 1
            status = max(status, result)
    return status, count, max_stored, compared
