"""When is an order no longer the right one?

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
5.2. After each period λ the dropping ratio is compared with that of the period in which the order
was new (Equation 5).

Deviations: whether all constructs together drop an event does not depend on their order, so the
dropping ratio alone would miss that another order has become better: if more constructs are
evaluated for an event than in the best period since, that is a reason too. A change must be more
than chance would have it, and a ratio that was 0 has no relative one. And a period in which events
have changed holds events from before and after, so one that leads to a new order is followed by
another.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

SURE = 4.0  # standard errors
LEAST = 0.001  # of all events: less is not worth another order


@dataclass(slots=True)
class Trigger:
    """Says why the order should be found anew after a period, if it should.

    >>> trigger = Trigger(threshold=0.1)
    >>> periods = (0.6, 4.0), (0.62, 4.1), (0.3, 6.0)
    >>> [trigger.reason(dropping, cost, events=10_000) for dropping, cost in periods]
    [None, None, 'the dropping ratio went from 0.6 to 0.3']
    """

    threshold: float
    dropping: float | None = None
    cost: float = 0.0
    _unsettled: bool = False  # since the last reason
    _before: float | None = None  # the dropping ratio of the period before

    def reason(self, dropping: float, cost: float, events: int) -> str | None:
        found = self._reason(dropping, cost, events)
        before, self._before = self._before, dropping
        if found is not None:  # and a second time only if events still change
            again = _changed(before, dropping, self.threshold, events)
            self._unsettled = not self._unsettled or again
            self.dropping = None
        elif self.dropping is None:
            self.dropping, self.cost = dropping, cost
        self.cost = min(self.cost, cost)
        return found

    def _reason(self, dropping: float, cost: float, events: int) -> str | None:
        if self.threshold == 0:
            return "a period is over"
        if self._unsettled:
            return "events have changed in the period before"
        before = self._before if self.dropping is None else self.dropping
        if _changed(before, dropping, self.threshold, events):
            return f"the dropping ratio went from {before:.3g} to {dropping:.3g}"
        chance = SURE * self.cost / sqrt(max(1, events))  # were the costs spread as widely as that
        if self.dropping is not None and cost - self.cost >= max(
            self.threshold * self.cost, chance
        ):
            return f"the constructs for an event went from {self.cost:.3g} to {cost:.3g}"
        return None


def _changed(before: float | None, now: float, threshold: float, events: int) -> bool:
    """Equation 5, unless it may well be chance. Of what was 0 there is no relative change."""
    if before is None:
        return False
    middle = (before + now) / 2
    chance = SURE * sqrt(2 * middle * (1 - middle) / max(1, events))
    return abs(now - before) >= max(threshold * before, chance, LEAST)
