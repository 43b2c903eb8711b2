"""Beyond the paper: sequences and arrows by what the whole way costs, not only the next step.

"Adaptive two-level optimization for selection predicates of multiple continuous queries" goes step
by step, each time to the construct that filters best next. On skewed and real events that is up to
6 % above the best fixed order. Here its macro-sequence is only where the search begins: constructs
move to other places as long as the sample costs less. And a region's arrow leads to the construct
from which on its events cost least, if they cost less than along the macro-sequence by more than
chance would have it.
"""

from __future__ import annotations

import numpy as np

from headgate.matching.asc.arrows import walk
from headgate.matching.asc.bits import and_row
from headgate.matching.keyed.compiled import kernel

MOST_MOVES = 40
SURE = 2.0  # standard errors that an arrow must gain


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

    An event that the others drop after d of them, and all together after d′ of them, costs d if the
    one stands behind these, and else one more than d′ or the place of the one, whichever is later.
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
        alone = joint = count
        if not and_row(together, bits, sample[i, one]):
            joint = 0
        for k in range(count - 1):
            row = sample[i, others[k]]
            if joint == count and not and_row(together, bits, row):
                joint = k + 1
            if not and_row(without, bits, row):
                alone = k + 1
                break
        for at in range(count):
            if alone <= at:
                costs[at] += alone
            else:
                costs[at] += min(count, max(joint, at) + 1)
    return costs


@kernel
def paying_arrows(monitored, sequence, fewest):
    """The arrow of each row, −1 for none: groups and depths are those of `micro_arrows`."""
    bits, counted, sample = monitored.bits, monitored.counted, monitored.sample
    rows, count, events = bits.shape[0], len(sequence), len(sample)
    arrows, decided = np.full(rows, -1, np.int16), np.zeros(rows, np.bool_)
    group = np.full(rows, -1, np.int64)
    done = np.zeros(monitored.usage.shape[0], np.bool_)
    grb, rest = np.empty_like(counted), np.empty_like(counted)
    for depth in range(1, count - 1):
        members, row_of = np.zeros(events, np.int64), np.empty(events, np.int64)
        gain = np.zeros((events, count), np.int64)
        squares = np.zeros((events, count), np.int64)
        groups = 0
        for i in range(events):
            standing = walk(bits, counted, sample, i, sequence, arrows, depth, done, grb)
            if standing < 0 or decided[standing]:
                continue
            g = group[standing]
            if g < 0:
                g = group[standing] = groups
                row_of[g] = standing
                groups += 1
            members[g] += 1
            usual = 0
            while done[sequence[usual]]:
                usual += 1
            rest[:] = grb
            cost = _remaining(bits, sample, i, sequence, arrows, sequence[usual], done, rest)
            for j in range(usual + 1, count):
                if not done[sequence[j]]:
                    rest[:] = grb
                    saved = cost - _remaining(
                        bits, sample, i, sequence, arrows, sequence[j], done, rest
                    )
                    gain[g, j] += saved
                    squares[g, j] += saved * saved
        for g in range(groups):
            row = row_of[g]
            group[row] = -1
            if members[g] < fewest:
                continue
            decided[row] = True
            best = np.argmax(gain[g])
            if gain[g, best] > SURE * np.sqrt(squares[g, best]):
                arrows[row] = sequence[best]
    return arrows


@kernel
def _remaining(bits, sample, i, sequence, arrows, target, done, grb):
    """How many constructs an event evaluates from here on, if a certain one is next."""
    taken, cost, behind = done.copy(), 0, 0
    while target >= 0:
        taken[target] = True
        cost += 1
        row = np.int64(sample[i, target])
        if not and_row(grb, bits, row):
            break
        target = np.int64(arrows[row])
        if target < 0 or taken[target]:
            while behind < len(sequence) and taken[sequence[behind]]:
                behind += 1
            target = sequence[behind] if behind < len(sequence) else np.int64(-1)
    return cost
