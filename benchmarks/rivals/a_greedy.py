"""A-Greedy: one order for all events, kept greedy by a profile of the latest (sampled) events.

Babu, Motwani, Munagala, Nishizawa, Widom: "Adaptive ordering of pipelined stream filters", section
4. Its invariant: no filter drops more of what the filters before a place leave over than the one at
that place does. A matrix view of the profile says how many each would drop; where a later filter
drops so much more that the one in place reaches less than a share α of it, the order is made greedy
anew from that place on. α below 1 avoids thrashing.

Generalised to several queries: the paper has one query, whose filters each drop a tuple by
themselves. A construct alone drops hardly any event, since it says nothing about queries that do
not use it. So what is dropped here is a pair of an event and a query, and a construct is a filter
of such pairs. All constructs cost the same. The profile has all sampled events, not only those that
are dropped, since the others lose pairs too. The constructs that are evaluated for the profile are
not counted, as they are not for the other orders that learn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.routed import Bits, Rows
from headgate.jit import kernel, popcount
from headgate.matching.asc.kernels.sequences import and_row, count_common_bits

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


@kernel
def route_greedily(bits, rows, left, chosen, order, profile, matrix, profiled, alpha):
    """How many constructs were evaluated, and how many events have been profiled.

    `order`, `profile` and `matrix` go on from call to call.
    """
    count, events = rows.shape
    if events == 0:
        return np.int64(0), np.int64(profiled)
    alive = left[0].copy()
    evaluated, number = np.int64(0), np.int64(profiled)
    for e in range(events):
        some, step = True, 0
        while some and step < count:
            some = and_row(left[e], bits, rows[order[step], e])
            step += 1
        evaluated += step
        if chosen[e]:
            oldest = profile[number % len(profile)]
            if number >= len(profile):
                _add(matrix, bits, alive, order, oldest, -1)
            oldest[:] = rows[:, e]
            _add(matrix, bits, alive, order, oldest, 1)
            number += 1
            known = profile[: min(number, len(profile))]
            _keep_greedy(matrix, bits, alive, order, known, alpha)
    return evaluated, number


@kernel
def _add(matrix, bits, alive, order, event, times):
    """Count an event: `matrix[i, j]` pairs are dropped by place j of those left before place i."""
    grb = alive.copy()
    for i in range(len(order)):
        before = np.int64(0)
        for w in range(len(grb)):
            before += popcount(grb[w])
        for j in range(i, len(order)):
            matrix[i, j] += times * (before - count_common_bits(grb, bits, event[order[j]]))
        if not and_row(grb, bits, event[order[i]]):
            break


@kernel
def _keep_greedy(matrix, bits, alive, order, profile, alpha):
    """Mend the order from the first place on that another construct would fill much better."""
    count = len(order)
    violated = count
    for i in range(count - 1, -1, -1):
        for j in range(i + 1, count):
            if matrix[i, i] < alpha * matrix[i, j]:
                violated = i
    for i in range(violated, count):
        best = i + np.argmax(matrix[i, i:])
        if best != i:
            order[i], order[best] = order[best], order[i]
            matrix[:] = 0
            for k in range(len(profile)):
                _add(matrix, bits, alive, order, profile[k], 1)
