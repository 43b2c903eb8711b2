"""The kernels of events that are expressions: how sets are related, and where an event leads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.kernels.leaves import members
from headgate.matching.be_tree.kernels.nodes import clamped, found, of_bucket
from headgate.matching.be_tree.kernels.pools import (
    AFTER,
    ATTRIBUTE,
    FIRST,
    FIRST_HASHED,
    HIGH,
    LEFT,
    LOW,
    NEXT,
    NONE,
    RIGHT,
    ROOT,
    TOP,
)

MEETS, INSIDE, AROUND = 0, 1, 2  # see `semantics`


class Event(NamedTuple):
    """By attribute: has the event a set there, is it a single value, and where are its ends."""

    has: Any
    single: Any
    least: Any
    most: Any
    key: Any


@kernel
def relation_bits(predicates, order, bounds, columns, start, event_low, event_high, kind, bits):
    """Set the bits of the predicates whose set is to the event's what the kind says.

    The event has the intervals from `start[k]` to `start[k + 1]` on column `columns[k]`.
    """
    for k in range(len(columns)):
        low, high = event_low[start[k] : start[k + 1]], event_high[start[k] : start[k + 1]]
        for i in range(bounds[columns[k]], bounds[columns[k] + 1]):
            p = order[i]
            first, last = predicates.first[p], predicates.last[p]
            if related(predicates.low[first:last], predicates.high[first:last], low, high, kind):
                bits[p >> 6] |= np.uint64(1) << np.uint64(p & 63)


@kernel
def related(low, high, event_low, event_high, kind):
    """Is a union of closed intervals to another what the kind says?

    Intervals ascend, and no two of a union touch: so one union lies inside another just where each
    of its intervals lies inside one of the other's.
    """
    if kind == MEETS:
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
        return lies_inside(low, high, event_low, event_high)
    if kind == AROUND:
        return lies_inside(event_low, event_high, low, high)
    return np.array_equal(low, event_low) and np.array_equal(high, event_high)


@kernel
def lies_inside(low, high, outer_low, outer_high):
    j = 0
    for i in range(len(low)):
        while j < len(outer_low) and outer_high[j] < low[i]:
            j += 1
        if j == len(outer_low) or low[i] < outer_low[j] or high[i] > outer_high[j]:
            return False
    return True


@kernel
def leads_to(tree, expressions, event, bits, size, of_query, of_event, out):
    """The expressions whose predicates are as they should be.

    `of_query` asks for all predicates of an expression, `of_event` for as many as the event has. As
    long as all of an expression's attributes must be the event's, only their partitions are
    visited; else all are. `out` has room for every expression.
    """
    used = 0
    walk, depth = np.empty(64, np.int64), 1
    walk[0] = ROOT
    while depth:
        depth -= 1
        b = walk[depth]
        for e in members(tree, b):
            held, count = 0, expressions.count[e]
            for k in range(expressions.start[e], expressions.start[e] + count):
                p = expressions.predicate[k]
                held += np.int64((bits[p >> 6] >> np.uint64(p & 63)) & np.uint64(1))
            if (not of_query or held == count) and (not of_event or held == size):
                out[used] = e
                used += 1
        partition = tree.bucket[b, FIRST]
        while partition != NONE:
            c = tree.partition[partition, ATTRIBUTE]
            if event.has[c] or not of_query:
                inside = buckets_of(tree, event, partition, c)
                if depth + len(inside) > len(walk):
                    walk = np.concatenate((walk, np.empty(len(walk) + len(inside), np.int64)))
                for i in range(len(inside)):
                    walk[depth] = inside[i]
                    depth += 1
            partition = tree.partition[partition, AFTER]
    return out[:used].copy()


@kernel
def buckets_of(tree, event, partition, c):
    """The buckets of a partition that the event's set may meet; all, if it has none."""
    inside, used = np.empty(16, np.int64), 0
    low, high = event.least[c], event.most[c]
    hashed = tree.partition[partition, FIRST_HASHED]
    if event.has[c] and event.single[c]:
        inside[0] = found(tree.table, of_bucket(partition), event.key[c])
        used, hashed = np.int64(inside[0] != NONE), np.int64(NONE)
    while hashed != NONE:
        if not event.has[c] or low <= tree.bucket[hashed, LOW] <= high:
            if used == len(inside):
                inside = np.concatenate((inside, np.empty(len(inside), np.int64)))
            inside[used] = hashed
            used += 1
        hashed = tree.fact[hashed, NEXT]
    start, end = tree.domain_low[c], tree.domain_high[c]
    low, high = clamped(low, start, end), clamped(high, start, end)
    walk, depth = np.empty(130, np.int64), 0
    if tree.partition[partition, TOP] != NONE:
        walk[0], depth = tree.partition[partition, TOP], 1
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
