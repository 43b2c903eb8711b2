"""Events that are expressions themselves: how sets are related, and which buckets to visit.

`semantics` explains the six ways in which such an event may match a query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.jit import kernel, plain_kernel
from headgate.matching.be_tree.kernels.leaves import list_leaf
from headgate.matching.be_tree.kernels.nodes import bucket_owner, clamp, look_up
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    FIRST_HASHED,
    FIRST_PARTITION,
    HIGH,
    LEFT,
    LOW,
    NEXT_HASHED,
    NEXT_PARTITION,
    NONE,
    RIGHT,
    ROOT,
    TOP_BUCKET,
    Int64s,
)

MEETS, INSIDE, AROUND, SAME = range(4)  # what a query's predicate is to the event's


class EventSets(NamedTuple):
    """The sets of values of one event; every array has an entry for each attribute."""

    has: npt.NDArray[np.bool_]  # does the event have a set on the attribute?
    single: npt.NDArray[np.bool_]  # is it a single value?
    least: Int64s  # the points at its ends
    most: Int64s
    key: Int64s  # the hash of a single value


@plain_kernel
def set_relation_bits(predicates, order, bounds, columns, start, event_low, event_high, kind, bits):
    """Set the bits of the predicates whose set is to the event's what the kind says.

    The event has the intervals from `start[k]` to `start[k + 1]` on column `columns[k]`.
    """
    # `order` has the predicates by column, those of column c from bounds[c] to bounds[c + 1]
    for k in range(len(columns)):
        low, high = event_low[start[k] : start[k + 1]], event_high[start[k] : start[k + 1]]
        for i in range(bounds[columns[k]], bounds[columns[k] + 1]):
            p = order[i]
            first, last = predicates.first[p], predicates.last[p]
            if are_related(
                predicates.low[first:last], predicates.high[first:last], low, high, kind
            ):
                bits[p >> 6] |= np.uint64(1) << np.uint64(p & 63)


@kernel
def are_related(low, high, event_low, event_high, kind):
    """Return whether a union of closed intervals is to another what the kind says.

    Intervals ascend, and no two of a union touch: so one union lies inside another just where each
    of its intervals lies inside one of the other's.
    """
    if kind == MEETS:
        # go through both unions at once, past the interval that ends first
        i, j = 0, 0
        while i < len(low) and j < len(event_low):
            if high[i] < event_low[j]:
                i += 1
            elif event_high[j] < low[i]:
                j += 1
            else:
                return True
        return False
    if kind == INSIDE:
        return is_inside(low, high, event_low, event_high)
    if kind == AROUND:
        return is_inside(event_low, event_high, low, high)
    return np.array_equal(low, event_low) and np.array_equal(high, event_high)


@plain_kernel
def is_inside(low, high, outer_low, outer_high):
    """Return whether each interval lies inside one of the outer union."""
    # both ascend, so the outer interval that may hold the next one is never an earlier one
    j = 0
    for i in range(len(low)):
        while j < len(outer_low) and outer_high[j] < low[i]:
            j += 1
        if j == len(outer_low) or low[i] < outer_low[j] or high[i] > outer_high[j]:
            return False
    return True


@kernel
def match_expression(tree, expressions, event, bits, size, of_query, of_event, out):
    """Return the expressions whose predicates have the partners that they need.

    With `of_query` all predicates of an expression need one, with `of_event` all `size` of the
    event. As long as all of an expression's attributes must be the event's, only their partitions
    are visited; else all are. `out` has room for every expression.
    """
    # `bits` has a bit for each predicate with a partner; `walk` is a stack of buckets to visit
    used = 0
    walk, depth = np.empty(64, np.int64), 1
    walk[0] = ROOT
    while depth:
        depth -= 1
        b = walk[depth]
        for e in list_leaf(tree, b):
            # `held` of its predicates have a partner; each is on an attribute of its own
            held, count = 0, expressions.count[e]
            for k in range(expressions.start[e], expressions.start[e] + count):
                p = expressions.predicate[k]
                held += np.int64((bits[p >> 6] >> np.uint64(p & 63)) & np.uint64(1))
            if (not of_query or held == count) and (not of_event or held == size):
                out[used] = e
                used += 1
        partition = tree.bucket[b, FIRST_PARTITION]
        while partition != NONE:
            c = tree.partition[partition, ATTRIBUTE]
            # below an attribute that the event lacks, a predicate of each expression has no partner
            if event.has[c] or not of_query:
                inside = list_buckets_to_visit(tree, event, partition, c)
                if depth + len(inside) > len(walk):
                    walk = np.concatenate((walk, np.empty(len(walk) + len(inside), np.int64)))
                for i in range(len(inside)):
                    walk[depth] = inside[i]
                    depth += 1
            partition = tree.partition[partition, NEXT_PARTITION]
    return out[:used].copy()


@kernel
def list_buckets_to_visit(tree, event, partition, c):
    """Return the buckets of a partition that the event's set may meet; all, if it has none."""
    # hashed buckets first: the one of a single value, or those of a range, one by one
    inside, used = np.empty(16, np.int64), 0
    low, high = event.least[c], event.most[c]
    hashed = tree.partition[partition, FIRST_HASHED]
    if event.has[c] and event.single[c]:
        inside[0] = look_up(tree.table, bucket_owner(partition), event.key[c])
        used, hashed = np.int64(inside[0] != NONE), np.int64(NONE)
    while hashed != NONE:
        if not event.has[c] or low <= tree.bucket[hashed, LOW] <= high:
            if used == len(inside):
                inside = np.concatenate((inside, np.empty(len(inside), np.int64)))
            inside[used] = hashed
            used += 1
        hashed = tree.fact[hashed, NEXT_HASHED]
    # Then the binary tree; at most two buckets a level are on the stack, and 64 levels are enough.
    start, end = tree.domain_low[c], tree.domain_high[c]
    low, high = clamp(low, start, end), clamp(high, start, end)
    walk, depth = np.empty(130, np.int64), 0
    if tree.partition[partition, TOP_BUCKET] != NONE:
        walk[0], depth = tree.partition[partition, TOP_BUCKET], 1
    while depth:
        depth -= 1
        b = walk[depth]
        if used == len(inside):
            inside = np.concatenate((inside, np.empty(len(inside), np.int64)))
        inside[used] = b
        used += 1
        for half in (tree.bucket[b, LEFT], tree.bucket[b, RIGHT]):
            if half == NONE:
                continue
            meets = tree.bucket[half, LOW] <= high and low <= tree.bucket[half, HIGH]
            if meets or not event.has[c]:
                walk[depth] = half
                depth += 1
    return inside[:used]
