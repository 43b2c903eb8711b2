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

from benchmarks.rivals.routed import Bits, Rows
from headgate.jit import kernel, popcount
from headgate.matching.asc.kernels.sequences import and_row

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


@kernel
def route_by_lot(bits, rows, left, draws, counted, earned, seen, window, by_queries):
    """How many constructs were evaluated, and how many events of the window have been seen.

    Step k of event e takes the construct at the share `draws[e, k]` of all tickets still there.
    """
    count, events = rows.shape
    rest = np.empty(count, np.int64)
    evaluated, now = np.int64(0), np.int64(seen)
    for e in range(events):
        if window > 0 and now == window:
            counted[:] = earned
            earned[:] = 0
            now = np.int64(0)
        now += 1
        tickets = np.int64(0)
        for c in range(count):
            rest[c] = c
            tickets += counted[c] + 1
        some, step = True, 0
        queries = _total(left[e])
        while some and step < count:
            aim = draws[e, step] * tickets
            place = 0
            below = counted[rest[0]] + 1
            while below <= aim and place < count - step - 1:
                place += 1
                below += counted[rest[place]] + 1
            c = rest[place]
            rest[place] = rest[count - step - 1]
            tickets -= counted[c] + 1
            some = and_row(left[e], bits, rows[c, e])
            if window > 0 and by_queries:
                before, queries = queries, _total(left[e])
                earned[c] += before - queries
            elif window > 0 and not some:
                earned[c] += 1
            step += 1
        evaluated += step
    return evaluated, now


@kernel
def _total(grb):
    """How many queries are left."""
    total = np.int64(0)
    for w in range(len(grb)):
        total += popcount(grb[w])
    return total
