"""Beyond the paper: sequences by what the whole way costs, not only the next step.

"Adaptive two-level optimization for selection predicates of multiple continuous queries" goes step
by step, each time to the construct that filters best next. On real events that is up to 5 % above
the best fixed order (`python -m benchmarks asc-sequences-connections`). Here its macro-sequence is
only where the search begins: constructs move to other places as long as the sample costs less.
`found_arrows` looks ahead in the same way.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.asc.bits import and_row

MOST_MOVES = 40


@kernel
def improved_sequence(monitored, sequence):
    """The sequence after moving constructs, one at a time, each time to save the most."""
    found = sequence.copy()
    for _ in range(MOST_MOVES):
        saved, best, to = np.int64(0), 0, 0
        for place in range(len(found)):
            costs = _costs_elsewhere(monitored, found, place)
            there = np.argmin(costs)
            if costs[place] - costs[there] > saved:
                saved, best, to = costs[place] - costs[there], place, there
        if saved == 0:
            break
        moved = found[best]
        found[best:-1] = found[best + 1 :].copy()
        found[to + 1 :] = found[to:-1].copy()
        found[to] = moved
    return found


@kernel
def _costs_elsewhere(monitored, sequence, place):
    """By place: the constructs that the sample evaluates if one moves there from its own.

    An event that the others drop `without` the one after d of them, and `together` with it after
    d′ of them, costs d if the one stands behind these, and else one more than d′ or the place of
    the one, whichever is later.
    """
    bits, counted, sample = monitored.bits, monitored.counted, monitored.sample
    count = len(sequence)
    one = sequence[place]
    others = np.concatenate((sequence[:place], sequence[place + 1 :]))
    costs = np.zeros(count, np.int64)
    without, together = np.empty_like(counted), np.empty_like(counted)
    for i in range(len(sample)):
        without[:] = counted
        together[:] = counted
        after_without = after_together = count
        if not and_row(together, bits, sample[i, one]):
            after_together = 0
        for k in range(count - 1):
            row = sample[i, others[k]]
            if after_together == count and not and_row(together, bits, row):
                after_together = k + 1
            if not and_row(without, bits, row):
                after_without = k + 1
                break
        for at in range(count):
            if after_without <= at:
                costs[at] += after_without
            else:
                costs[at] += min(count, max(after_together, at) + 1)
    return costs
