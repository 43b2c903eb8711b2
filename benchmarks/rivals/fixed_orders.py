"""The best and the worst of all fixed orders, found without trying each of them.

The cost of an order is the sum, over its beginnings, of the events that are not yet dropped, and
which these are depends on the set of constructs evaluated so far, not on their order. So the events
that survive each set are counted, and the cheapest way from no construct to all of them is found by
dynamic programming over the sets: 2^n steps for n constructs, where there are n! orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.rivals.kernels.routing import count_survivors, find_cheapest
from benchmarks.rivals.routing import Numbers, Regions
from headgate.errors import ExpansionTooLarge

MAX_CONSTRUCTS = 22  # constructs


@dataclass(frozen=True, slots=True)
class FixedOrder:
    """Constructs by number, and how many of them are evaluated for the events that it is for."""

    sequence: tuple[int, ...]
    cost: int


def find_extremes(regions: Regions, events: Any) -> tuple[FixedOrder, FixedOrder]:
    """Return the best and the worst of all orders in which these events could be evaluated."""
    constructs = regions.constructs
    if len(constructs) > MAX_CONSTRUCTS:
        raise ExpansionTooLarge(
            f"{len(constructs)} constructs have 2^{len(constructs)} sets, "
            f"over the cap of 2^{MAX_CONSTRUCTS}"
        )
    batch = regions.batch(events)
    table = regions.bitmaps.table()
    counts = count_survivors(table.bits, table.alive, regions.rows(batch, 0, len(batch.events)))
    return (
        _by_number(constructs, *find_cheapest(counts, dearest=False)),
        _by_number(constructs, *find_cheapest(counts, dearest=True)),
    )


def _by_number(constructs: Numbers, order: Numbers, cost: int) -> FixedOrder:
    return FixedOrder(tuple(constructs[order].tolist()), int(cost))
