"""Keep the order of an index up to date: with its queries, its events, or another index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.monitor import MAX_SAMPLE_EVENTS, Monitor, Statistics
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import (
    EvaluationOrder,
    Sample,
    draw_random_sample,
    find_order,
    find_used_constructs,
    measure_cost,
)

CHECK_EVENTS = 300  # on which another order is compared with the present one
MIN_SAVING = 0.05  # the share of the cost that another order must save
MAX_CHANGED_SHARE = 0.1  # of the conjunctions; if more have changed, the order is found again


class AdaptiveOrder:
    """The order of evaluation of some bitmaps, which adapts to queries and events.

    It writes new queries into the bitmaps before it looks at them. Not safe for threads.
    """

    def __init__(self, bitmaps: Bitmaps, options: AscOptions) -> None:
        self.order = EvaluationOrder(())
        self.monitor = Monitor(options)
        self.is_led = False  # does another index find the order?
        self._bitmaps = bitmaps
        self._options = options
        self._names: list[str] = []  # of constructs, when all was settled last
        self._epoch = 0  # of the bitmaps, at that time
        self._settled = False  # has nothing changed since?
        self._changes = 0  # queries that came or went since the order was found

    def note_change(self) -> None:
        """Note that a query has come or gone."""
        self._changes += 1
        self._settled = False

    def settle(self) -> None:
        """Write new queries, and bring the order up to date with the constructs in use."""
        if self._settled:
            return
        bitmaps = self._bitmaps
        before = [self._names[number] for number in self.order.sequence]
        bitmaps.settle()
        if not before:
            # no construct was in use, so there are no events to find an order by
            self.monitor.reset()
            sample = draw_random_sample(bitmaps)
            order = find_order(bitmaps, sample, self._options, thorough=False)
        elif bitmaps.epoch != self._epoch:
            # all was written again: constructs and rows have other numbers, but the same names
            self.monitor.reset_sample()
            order = self._order_by_names(before, self.order.cover)
        else:
            # constructs may have come into use, or gone out of it
            order = self.order.adjust_to(*find_used_constructs(bitmaps))
        names = [construct.name for construct in bitmaps.constructs]
        self.order, self._names, self._epoch, self._settled = order, names, bitmaps.epoch, True

    def _order_by_names(self, names: Sequence[str], cover: int) -> EvaluationOrder:
        """Return the constructs of these names, as far as there are any, and then all others."""
        numbers = {
            construct.name: number for number, construct in enumerate(self._bitmaps.constructs)
        }
        known = [name in numbers for name in names]
        sequence = tuple(numbers[name] for name in names if name in numbers)
        return EvaluationOrder(sequence, sum(known[:cover])).adjust_to(
            *find_used_constructs(self._bitmaps)
        )

    def adapt(self) -> None:
        """Find another order, if a period is over and there is reason to."""
        monitor = self.monitor
        if self.is_led or not monitor.is_over:
            return
        why = monitor.find_reason(
            queries_changed=self._changes > MAX_CHANGED_SHARE * len(self._bitmaps)
        )
        if why is None and monitor.is_check_due:
            # even if nothing seems to have changed, now and then
            why = self._compare_with_new(monitor.sample[:CHECK_EVENTS])
        if why is not None:
            sample, thorough = monitor.sample, monitor.is_thorough
            self.order = find_order(self._bitmaps, sample, self._options, thorough=thorough)
            self._changes = 0
        monitor.end_period(why)

    def _compare_with_new(self, sample: Sample) -> str | None:
        """Return a reason if an order that is found quickly costs less than the present one.

        A construct late in the order may have become better without a change in what is counted.
        """
        quick = find_order(self._bitmaps, sample, self._options, thorough=False)
        now = measure_cost(self._bitmaps, self.order, sample)
        then = measure_cost(self._bitmaps, quick, sample)
        if now - then < max(self._options.threshold, MIN_SAVING) * now:
            return None
        costs = f"{then / len(sample):.3g} constructs for an event, not {now / len(sample):.3g}"
        return f"another order takes {costs}"

    def follow(self, order: dict[str, Any] | None) -> None:
        """Leave it to another index to find the order, and take what that one publishes.

        None leaves the order as it is. Counts and samples are kept for `take_statistics`.
        """
        self.settle()
        self.is_led = True
        if order is not None:
            self.order = self._read_order(order)

    def resume(self, order: dict[str, Any]) -> None:
        """Take the order that another index has published, and go on from there."""
        self.settle()
        self.order, self._changes = self._read_order(order), 0
        if order["fingerprint"] == self._bitmaps.fingerprint:
            self.monitor.resume(order["monitor"])

    def _read_order(self, order: dict[str, Any]) -> EvaluationOrder:
        """Read a published order by names; with arrows only if both have the same regions."""
        named = self._order_by_names(order["sequence"], order["cover"])
        if order["fingerprint"] != self._bitmaps.fingerprint:
            return named
        # arrows are by row, and rows are the same where the fingerprints are
        rows, targets = order["arrows"]
        arrows = np.full(self._bitmaps.rows, -1, np.int16)
        arrows[rows] = targets
        return replace(named, arrows=arrows)

    def publish(self) -> dict[str, Any]:
        """Return the order as it is now, for other indexes with these queries, and for a file."""
        self.settle()
        rows = np.flatnonzero(self.order.arrows >= 0)
        return {
            "fingerprint": self._bitmaps.fingerprint,
            "sequence": [self._names[number] for number in self.order.sequence],
            "cover": self.order.cover,
            "arrows": [rows.tolist(), self.order.arrows[rows].tolist()],
            "monitor": self.monitor.state(),
        }

    def take_statistics(self) -> Statistics:
        """Return what was counted and sampled since the last call."""
        self.settle()
        tally, sample = self.monitor.take_statistics()
        # every step-th event, which leaves those of the whole period
        step = -(-len(sample) // MAX_SAMPLE_EVENTS) or 1
        if sample.shape[1] != len(self._bitmaps.constructs):  # constructs came since
            sample = sample[:0]
        return Statistics(self._bitmaps.fingerprint, tally, sample[::step])

    def learn(self, statistics: Statistics) -> bool:
        """Add what other indexes have counted; return whether that led to another order."""
        self.settle()
        if statistics.fingerprint != self._bitmaps.fingerprint:
            return False
        # the counts become those of this period, which may be over by them
        if len(statistics.sample):
            self.monitor.add_events(statistics.sample)
        self.monitor.tally += statistics.tally
        before = self.monitor.rearranged
        self.adapt()
        return self.monitor.rearranged > before

    def describe(self) -> dict[str, Any]:
        self.settle()
        order = [self._names[number] for number in self.order.sequence]
        return {
            "constructs": len(order),
            "order": order,
            "cover_set": order[: self.order.cover],
            "micro_arrows": self.order.arrow_count,
            **self.monitor.describe(),
        }
