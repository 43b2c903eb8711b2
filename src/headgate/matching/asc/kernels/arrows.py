"""Find micro-arrows: which construct comes next for the events in one region.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
4.3. Candidate-arrow bitmaps are not kept: what is no candidate fails no query that the region
leaves, so it gains nothing and is never chosen.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.asc.kernels.sequences import and_row, count_common_bits, has_common_bit

MIN_STANDARD_ERRORS = 2.0  # that an arrow must gain, if it is chosen by looking ahead


@kernel
def find_arrows(monitored, sequence, cover, selectivity, min_events, ahead):
    """Return the micro-arrow of each row of the bitmaps, a construct or −1, for a macro-sequence.

    The paper leaves open what a region does that more than one sequence leads to. Here the events
    that are in a region after as many steps decide on its arrow together, at the least depth at
    which there are `min_events` of them; and the arrow must be better than the macro-sequence for
    the same events. Section 4.3's measure is the conditional selectivity as long as there are fewer
    steps than constructs in the `cover` set, and the dropping ratio from then on. Looking `ahead`,
    it is the number of constructs on the rest of the path, and the gain must be more than chance.
    Ties go to the lowest `selectivity` of the construct by itself.
    """
    bits, counted, sample = monitored.bits, monitored.counted, monitored.sample
    rows, count = bits.shape[0], len(sequence)
    arrows, decided = np.full(rows, -1, np.int16), np.zeros(rows, np.bool_)
    group = np.full(rows, -1, np.int64)  # by row: the group of the events that are in it
    done = np.zeros(monitored.usage.shape[0], np.bool_)
    grb, rest = np.empty_like(counted), np.empty_like(counted)
    for depth in range(1, count):
        begin, end = monitored.begin[depth - 1], monitored.end[depth - 1]
        # By group: its events, its row, and what each construct would gain them.
        members, row_of = np.zeros(end - begin, np.int64), np.empty(end - begin, np.int64)
        gain = np.zeros((end - begin, count), np.int64)  # over the macro-sequence
        squares = np.zeros((end - begin, count), np.int64)
        groups = 0
        for i in range(begin, end):
            row = walk_steps(bits, counted, sample, i, sequence, arrows, depth, done, grb)
            if row < 0 or decided[row]:
                continue
            g = group[row]
            if g < 0:
                g = group[row] = groups
                row_of[g] = row
                groups += 1
            members[g] += 1
            along = np.int64(-1)  # what it is along the macro-sequence
            for j in range(count):
                target = sequence[j]
                if done[target]:
                    continue
                if ahead:
                    rest[:] = grb
                    score = _count_remaining(bits, sample, i, sequence, arrows, target, done, rest)
                elif depth < cover:
                    score = count_common_bits(grb, bits, sample[i, target])
                else:
                    score = np.int64(has_common_bit(grb, bits, sample[i, target]))
                if along < 0:
                    along = score
                gain[g, j] += along - score
                squares[g, j] += (along - score) ** 2
        # Whatever the outcome, the row is decided once enough events have come to it.
        for g in range(groups):
            row = row_of[g]
            group[row] = -1
            if members[g] < min_events:
                continue
            decided[row] = True
            best = 0
            for j in range(1, count):
                if (-gain[g, j], selectivity[sequence[j]]) < (
                    -gain[g, best],
                    selectivity[sequence[best]],
                ):
                    best = j
            if gain[g, best] > (MIN_STANDARD_ERRORS * np.sqrt(squares[g, best]) if ahead else 0):
                arrows[row] = sequence[best]
    return arrows


@kernel
def _count_remaining(bits, sample, i, sequence, arrows, target, done, grb):
    """Return how many constructs an event evaluates from here on, if `target` is next."""
    # `behind` is how far into the sequence all constructs are evaluated
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
def walk_steps(bits, counted, sample, i, sequence, arrows, depth, done, grb):
    """Return the row that an event is in after some steps, or −1 if it is dropped before."""
    # Sets `done`, the constructs evaluated, and `grb`, what is left of the queries.
    done[:] = False
    grb[:] = counted
    row, behind = np.int64(-1), 0
    for _ in range(depth):
        target = np.int64(-1) if row < 0 else np.int64(arrows[row])
        if target < 0 or done[target]:
            while done[sequence[behind]]:
                behind += 1
            target = sequence[behind]
        done[target] = True
        row = np.int64(sample[i, target])
        if not and_row(grb, bits, row):
            return np.int64(-1)
    return row
