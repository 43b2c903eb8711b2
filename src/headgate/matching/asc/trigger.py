"""When is an order no longer the right one?

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
5.2. After each period λ the dropping ratio is compared with that of the period in which the order
was new (Equation 5).

Deviations: whether all constructs together drop an event does not depend on their order, so the
dropping ratio alone would miss that another order has become better; the constructs evaluated for
an event are watched too. A ratio that was 0 is compared by the difference. And a period in which
events have changed holds events from before and after, so one that leads to a new order is followed
by another.
"""

from __future__ import annotations

from dataclasses import dataclass


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
        before = self._before if self.dropping is None else self.dropping
        if _changed(before, dropping, self.threshold):
            return f"the dropping ratio went from {before:.3g} to {dropping:.3g}"
        if self.dropping is not None and _changed(self.cost, cost, self.threshold):
            return f"the constructs for an event went from {self.cost:.3g} to {cost:.3g}"
        return None


def _changed(before: float | None, now: float, threshold: float) -> bool:
    """Equation 5; of what was 0 there is no relative change."""
    if before is None:
        return False
    return abs(now - before) >= threshold * (before or 1.0)
