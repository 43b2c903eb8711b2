"""Ticket routing: the next construct of an event is drawn by lot (eddies), or at random.

Avnur and Hellerstein, "Eddies: continuously adaptive query processing", section 4. An operator gets
a ticket when it is handed a tuple and gives one back when it returns it, so tickets stay with those
that drop; who has more of them is likelier to be next. Tickets are earned in a window of events,
count in the next one, and are then forgotten.

The variant: an operator is a construct, and it drops an event when no query is left after it, as in
the ASC paper's "selection modules". Each has one ticket more than it has earned, so that all may be
drawn, and in the first window all are alike. Where there is no window, no ticket is ever earned:
that is a random order for each event.

With several queries it is mostly the last of many constructs that drops an event, and not by its
own merit; so there is a stronger variant, in which a construct earns a ticket for each query that
it drops of an event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.kernels.routing import route_by_lot, route_greedily
from benchmarks.rivals.routing import Bits, Rows

WINDOW = 1_000  # events

Tickets = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Lottery:
    """A router by tickets for events, or for queries; a window of 0 events is a random order."""

    window: int = WINDOW
    by_queries: bool = False
    seed: int = 0
    counted: Tickets = field(default_factory=lambda: np.zeros(0, np.int64))
    earned: Tickets = field(default_factory=lambda: np.zeros(0, np.int64))
    _seen: int = 0  # events of this window
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def route(self, bits: Bits, rows: Rows, left: Bits) -> int:
        if len(self.counted) != len(rows):
            self.counted, self.earned = np.zeros((2, len(rows)), np.int64)
        draws = self._random.random((rows.shape[1], len(rows)))
        tickets = self.counted, self.earned
        evaluated, self._seen = route_by_lot(
            bits, rows, left, draws, *tickets, self._seen, self.window, self.by_queries
        )
        return int(evaluated)


# A-Greedy: one order for all events, kept greedy by a profile of the latest (sampled) events.
#
# Babu, Motwani, Munagala, Nishizawa, Widom: "Adaptive ordering of pipelined stream filters",
# section 4. Its invariant: no filter drops more of what the filters before a place leave over
# than the one at that place does. A matrix view of the profile says how many each would drop;
# where a later filter drops so much more that the one in place reaches less than a share α of it,
# the order is made greedy anew from that place on. α below 1 avoids thrashing.
#
# Generalised to several queries: the paper has one query, whose filters each drop a tuple by
# themselves. A construct alone drops hardly any event, since it says nothing about queries that
# do not use it. So what is dropped here is a pair of an event and a query, and a construct is a
# filter of such pairs. All constructs cost the same. The profile has all sampled events, not only
# those that are dropped, since the others lose pairs too. The constructs that are evaluated for
# the profile are not counted, as they are not for the other orders that learn.

PROFILE = 500  # events
SAMPLED = 0.05  # of all events
ALPHA = 0.9

Numbers = npt.NDArray[np.int64]


@dataclass(slots=True, eq=False)
class AGreedy:
    """A router that keeps an order greedy; `order` has the places of constructs in `rows`."""

    alpha: float = ALPHA
    sampled: float = SAMPLED
    size: int = PROFILE
    seed: int = 0
    order: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    _profile: Rows = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    _matrix: Numbers = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    _profiled: int = 0
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def route(self, bits: Bits, rows: Rows, left: Bits) -> int:
        count = len(rows)
        if len(self.order) != count:
            self.order = np.arange(count)
            self._profile = np.zeros((self.size, count), np.int32)
            self._matrix = np.zeros((count, count), np.int64)
        chosen = self._random.random(rows.shape[1]) < self.sampled
        learned = self.order, self._profile, self._matrix, self._profiled
        evaluated, self._profiled = route_greedily(bits, rows, left, chosen, *learned, self.alpha)
        return int(evaluated)
