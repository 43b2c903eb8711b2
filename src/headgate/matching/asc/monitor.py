"""Watch the events of a period, and decide whether the order should be found again after it.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
5.2. After each period λ the dropping ratio is compared with that of the period in which the order
was new (Equation 5). The first order has seen no events, so it is replaced soon, by one that is
found quickly; and that after a first whole period, by one that takes its time.

Deviations: whether all constructs together drop an event does not depend on their order, so the
dropping ratio would not show that another order has become better: if more constructs are evaluated
for an event than in the best period since, that is a reason too. A change must be more than chance
would have it, and a ratio that was 0 has no relative one. And a period in which events have changed
holds events from before and after, so one that leads to a new order is followed by another.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any, Self
from zlib import compress, decompress

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.kernels.evaluate import (
    DROPPED,
    EVALUATED,
    EVENTS,
    FOLLOWED,
    MICRO,
    TALLY_SIZE,
)
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import Sample

MIN_STANDARD_ERRORS = 4.0  # that a measure must change by, or it may be chance
MIN_CHANGE = 0.001  # of all events: less is not worth another order
FIRST_PERIOD = 1_000  # events before the first order that has seen any
MAX_HISTORY = 1_000  # periods that are remembered
PERIODS_PER_CHECK = 10  # after which a better order is looked for in any case
MAX_SAMPLE_EVENTS = 500  # of the `Statistics` of one index, so that they stay small

Tally = npt.NDArray[np.int64]


class EventSample:
    """A sample of the events of a period, however many will come.

    It has about one of n events, by the rows that it is in; when there are more than twice as many
    as wanted, half of them go. Drawn with replacement, so that an event may be in it twice; and at
    random, since streams have rhythms: every fiftieth event may come from one device.

    >>> sample = EventSample()
    >>> for start in range(0, 1000, 10):
    ...     sample.add(np.arange(start, start + 10, dtype=np.int32).reshape(1, 10), max_events=100)
    >>> events = sample.events(max_events=100).ravel()
    >>> len(events), bool((np.diff(events) >= 0).all())
    (100, True)
    """

    def __init__(self, share: float = 1.0, seed: int = 0) -> None:
        self._pieces: list[Sample] = []
        self._count = 0
        self._share = share  # of the events, that is taken
        self._random = np.random.default_rng(seed)

    def add(self, rows: Sample, max_events: int) -> None:
        """Add some events of a batch; `rows` has a row for each construct."""
        events = rows.shape[1]
        if self._share < 1:
            # the fraction is rounded by chance, so that small batches count as much as large ones
            count = int(self._share * events + self._random.random())
            chosen = np.sort(self._random.integers(0, events, count))
            self.keep(np.ascontiguousarray(rows[:, chosen].T), max_events)
        else:
            self.keep(np.ascontiguousarray(rows.T), max_events)

    def keep(self, events: Sample, max_events: int) -> None:
        """Add all of these events, which have a row each."""
        if self._pieces and self._pieces[0].shape[1] != events.shape[1]:
            # constructs have come or gone, so what was sampled before does not fit
            self._pieces, self._count = [], 0
        if len(events):
            self._pieces.append(events)
            self._count += len(events)
        while self._count > 2 * max_events:
            joined = self._join_pieces()
            # in the order in which they came; from now on half as many are taken
            half = np.sort(self._random.permutation(len(joined))[: len(joined) // 2])
            self._pieces = [joined[half]]
            self._count = len(half)
            self._share /= 2

    def events(self, max_events: int) -> Sample:
        """Return up to so many events, by event and construct, in the order in which they came."""
        if not self._pieces:
            return np.empty((0, 0), np.int32)
        events = self._join_pieces()
        count = min(max_events, len(events))
        # evenly spread over all of them
        chosen = np.arange(count) * len(events) // max(1, count)
        return np.ascontiguousarray(events[chosen])

    @property
    def constructs(self) -> int:
        return self._pieces[0].shape[1] if self._pieces else 0

    def _join_pieces(self) -> Sample:
        return self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)

    def __len__(self) -> int:
        return self._count


@dataclass(slots=True)
class Trigger:
    """A comparison of periods, which says why the order should be found again, if it should.

    >>> trigger = Trigger(threshold=0.1)
    >>> periods = (0.6, 4.0), (0.62, 4.1), (0.3, 6.0)
    >>> [trigger.find_reason(dropping, cost, events=10_000) for dropping, cost in periods]
    [None, None, 'the dropping ratio went from 0.6 to 0.3']
    """

    threshold: float
    dropping: float | None = None
    cost: float = 0.0
    _unsettled: bool = False  # since the last reason
    _before: float | None = None  # the dropping ratio of the period before

    def find_reason(self, dropping: float, cost: float, events: int) -> str | None:
        """Return why the order should be found again after a period of so many events, or None."""
        reason = self._compare(dropping, cost, events)
        before, self._before = self._before, dropping
        if reason is not None:
            # the next period gives a reason too; the one after it only if events still change
            again = _has_changed(before, dropping, self.threshold, events)
            self._unsettled = not self._unsettled or again
            self.dropping = None
        elif self.dropping is None:
            self.dropping, self.cost = dropping, cost
        self.cost = min(self.cost, cost)
        return reason

    def _compare(self, dropping: float, cost: float, events: int) -> str | None:
        if self.threshold == 0:
            return "a period is over"
        if self._unsettled:
            return "events have changed in the period before"
        before = self._before if self.dropping is None else self.dropping
        if _has_changed(before, dropping, self.threshold, events):
            return f"the dropping ratio went from {before:.3g} to {dropping:.3g}"
        # the standard error of the cost, were its deviation as large as the cost itself
        chance = MIN_STANDARD_ERRORS * self.cost / sqrt(max(1, events))
        if self.dropping is not None and cost - self.cost >= max(
            self.threshold * self.cost, chance
        ):
            return f"the constructs for an event went from {self.cost:.3g} to {cost:.3g}"
        return None


def _has_changed(before: float | None, now: float, threshold: float, events: int) -> bool:
    """Return whether a ratio has changed by Equation 5, and more than chance would have it."""
    if before is None:
        return False
    middle = (before + now) / 2
    chance = MIN_STANDARD_ERRORS * sqrt(2 * middle * (1 - middle) / max(1, events))
    return abs(now - before) >= max(threshold * before, chance, MIN_CHANGE)


@dataclass(frozen=True, slots=True)
class Period:
    """What was counted over some events, and why a new order was found then, if one was."""

    until: int  # how many events had come
    events: int
    dropping: float
    cost: float  # constructs evaluated for an event
    micro: float  # share of micro-arrows among the arrows followed
    rearranged: str | None = None

    @classmethod
    def from_tally(cls, tally: Tally, before: int, rearranged: str | None = None) -> Period:
        """Return the period of a tally, which began after so many events."""
        counted = tally.tolist()
        events, followed = max(1, counted[EVENTS]), max(1, counted[FOLLOWED])
        return cls(
            before + counted[EVENTS],
            counted[EVENTS],
            counted[DROPPED] / events,
            counted[EVALUATED] / events,
            counted[MICRO] / followed,
            rearranged,
        )


class Monitor:
    """The counts and the sample of a period, and the history of the periods before."""

    def __init__(self, options: AscOptions) -> None:
        self.options = options
        self.events = 0  # before this period
        self.rearranged = 0
        self.last: Period | None = None  # that led to a new order
        self.history: deque[Period] = deque(maxlen=MAX_HISTORY)
        self._periods = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was learned, since all constructs are new."""
        self._trigger = Trigger(self.options.threshold)
        self._orders = 0  # that have seen events
        self._begin_period()

    def _begin_period(self) -> None:
        self.tally: Tally = np.zeros(TALLY_SIZE, np.int64)
        self.reset_sample()

    def reset_sample(self) -> None:
        """Begin a new sample, since rows or events are others now."""
        share = 1.0 if self.options.monitored else min(1.0, 2 * self.options.sample / self.period)
        self._sample = EventSample(share)

    @property
    def period(self) -> int:
        """How many events this period has."""
        return self.options.period if self._orders else min(FIRST_PERIOD, self.options.period)

    @property
    def remaining(self) -> int:
        """How many events are left of this period."""
        return max(1, self.period - int(self.tally[EVENTS]))

    @property
    def is_over(self) -> bool:
        return bool(self.tally[EVENTS] >= self.period)

    @property
    def is_check_due(self) -> bool:
        """Whether it is time to look for a better order, though nothing seems to have changed."""
        settled = self._orders > 1 or not self.options.lookahead
        if self.options.sequence == "fixed":
            return False
        return settled and bool(len(self._sample)) and self._periods % PERIODS_PER_CHECK == 0

    @property
    def is_thorough(self) -> bool:
        """Whether there is time to look ahead for the next order, and something to gain."""
        return self._orders > 0 and bool(self.tally[DROPPED])

    def add_batch(self, rows: Sample) -> None:
        """Add some events of a batch to the sample; `rows` has a row for each construct."""
        self._sample.add(rows, self._sample_size(len(rows)))

    def add_events(self, events: Sample) -> None:
        """Add all of these events to the sample; they have a row each."""
        self._sample.keep(events, self._sample_size(events.shape[1]))

    def _sample_size(self, constructs: int) -> int:
        """Return the size of a sample: τ events for each step of a sequence, or as chosen."""
        monitored = (self.options.monitored or 0) * max(1, constructs - 1)
        return monitored or self.options.sample

    @property
    def sample(self) -> Sample:
        """Some events of this period."""
        return self._sample.events(self._sample_size(self._sample.constructs))

    def take_statistics(self) -> tuple[Tally, Sample]:
        """Return what was counted and sampled since the last call, and begin again."""
        tally, sample = self.tally, self.sample
        self._begin_period()
        return tally, sample

    def find_reason(self, *, queries_changed: bool) -> str | None:
        """Return why the order should be found again now that a period is over, or None."""
        if self.options.sequence == "fixed" or not len(self._sample):
            return None
        if self._orders == 0:
            return "the first events came"
        # the first order that has seen events was found quickly, by few of them
        if self._orders == 1 and self.options.lookahead:
            return "the first period is over"
        if queries_changed:
            self._trigger = Trigger(self.options.threshold)
            # what was counted before is no measure for the new set
            return "queries came or went"
        over = Period.from_tally(self.tally, self.events)
        return self._trigger.find_reason(over.dropping, over.cost, over.events)

    def end_period(self, why: str | None) -> None:
        """Remember this period, with the reason for another order, and begin the next."""
        over = Period.from_tally(self.tally, self.events, why)
        self.events = over.until
        self.history.append(over)
        self._periods += 1
        if why is not None:
            self.last, self.rearranged = over, self.rearranged + 1
        self._orders += why is not None or self._orders == 0
        self._begin_period()

    def state(self) -> dict[str, Any]:
        """Return what later periods are compared with, for an index that goes on from here."""
        trigger = self._trigger
        return {"orders": self._orders, "dropping": trigger.dropping, "cost": trigger.cost}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from the state of another index."""
        self._orders = int(state["orders"])
        self._trigger.dropping, self._trigger.cost = state["dropping"], state["cost"]

    def describe(self) -> dict[str, Any]:
        latest = self.history[-1] if self.history else None
        return {
            "events": self.events + int(self.tally[EVENTS]),
            "dropping_ratio": latest and round(latest.dropping, 4),
            "evaluated": latest and round(latest.cost, 3),
            "micro_ratio": latest and round(latest.micro, 3),
            "rearranged": self.rearranged,
            "last_rearranged": self.last
            and {"after_events": self.last.until, "because": self.last.rearranged},
        }


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Counts and a sample of events, by the rows of the bitmaps with this `fingerprint`."""

    fingerprint: str
    tally: Tally
    sample: Sample

    def as_json(self) -> dict[str, Any]:
        return {
            "fingerprint": self.fingerprint,
            "tally": self.tally.tolist(),
            "events": len(self.sample),
            "sample": b64encode(compress(self.sample.tobytes())).decode(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        rows = np.frombuffer(decompress(b64decode(data["sample"])), np.int32)
        sample = rows.reshape(data["events"], -1) if len(rows) else rows.reshape(0, 0)
        return cls(data["fingerprint"], np.array(data["tally"], np.int64), sample)


def sum_statistics(statistics: Iterable[Statistics]) -> Statistics | None:
    """Return the sum of those about the commonest bitmaps; None where there are none."""
    sampled = [part for part in statistics if len(part.sample)]
    if not sampled:
        return None
    # indexes that have not followed a change yet count rows of other bitmaps
    (commonest, _), *_ = Counter(part.fingerprint for part in sampled).most_common(1)
    alike = [part for part in sampled if part.fingerprint == commonest]
    tally = np.sum([part.tally for part in alike], axis=0)
    return Statistics(commonest, tally, np.concatenate([part.sample for part in alike]))
