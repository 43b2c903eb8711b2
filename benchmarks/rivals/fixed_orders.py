"""The best and the worst of all fixed orders, found without trying each of them.

The cost of an order is the sum, over its beginnings, of the events that are not yet dropped, and
which these are depends on the set of constructs evaluated so far, not on their order. So the events
that survive each set are counted, and the cheapest way from no construct to all of them is found by
dynamic programming over the sets: 2^n steps for n constructs, where there are n! orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rivals.routed import Numbers, Regions
from headgate.errors import ExpansionTooLarge
from headgate.jit import kernel

MOST = 22  # constructs


@dataclass(frozen=True, slots=True)
class FixedOrder:
    """Constructs by number, and how many of them are evaluated for the events that it is for."""

    sequence: tuple[int, ...]
    cost: int


def best_and_worst(regions: Regions, events: Any) -> tuple[FixedOrder, FixedOrder]:
    """Of all orders in which these events could be evaluated."""
    constructs = regions.constructs
    if len(constructs) > MOST:
        raise ExpansionTooLarge(
            f"{len(constructs)} constructs have 2^{len(constructs)} sets, over the cap of 2^{MOST}"
        )
    batch = regions.batch(events)
    table = regions.bitmaps.table()
    counts = survivors(table.bits, table.alive, regions.rows(batch, 0, len(batch.events)))
    return (
        _by_number(constructs, *cheapest(counts, dearest=False)),
        _by_number(constructs, *cheapest(counts, dearest=True)),
    )


def _by_number(constructs: Numbers, order: Numbers, cost: int) -> FixedOrder:
    return FixedOrder(tuple(constructs[order].tolist()), int(cost))


@kernel
def survivors(bits, alive, rows):
    """For each set of constructs, a bit for each: how many events are left after all of its own.

    A set is built by adding constructs in ascending order, and abandoned once nothing is left.
    """
    count, events = rows.shape
    words = len(alive)
    found = np.zeros(1 << count, np.int64)
    grb = np.empty((count + 1, len(alive)), np.uint64)
    grb[0] = alive
    members = np.zeros(count + 1, np.int64)
    following = np.zeros(count + 1, np.int64)
    for e in range(events):
        found[0] += 1
        following[0] = 0
        depth = 0
        while depth >= 0:
            c = following[depth]
            if c == count:
                depth -= 1
                continue
            following[depth] = c + 1
            row, left = rows[c, e], np.uint64(0)
            for w in range(words):
                word = grb[depth, w] & bits[row, w]
                grb[depth + 1, w] = word
                left |= word
            if left != 0:
                depth += 1
                members[depth] = members[depth - 1] | (1 << c)
                found[members[depth]] += 1
                following[depth] = c + 1
    return found


@kernel
def cheapest(counts, dearest):
    """The order with the least cost, or with the greatest, and that cost."""
    sign = -1 if dearest else 1
    count = 0
    while 1 << count < len(counts):
        count += 1
    cost = np.zeros(len(counts), np.int64)
    choice = np.zeros(len(counts), np.int8)
    for members in range(len(counts) - 2, -1, -1):
        best = -1
        for c in range(count):
            more = members | (1 << c)
            if more != members and (
                best < 0 or sign * cost[more] < sign * cost[members | (1 << best)]
            ):
                best = c
        cost[members] = counts[members] + cost[members | (1 << best)]
        choice[members] = best
    order, members = np.empty(count, np.int64), 0
    for step in range(count):
        order[step] = choice[members]
        members |= 1 << order[step]
    return order, cost[0]
