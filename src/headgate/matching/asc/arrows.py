"""Finding micro-arrows: which construct comes next for the events in one region.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
4.3; `definition.py` says the same in plain Python.
"""

from __future__ import annotations

import numpy as np

from headgate.matching.asc.bits import and_row, left_in, meets
from headgate.matching.keyed.compiled import kernel


@kernel
def micro_arrows(monitored, sequence, cover, alone, fewest):
    """The micro-arrow of each row of the bitmaps, a construct or −1, beside a macro-sequence.

    The paper leaves open what a region does that several sequences lead to. Here the events that
    stand in a region after as many steps decide on its arrow together, at the least depth at which
    there are `fewest` of them; and the arrow must be better than the macro-sequence for the same
    events. Section 4.3's measure is the conditional selectivity as long as there are fewer steps
    than constructs in the cover set, and the dropping ratio from then on.
    """
    bits, counted, sample = monitored.bits, monitored.counted, monitored.sample
    rows, count, words = bits.shape[0], len(sequence), len(counted)
    rank = np.empty(monitored.usage.shape[0], np.int64)
    for i in range(count):
        rank[sequence[i]] = i
    arrows, decided = np.full(rows, -1, np.int16), np.zeros(rows, np.bool_)
    group = np.full(rows, -1, np.int64)  # of the events that stand in a row
    done = np.zeros(monitored.usage.shape[0], np.bool_)
    grb = np.empty(words, np.uint64)
    for depth in range(1, count):
        begin, end = monitored.begin[depth - 1], monitored.end[depth - 1]
        members = np.zeros(end - begin, np.int64)
        row_of = np.empty(end - begin, np.int64)
        gain = np.zeros((end - begin, count), np.int64)  # over the macro-sequence
        able = np.zeros((end - begin, count), np.bool_)
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
            usual = 0
            while done[sequence[usual]]:
                usual += 1
            usual_score = _score(grb, bits, sample[i, sequence[usual]], depth < cover)
            for j in range(count):
                if not done[sequence[j]]:
                    able[g, j] = True
                    row = sample[i, sequence[j]]
                    gain[g, j] += usual_score - _score(grb, bits, row, depth < cover)
        for g in range(groups):
            row = row_of[g]
            group[row] = -1
            if members[g] < fewest:
                continue
            decided[row] = True
            best = np.int64(-1)
            for j in range(count):
                target = sequence[j]
                if not able[g, j] or not _may_fail(bits, row, monitored.usage, target, counted):
                    continue
                if best < 0 or (-gain[g, j], alone[target], j) < (
                    -gain[g, best],
                    alone[sequence[best]],
                    best,
                ):
                    best = j
            if best >= 0 and gain[g, best] > 0:
                arrows[row] = sequence[best]
    return arrows


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


@kernel
def _score(grb, bits, row, by_passing):
    """What is left of a bitmap: its queries, or whether it has any. The lower the better."""
    if by_passing:
        return left_in(grb, bits, row)
    return np.int64(meets(grb, bits, row))


@kernel
def _may_fail(bits, row, usage, target, counted):
    """Can a construct fail a query that a region leaves? (candidate-arrow bitmap)"""
    w = 0
    while w < len(counted) and not bits[row, w] & usage[target, w] & counted[w]:
        w += 1
    return w < len(counted)
