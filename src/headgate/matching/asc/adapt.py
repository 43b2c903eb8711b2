"""When the order is found anew: what is watched, remembered and told.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
5.2. After each period λ the dropping ratio is compared with that of the period in which the order
was new (Equation 5).

Deviations: whether all constructs together drop an event does not depend on their order, so the
dropping ratio alone would miss that another order has become better; the constructs evaluated for
an event are watched too. A ratio that was 0 is compared by the difference. A period in which events
have changed holds events from before and after, so one that leads to a new order is followed by
another. And the first order, which saw no events, is replaced soon.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.evaluate import COUNTED, DROPPED, EVALUATED, EVENTS, FOLLOWED, MICRO
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import Sample

FIRST = 1_000  # events before the first order that has seen any
REMEMBERED = 1_000  # periods

Tally = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Period:
    """What was counted over some events, and why the order was found anew then, if it was."""

    until: int  # how many events had come
    events: int
    dropping: float
    cost: float  # constructs evaluated for an event
    micro: float  # share of micro-arrows among the arrows followed
    rearranged: str | None = None


@dataclass(slots=True)
class Trigger:
    """Says why the order should be found anew after a period, if it should.

    >>> trigger = Trigger(threshold=0.1)
    >>> [trigger.reason(dropping, cost) for dropping, cost in ((0.6, 4.0), (0.62, 4.1), (0.3, 6.0))]
    [None, None, 'the dropping ratio went from 0.6 to 0.3']
    """

    threshold: float
    dropping: float | None = None
    cost: float = 0.0
    _unsettled: bool = False  # since the last reason
    _before: float | None = None  # the dropping ratio of the period before

    def reason(self, dropping: float, cost: float) -> str | None:
        found = self._reason(dropping, cost)
        before, self._before = self._before, dropping
        if found is not None:
            self._unsettled = not self._unsettled or _changed(before, dropping, self.threshold)
            self.dropping = None
        elif self.dropping is None:
            self.dropping, self.cost = dropping, cost
        return found

    def _reason(self, dropping: float, cost: float) -> str | None:
        if self.threshold == 0:
            return "a period is over"
        if self._unsettled:
            return "events have changed in the period before"
        if self.dropping is None:
            if _changed(self._before, dropping, self.threshold):
                return f"the dropping ratio went from {self._before:.3g} to {dropping:.3g}"
            return None
        if _changed(self.dropping, dropping, self.threshold):
            return f"the dropping ratio went from {self.dropping:.3g} to {dropping:.3g}"
        if _changed(self.cost, cost, self.threshold):
            return f"the constructs for an event went from {self.cost:.3g} to {cost:.3g}"
        return None


def _changed(before: float | None, now: float, threshold: float) -> bool:
    """Equation 5; of what was 0 there is no relative change."""
    if before is None:
        return False
    return abs(now - before) >= threshold * (before or 1.0)


@dataclass(slots=True, eq=False)
class Monitor:
    """Counts and samples the events of a period, and remembers the periods before."""

    options: AscOptions
    events: int = 0  # before this period
    rearranged: int = 0
    last: Period | None = None  # that led to a new order
    history: deque[Period] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    tally: Tally = field(default_factory=lambda: np.zeros(COUNTED, np.int64))
    _trigger: Trigger = field(init=False)
    _sample: Sample = field(default_factory=lambda: np.empty((0, 0), np.int32))
    _sampled: int = 0
    _orders: int = 0  # that have seen events, since all began anew

    def __post_init__(self) -> None:
        self._trigger = Trigger(self.options.threshold)

    @property
    def period(self) -> int:
        """How many events this period has."""
        return self.options.period if self._orders else min(FIRST, self.options.period)

    @property
    def thorough(self) -> bool:
        """Is there time to look ahead? A first order is wanted soon."""
        return self.options.lookahead and self._orders > 1

    @property
    def room(self) -> int:
        """How many events this period still takes."""
        return max(1, self.period - int(self.tally[EVENTS]))

    def remember(self, rows: Sample) -> None:
        """Take some of a batch into the sample, of which the latest stay; a row per construct."""
        step = max(1, self.period // self._room_for(len(rows)))
        self.keep(rows[:, -int(self.tally[EVENTS]) % step :: step].T)

    def _room_for(self, constructs: int) -> int:
        """How many events the sample takes."""
        own = (self.options.monitored or 0) * max(1, constructs - 1)
        return own or self.options.sample

    def keep(self, events: Sample) -> None:
        """Take all of these events into the sample."""
        constructs = events.shape[1]
        room = self._room_for(constructs)
        some = events[-room:]
        if self._sample.shape != (room, constructs):
            self._sample, self._sampled = np.empty((room, constructs), np.int32), 0
        kept = min(self._sampled, room - len(some))
        self._sample[:kept] = self._sample[self._sampled - kept : self._sampled].copy()
        self._sample[kept : kept + len(some)] = some
        self._sampled = kept + len(some)

    def taken(self) -> tuple[Tally, Sample]:
        """What was counted and sampled since the last time, which is then forgotten."""
        found = self.tally, self.sample.copy()
        self.tally, self._sampled = np.zeros(COUNTED, np.int64), 0
        return found

    @property
    def sample(self) -> Sample:
        return self._sample[: self._sampled]

    def begin_anew(self) -> None:
        """What was learned means nothing any more."""
        self._sampled = self._orders = 0
        self._trigger = Trigger(self.options.threshold)

    def period_over(self, *, queries_changed: bool = False) -> str | None:
        """If a period is over: why the order should be found anew, or None."""
        events = int(self.tally[EVENTS])
        if events < self.period:
            return None
        if self._orders == 0:
            why: str | None = "the first events came"
        elif self._orders == 1 and self.options.lookahead:
            why = "the first period is over"
        elif queries_changed:
            why = "queries came or went"
        else:
            why = self._trigger.reason(self.dropping, self.cost)
        if self._sampled == 0 or self.options.sequence == "fixed":
            why = None
        self._end(why)
        return why

    def _end(self, why: str | None) -> None:
        tally = self.tally
        self.events += int(tally[EVENTS])
        micro = int(tally[MICRO]) / max(1, int(tally[FOLLOWED]))
        over = Period(self.events, int(tally[EVENTS]), self.dropping, self.cost, micro, why)
        self.history.append(over)
        self._orders += why is not None or self._orders == 0
        if why is not None:
            self.last, self.rearranged = over, self.rearranged + 1
        self.tally = np.zeros(COUNTED, np.int64)

    @property
    def dropping(self) -> float:
        """The dropping ratio of this period, so far (Definition 4)."""
        return int(self.tally[DROPPED]) / max(1, int(self.tally[EVENTS]))

    @property
    def cost(self) -> float:
        """Constructs evaluated for an event of this period, so far."""
        return int(self.tally[EVALUATED]) / max(1, int(self.tally[EVENTS]))

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
