"""Heuristics with complex relaxation as a kernel: which box grows, and into what.

It gives the same answers as `headgate.implication.paper.heuristics` with the quick check, so that
our exact matching is compared with a compiled heuristic. `starts` and `stops` are the positions of
cells by dimension, `order` the numbers of the boxes by volume, the largest first.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel


@inlined_kernel
def volume_of(low, high, starts, stops):
    """Return how many ends of a box are infinite, and the volume of its finite sides."""
    # A side with an infinite end counts only as such: its length would be infinite or NaN.
    infinite, finite = 0, 1.0
    for k in range(len(low)):
        bottom, ceiling = starts[k, low[k]], stops[k, high[k] - 1]
        infinite += np.isinf(bottom) + np.isinf(ceiling)
        if np.isfinite(bottom) and np.isfinite(ceiling):
            finite *= ceiling - bottom
    return infinite, finite


@inlined_kernel
def side_length(k, low, high, starts, stops):
    """Return how long a side is; infinite with NULL."""
    bottom = starts[k, low[k]]
    return stops[k, high[k] - 1] - bottom if np.isfinite(bottom) else np.inf


@inlined_kernel
def arrange_sides(low, high, starts, stops, counts, sides):
    """List the dimensions that a box mentions, the shortest first; return how many there are."""
    count = 0
    for k in range(len(low)):
        if low[k] == 0 and high[k] == counts[k]:
            continue
        length = side_length(k, low, high, starts, stops)
        # Insertion sort: a box mentions few dimensions.
        at = count
        while at > 0:
            other = sides[at - 1]
            if not length < side_length(other, low, high, starts, stops):
                break
            sides[at] = other
            at -= 1
        sides[at] = k
        count += 1
    return count


@inlined_kernel
def put_in_order(box, count, infinite, finite, order):
    """Let a box take its place among the `count` others in order of volume."""
    # Boxes of equal volume stay in the order in which they came.
    at = count
    while at > 0:
        other = order[at - 1]
        if (infinite[other], finite[other]) >= (infinite[box], finite[box]):
            break
        order[at] = other
        at -= 1
    order[at] = box


@inlined_kernel
def is_inside(low, high, first, end, sides, count):
    """Return whether a box holds another one."""
    for at in range(count):
        k = sides[at]
        if first[k] < low[k] or high[k] < end[k]:
            return False
    return True


@inlined_kernel
def distance(start, stop):
    """Return how far it is up from one to the other, where both are finite."""
    return max(0.0, stop - start) if np.isfinite(start) and np.isfinite(stop) else 0.0


@inlined_kernel
def grown_volume(low, high, first, end, sides, count, starts, stops, grown_low, grown_high):
    """Grow a box to hold another one, side by side; returns its infinite ends and what it gains."""
    dimensions = len(low)
    gained = 0.0
    for k in range(dimensions):
        grown_low[k], grown_high[k] = low[k], high[k]
    for at in range(count):
        k = sides[at]
        if low[k] <= first[k] and end[k] <= high[k]:
            continue
        # Algorithm 8 adds one slab after the other: the step times all sides as they are now.
        step = distance(starts[k, first[k]], starts[k, low[k]])
        step += distance(stops[k, high[k] - 1], stops[k, end[k] - 1])
        base = 1.0
        for other in range(dimensions):
            if other != k:
                side = side_length(other, grown_low, grown_high, starts, stops)
                if 0 < side < np.inf:
                    base *= side
        gained += step * base
        grown_low[k] = min(low[k], first[k])
        grown_high[k] = max(high[k], end[k])
    infinite, _ = volume_of(grown_low, grown_high, starts, stops)
    return infinite, gained


@kernel
def grow_boxes(query_low, query_high, low, high, starts, stops, counts):
    """Relax the boxes for one query box after the other; returns which of these were held.

    `low` and `high` have room for one box more, where there is none to grow.
    """
    boxes, dimensions = len(low) - 1, low.shape[1]
    # By box: its mentioned dimensions from short to long, how many these are, and its volume.
    sides = np.empty((boxes + 1, dimensions), np.int64)
    mentioned = np.empty(boxes + 1, np.int64)
    infinite, finite = np.empty(boxes + 1, np.int64), np.empty(boxes + 1)
    order = np.empty(boxes + 1, np.int64)
    for box in range(boxes):
        mentioned[box] = arrange_sides(low[box], high[box], starts, stops, counts, sides[box])
        infinite[box], finite[box] = volume_of(low[box], high[box], starts, stops)
        put_in_order(box, box, infinite, finite, order)
    trial = np.empty((2, dimensions), low.dtype)
    best_low, best_high = np.empty(dimensions, low.dtype), np.empty(dimensions, low.dtype)
    covered = np.zeros(len(query_low), np.bool_)
    for query in range(len(query_low)):
        first, end = query_low[query], query_high[query]
        # The quick check: is the query box inside one box of the stream?
        for at in range(boxes):
            box = order[at]
            if is_inside(low[box], high[box], first, end, sides[box], mentioned[box]):
                covered[query] = True
                break
        if covered[query]:
            continue
        # Otherwise the box grows that has the fewest infinite ends then, and gains least volume.
        best, fewest, least = -1, 2 * dimensions + 1, np.inf
        for at in range(boxes):
            box = order[at]
            ends, gained = grown_volume(
                low[box],
                high[box],
                first,
                end,
                sides[box],
                mentioned[box],
                starts,
                stops,
                trial[0],
                trial[1],
            )
            if ends < fewest or (ends == fewest and gained < least):
                best, fewest, least = box, ends, gained
                best_low[:], best_high[:] = trial[0], trial[1]
        if best < 0:
            best, best_low[:], best_high[:] = boxes, first, end
            boxes += 1
        else:
            # Take the box out of the order; it is put back below, by its new volume.
            at = 0
            while order[at] != best:
                at += 1
            for later in range(at, boxes - 1):
                order[later] = order[later + 1]
        low[best], high[best] = best_low, best_high
        mentioned[best] = arrange_sides(best_low, best_high, starts, stops, counts, sides[best])
        infinite[best], finite[best] = volume_of(best_low, best_high, starts, stops)
        put_in_order(best, boxes - 1, infinite, finite, order)
    return covered, boxes
