"""Kernels of the packed tree: a node comes before what is in it, so a search only moves forward.

A row of `nodes` is a node of the tree or a box:

    0 skip    the row after all that is in it
    1 active  how many active boxes are in it; 0 or 1 for a box
    2 item    the id of a box, −1 for a node
    3 parent  the row of the node that it is in, −1 for none
    4 depth   0 for the root; a box is as deep as its node, plus one
    5 …       its ends: `low` in each dimension, then `high`

A search looks at a row, goes on to the next one if it may hold a hit, and otherwise skips. Boxes
that were added later are rows behind the tree, which it reaches in the end.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, load_unchecked, plain_kernel

SKIP, ACTIVE, ITEM, PARENT, DEPTH, HEAD = range(6)


@kernel
def build_tree(low, high, fan_out):
    """Return the rows of a tree over boxes, and the row of each box."""
    count, d = low.shape
    order = sort_spatially(low, high, fan_out)
    # How many levels of nodes there are, and with them how many rows.
    height, width = 0, 1
    while width < count:
        width *= fan_out
        height += 1
    height = max(height, 1)
    rows = count
    width = fan_out
    for _ in range(height):
        rows += (count + width - 1) // width
        width *= fan_out
    nodes, place = np.empty((rows, HEAD + 2 * d), np.int32), np.empty(count, np.int32)
    open_node = np.full(height + 2, -1, np.int32)  # by level: the node that is being filled
    row = 0
    # Boxes in order; before a box, every node that begins with it.
    for i in range(count):
        # From the root down: a node on a level begins at every `width`-th box.
        width = fan_out**height
        for level in range(height, 0, -1):
            if i % width == 0:
                # The node before it on this level is complete: its skip leads here.
                if open_node[level] >= 0:
                    nodes[open_node[level], SKIP] = row
                open_node[level] = row
                nodes[row, ACTIVE] = 0
                nodes[row, ITEM] = -1
                nodes[row, PARENT] = open_node[level + 1]
                nodes[row, DEPTH] = height - level
                # Empty ends, which the last loop widens to hold the children.
                nodes[row, HEAD : HEAD + d] = np.iinfo(np.int32).max
                nodes[row, HEAD + d :] = np.iinfo(np.int32).min
                row += 1
            width //= fan_out
        box = order[i]
        nodes[row, SKIP] = row + 1
        nodes[row, ACTIVE] = 1
        nodes[row, ITEM] = box
        nodes[row, PARENT] = open_node[1]
        nodes[row, DEPTH] = height
        nodes[row, HEAD : HEAD + d] = low[box]
        nodes[row, HEAD + d :] = high[box]
        place[box] = row
        row += 1
    for level in range(1, height + 1):
        if open_node[level] >= 0:
            nodes[open_node[level], SKIP] = row
    # Backwards, so that a node is complete before it is added to its parent.
    for inner in range(rows - 1, 0, -1):
        outer = nodes[inner, PARENT]
        nodes[outer, ACTIVE] += nodes[inner, ACTIVE]
        for k in range(HEAD, HEAD + d):
            nodes[outer, k] = min(nodes[outer, k], nodes[inner, k])
            nodes[outer, k + d] = max(nodes[outer, k + d], nodes[inner, k + d])
    return nodes, place


@kernel
def sort_spatially(low, high, fan_out):
    """Return the boxes in an order in which neighbours lie close together.

    They are halved again and again, at a border between nodes, by their middles in the dimension
    in which these are spread widest in relation to the length of the sides.
    """
    count, d = low.shape
    order = np.arange(count)
    stack = [(0, count if d else 0)]  # without dimensions one place is like another
    while len(stack) > 0:
        start, stop = stack.pop()
        size, part = stop - start, 1
        if size <= fan_out:
            continue
        # `part` is the number of boxes in a full child of the node over this range.
        while part * fan_out < size:
            part *= fan_out
        boxes = order[start:stop].copy()
        # The dimension with the largest spread of middles per average side.
        best, widest = 0, -1.0
        for k in range(d):
            least, most, length = np.inf, -np.inf, 0.0
            for box in boxes:
                middle = float(low[box, k]) + float(high[box, k])
                least, most = min(least, middle), max(most, middle)
                length += float(high[box, k]) - float(low[box, k])
            spread = (most - least) / (length / size)
            if spread > widest:
                best, widest = k, spread
        # A stable sort, so that the order is the same on every machine.
        middles = np.empty(size, np.int64)
        for i in range(size):
            middles[i] = np.int64(low[boxes[i], best]) + np.int64(high[boxes[i], best])
        order[start:stop] = boxes[np.argsort(middles, kind="mergesort")]
        # Cut at a border between children, so that no node straddles it.
        middle = start + part * ((size + part - 1) // part // 2)
        stack.append((start, middle))
        stack.append((middle, stop))
    return order


@plain_kernel
def search_tree(nodes, end, query, only_first, out):
    """Write the ids of the active boxes that overlap a box into `out`, and return how many.

    `query` is the box: `low` in each dimension, then `high`. Ids ascend. With `only_first` the
    search ends at the first hit.
    """
    # Flat and unchecked: this loop is all that exact matching with an index does.
    flat, stride, d = nodes.reshape(-1), np.int64(nodes.shape[1]), len(query) // 2
    row, hits = np.int64(0), np.int64(0)
    while row < end:
        at = row * stride
        inside = load_unchecked(flat, at + ACTIVE) > 0
        k = np.int64(0)
        while inside and k < d:
            low, high = load_unchecked(flat, at + HEAD + k), load_unchecked(flat, at + HEAD + d + k)
            inside = (low < load_unchecked(query, d + k)) & (load_unchecked(query, k) < high)
            k += 1
        if not inside:
            row = np.int64(load_unchecked(flat, at + SKIP))
            continue
        box = load_unchecked(flat, at + ITEM)
        if box >= 0:
            out[hits] = box
            hits += 1
            if only_first:
                return hits
        # Forward into the node's first child, or to the row behind a box.
        row += 1
    out[:hits].sort()
    return hits


@plain_kernel
def set_active(nodes, row, active):
    """Make the box in a row active (1) or not (0), and update the counts of its nodes."""
    # Nothing to do where it is so already.
    change = active - nodes[row, ACTIVE]
    at = np.int64(row)
    while change != 0 and at >= 0:
        nodes[at, ACTIVE] += change
        at = np.int64(nodes[at, PARENT])


@plain_kernel
def check_points(nodes, end, cells, low, high, only_first, deepest, mask):
    """Write into `mask[p]` whether an active box holds point p, which is `cells[:, p]`.

    The tree is over the first dimensions; `low` and `high` have the ends of boxes in the others, by
    id. With `only_first` a search ends at the first hit. It goes no deeper than depth `deepest`,
    where a node that holds the point counts as a hit.
    """
    flat, stride = nodes.reshape(-1), np.int64(nodes.shape[1])
    d, rest = (stride - HEAD) // 2, low.shape[1]
    for p in range(len(mask)):
        row, hit = np.int64(0), False
        while row < end:
            at = row * stride
            inside = load_unchecked(flat, at + ACTIVE) > 0
            k = np.int64(0)
            while inside and k < d:
                cell = cells[k, p]
                inside = load_unchecked(flat, at + HEAD + k) <= cell
                inside &= cell < load_unchecked(flat, at + HEAD + d + k)
                k += 1
            # Dimensions that the tree leaves out are compared for boxes only.
            box = load_unchecked(flat, at + ITEM)
            if inside and box >= 0:
                k = np.int64(0)
                while inside and k < rest:
                    inside = (low[box, k] <= cells[d + k, p]) & (cells[d + k, p] < high[box, k])
                    k += 1
            if not inside:
                row = np.int64(load_unchecked(flat, at + SKIP))
                continue
            # At the deepest level a node counts as a hit, and what is in it is not looked at.
            if box >= 0 or load_unchecked(flat, at + DEPTH) >= deepest:
                hit = True
                if only_first:
                    break
                row = np.int64(load_unchecked(flat, at + SKIP))
                continue
            row += 1
        mask[p] = hit
