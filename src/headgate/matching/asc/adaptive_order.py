"""The order of one index: up to date with its queries, found anew when events change, or taken from
another index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.monitor import Monitor
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import (
    EvaluationOrder,
    Sample,
    draw_random_sample,
    find_order,
    find_used_constructs,
    measure_cost,
)
from headgate.matching.asc.statistics import MAX_SAMPLE_EVENTS, Statistics

CHECK_EVENTS, MIN_SAVING = 300, 0.05  # events, and the least share of the cost that they must save
MAX_CHANGED_SHARE = 0.1  # of the conjunctions have changed: time for another order


class AdaptiveOrder:
    """Writes new queries into the bitmaps before it looks at them; not safe for threads."""

    def __init__(self, bitmaps: Bitmaps, options: AscOptions) -> None:
        self.order = EvaluationOrder(())
        self.monitor = Monitor(options)
        self.is_led = False  # does somebody else find the order?
        self._bitmaps = bitmaps
        self._options = options
        self._names: list[str] = []  # of constructs, when all was settled last
        self._epoch = 0  # of the bitmaps, at that time
        self._settled = False  # has nothing changed since?
        self._changes = 0  # queries that came or went since the order was found

    def note_change(self) -> None:
        """A query has come or gone."""
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
            self.monitor.reset()
            sample = draw_random_sample(bitmaps)
            order = find_order(bitmaps, sample, self._options, thorough=False)
        elif bitmaps.epoch != self._epoch:
            self.monitor.reset_sample()
            order = self._in_order(before, self.order.cover)
        else:
            order = self.order.adjust_to(*find_used_constructs(bitmaps))
        names = [subject.name for subject in bitmaps.constructs]
        self.order, self._names, self._epoch, self._settled = order, names, bitmaps.epoch, True

    def _in_order(self, names: Sequence[str], cover: int) -> EvaluationOrder:
        """The constructs of these names, as far as there are any, and then all others."""
        numbers = {subject.name: number for number, subject in enumerate(self._bitmaps.constructs)}
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
        why = monitor.reason(queries_changed=self._changes > MAX_CHANGED_SHARE * len(self._bitmaps))
        if why is None and monitor.is_check_due:
            why = self._better_order(monitor.sample[:CHECK_EVENTS])
        if why is not None:
            sample, thorough = monitor.sample, monitor.is_thorough
            self.order = find_order(self._bitmaps, sample, self._options, thorough=thorough)
            self._changes = 0
        monitor.end_period(why)

    def _better_order(self, sample: Sample) -> str | None:
        """Whether an order that is found in a moment costs less than the present one: what drops
        events later on in an order can become better without anybody noticing."""
        quick = find_order(self._bitmaps, sample, self._options, thorough=False)
        now, then = (measure_cost(self._bitmaps, one, sample) for one in (self.order, quick))
        if now - then < max(self._options.threshold, MIN_SAVING) * now:
            return None
        costs = f"{then / len(sample):.3g} constructs for an event, not {now / len(sample):.3g}"
        return f"another order takes {costs}"

    def follow(self, order: dict[str, Any] | None) -> None:
        """From now on leave it to others to find the order, and take what one has `published`.

        None leaves the order as it is. Counts and samples are kept for `statistics`.
        """
        self.settle()
        self.is_led = True
        if order is not None:
            self.order = self._taken(order)

    def resume(self, order: dict[str, Any]) -> None:
        """Take the order that another index has published, and go on from there."""
        self.settle()
        self.order, self._changes = self._taken(order), 0
        if order["fingerprint"] == self._bitmaps.fingerprint:
            self.monitor.resume(order["monitor"])

    def _taken(self, order: dict[str, Any]) -> EvaluationOrder:
        """By the names of constructs; with arrows only if both have the same regions."""
        found = self._in_order(order["sequence"], order["cover"])
        if order["fingerprint"] != self._bitmaps.fingerprint:
            return found
        rows, targets = order["arrows"]
        arrows = np.full(self._bitmaps.rows, -1, np.int16)
        arrows[rows] = targets
        return replace(found, arrows=arrows)

    def publish(self) -> dict[str, Any]:
        """The order as it is now, for other indexes over the same queries, and for a file."""
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
        """What was counted and sampled since the last time."""
        self.settle()
        tally, sample = self.monitor.take_statistics()
        step = -(-len(sample) // MAX_SAMPLE_EVENTS) or 1
        if sample.shape[1] != len(self._bitmaps.constructs):  # constructs came since
            sample = sample[:0]
        return Statistics(self._bitmaps.fingerprint, tally, sample[::step])

    def learn(self, statistics: Statistics) -> bool:
        """Take what other indexes have counted, as if it were one's own; is the order another?"""
        self.settle()
        if statistics.fingerprint != self._bitmaps.fingerprint:
            return False
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
