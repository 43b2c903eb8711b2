"""Finding micro-arrows: which construct comes next for the events in one region.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
4.3; `definition.py` says the same in plain Python. Candidate-arrow bitmaps are not kept: what is no
candidate fails no query that the region leaves, so it gains nothing and is never chosen.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.asc.kernels.sequences import and_row, left_in, meets

SURE = 2.0  # standard errors that an arrow must gain, if it is chosen by the whole way


@kernel
def found_arrows(monitored, sequence, cover, alone, fewest, ahead):
    """The micro-arrow of each row of the bitmaps, a construct or −1, beside a macro-sequence.

    The paper leaves open what a region does that several sequences lead to. Here the events that
    stand in a region after as many steps decide on its arrow together, at the least depth at which
    there are `fewest` of them; and the arrow must be better than the macro-sequence for the same
    events. Section 4.3's measure is the conditional selectivity as long as there are fewer steps
    than constructs in the cover set, and the dropping ratio from then on. Looking `ahead`, it is
    the number of constructs on the rest of the way, and the gain must be more than chance.
    """
    bits, counted, sample = monitored.bits, monitored.counted, monitored.sample
    rows, count = bits.shape[0], len(sequence)
    arrows, decided = np.full(rows, -1, np.int16), np.zeros(rows, np.bool_)
    group = np.full(rows, -1, np.int64)  # of the events that stand in a row
    done = np.zeros(monitored.usage.shape[0], np.bool_)
    grb, rest = np.empty_like(counted), np.empty_like(counted)
    for depth in range(1, count):
        begin, end = monitored.begin[depth - 1], monitored.end[depth - 1]
        members, row_of = np.zeros(end - begin, np.int64), np.empty(end - begin, np.int64)
        gain = np.zeros((end - begin, count), np.int64)  # over the macro-sequence
        squares = np.zeros((end - begin, count), np.int64)
        groups = 0
        for i in range(begin, end):
            standing = walk(bits, counted, sample, i, sequence, arrows, depth, done, grb)
            if standing < 0 or decided[standing]:
                continue
            g = group[standing]
            if g < 0:
                g = group[standing] = groups
                row_of[g] = standing
                groups += 1
            members[g] += 1
            along = np.int64(-1)  # what it is along the macro-sequence
            for j in range(count):
                target = sequence[j]
                if done[target]:
                    continue
                if ahead:
                    rest[:] = grb
                    score = _remaining(bits, sample, i, sequence, arrows, target, done, rest)
                elif depth < cover:
                    score = left_in(grb, bits, sample[i, target])
                else:
                    score = np.int64(meets(grb, bits, sample[i, target]))
                if along < 0:
                    along = score
                gain[g, j] += along - score
                squares[g, j] += (along - score) ** 2
        for g in range(groups):
            row = row_of[g]
            group[row] = -1
            if members[g] < fewest:
                continue
            decided[row] = True
            best = 0
            for j in range(1, count):
                if (-gain[g, j], alone[sequence[j]]) < (-gain[g, best], alone[sequence[best]]):
                    best = j
            if gain[g, best] > (SURE * np.sqrt(squares[g, best]) if ahead else 0):
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
    return np.int64(cost)


@kernel
def walk(bits, counted, sample, i, sequence, arrows, depth, done, grb):
    """The row in which an event stands after some steps, or −1 if it is dropped on the way."""
    done[:] = False
    grb[:] = counted
    standing, behind = np.int64(-1), 0
    for _ in range(depth):
        target = np.int64(-1) if standing < 0 else np.int64(arrows[standing])
        if target < 0 or done[target]:
            while done[sequence[behind]]:
                behind += 1
            target = sequence[behind]
        done[target] = True
        standing = np.int64(sample[i, target])
        if not and_row(grb, bits, standing):
            return np.int64(-1)
    return standing
