"""What is watched of the events of a period, and remembered of the periods before.

The first order has seen no events, so it is replaced soon, by one that is found in a moment; and
that after a first whole period, by one that takes its time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.kernels.evaluate import (
    COUNTED,
    DROPPED,
    EVALUATED,
    EVENTS,
    FOLLOWED,
    MICRO,
)
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import Sample
from headgate.matching.asc.sample import Sampled
from headgate.matching.asc.trigger import Trigger

FIRST = 1_000  # events before the first order that has seen any
REMEMBERED = 1_000  # periods
CHECKED = 10  # periods, after which another order is looked for in any case

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

    @classmethod
    def of(cls, tally: Tally, before: int, rearranged: str | None = None) -> Period:
        """What was counted, after so many events."""
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
    """Counts and samples the events of a period, and says when it is over and what follows."""

    def __init__(self, options: AscOptions) -> None:
        self.options = options
        self.events = 0  # before this period
        self.rearranged = 0
        self.last: Period | None = None  # that led to a new order
        self.history: deque[Period] = deque(maxlen=REMEMBERED)
        self._periods = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """What was learned means nothing any more."""
        self._trigger = Trigger(self.options.threshold)
        self._orders = 0  # that have seen events
        self._begin_period()

    def _begin_period(self) -> None:
        self.tally: Tally = np.zeros(COUNTED, np.int64)
        self.forget_sample()

    def forget_sample(self) -> None:
        """Begin to sample anew, since rows or events have become others."""
        share = 1.0 if self.options.monitored else min(1.0, 2 * self.options.sample / self.period)
        self._sampled = Sampled(share)

    @property
    def period(self) -> int:
        """How many events this period has."""
        return self.options.period if self._orders else min(FIRST, self.options.period)

    @property
    def room(self) -> int:
        """How many events this period still takes."""
        return max(1, self.period - int(self.tally[EVENTS]))

    @property
    def is_over(self) -> bool:
        return bool(self.tally[EVENTS] >= self.period)

    @property
    def is_to_be_checked(self) -> bool:
        """Is it time to look for a better order, though nothing seems to have changed?"""
        settled = self._orders > 1 or not self.options.lookahead
        if self.options.sequence == "fixed":
            return False
        return settled and bool(len(self._sampled)) and self._periods % CHECKED == 0

    @property
    def thorough(self) -> bool:
        """Is there time to look ahead for the next order, and something to gain?"""
        return self._orders > 0 and bool(self.tally[DROPPED])

    def remember(self, rows: Sample) -> None:
        """Take some of a batch into the sample; a row for each construct."""
        self._sampled.add(rows, self._room_for(len(rows)))

    def keep(self, events: Sample) -> None:
        """Take all of these events into the sample; a row for each of them."""
        self._sampled.keep(events, self._room_for(events.shape[1]))

    def _room_for(self, constructs: int) -> int:
        own = (self.options.monitored or 0) * max(1, constructs - 1)
        return own or self.options.sample

    @property
    def sample(self) -> Sample:
        """Some events of this period."""
        return self._sampled.events(self._room_for(self._sampled.constructs))

    def taken(self) -> tuple[Tally, Sample]:
        """What was counted and sampled since the last time, which is then forgotten."""
        found = self.tally, self.sample
        self._begin_period()
        return found

    def reason(self, *, queries_changed: bool) -> str | None:
        """Why the order should be found anew now that a period is over, if it should."""
        if self.options.sequence == "fixed" or not len(self._sampled):
            return None
        if self._orders == 0:
            return "the first events came"
        if self._orders == 1 and self.options.lookahead:
            return "the first period is over"
        if queries_changed:
            self._trigger = Trigger(self.options.threshold)
            return "queries came or went"
        over = Period.of(self.tally, self.events)
        return self._trigger.reason(over.dropping, over.cost, over.events)

    def end_period(self, why: str | None) -> None:
        """Remember this period, with the reason for another order, and begin the next."""
        over = Period.of(self.tally, self.events, why)
        self.events = over.until
        self.history.append(over)
        self._periods += 1
        if why is not None:
            self.last, self.rearranged = over, self.rearranged + 1
        self._orders += why is not None or self._orders == 0
        self._begin_period()

    def state(self) -> dict[str, Any]:
        """What is compared with, for who goes on."""
        trigger = self._trigger
        return {"orders": self._orders, "dropping": trigger.dropping, "cost": trigger.cost}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on where another has stopped."""
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
