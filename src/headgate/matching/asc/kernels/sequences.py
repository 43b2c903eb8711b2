"""Finding a macro-sequence: in which order constructs drop events soonest.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
4.2. `definition.py` says the same in plain Python, and more slowly. Of each step only the
counts are compared, because all candidates have the same denominators.

Deviation: the paper measures each step on the events of its own period; the bounds of periods in
the sample are given here, and may be those of the whole sample for each of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headgate.jit import kernel, popcount


@kernel
def and_row(grb, bits, row):
    """AND a row into a bitmap; is anything left?"""
    left = np.uint64(0)
    for w in range(len(grb)):
        grb[w] &= bits[row, w]
        left |= grb[w]
    return left != 0


@kernel
def meets(grb, bits, row):
    """Would anything be left?"""
    w = 0
    while w < len(grb) and not grb[w] & bits[row, w]:
        w += 1
    return w < len(grb)


@kernel
def left_in(grb, bits, row):
    """How many bits would be left?"""
    total = np.int64(0)
    for w in range(len(grb)):
        total += popcount(grb[w] & bits[row, w])
    return total


class Monitored(NamedTuple):
    """What sequences are found from: event i of the sample is in row `sample[i, c]` of construct c.

    Step k looks at the events from `begin[k]` up to `end[k]`. `counted` has a bit for each query
    that counts, `usage[c]` for each that uses a construct.
    """

    bits: Any
    usage: Any
    counted: Any
    sample: Any
    begin: Any
    end: Any


@kernel
def macro_sequence(monitored, candidates):
    """The candidates in order, how many of them make the cover set, and their own selectivities.

    Phase 1 takes the lowest conditional selectivity (Definition 3) until every query is covered,
    and phase 2 the highest dropping ratio (Definition 4). Ties go to the lowest selectivity of the
    construct alone, as in the first period, and then to the lower number.
    """
    bits, usage = monitored.bits, monitored.usage
    counted, sample = monitored.counted, monitored.sample
    words, count = len(counted), len(candidates)
    alone = np.zeros(usage.shape[0], np.int64)
    for c in candidates:
        alone[c] = _passed(bits, counted, sample, c, monitored.begin[0], monitored.end[0])
    sequence, placed = np.empty(count, np.int64), np.zeros(usage.shape[0], np.bool_)
    open_queries = counted.copy()
    cover = 0
    for step in range(count):
        begin, end = monitored.begin[step], monitored.end[step]
        covered = True
        for w in range(words):
            covered = covered and open_queries[w] == 0
        if not covered:
            cover = step + 1
            score = _scores_of_passing(bits, open_queries, sample, candidates, placed, begin, end)
        else:
            left = _left_after(bits, counted, sample, sequence[:step], begin, end)
            score = _scores_of_dropping(bits, left, sample, candidates, placed)
        best = np.int64(-1)
        for i in range(count):
            c = candidates[i]
            if placed[c]:
                continue
            if best < 0 or (score[i], alone[c]) < (score[best], alone[candidates[best]]):
                best = i
        chosen = candidates[best]
        sequence[step], placed[chosen] = chosen, True
        for w in range(words):
            open_queries[w] &= ~usage[chosen, w]
    return sequence, cover, alone


@kernel
def _passed(bits, counted, sample, c, begin, end):
    """How many of the counted bits events leave when a construct is evaluated, all together."""
    known = np.full(bits.shape[0], -1, np.int64)
    total = np.int64(0)
    for i in range(begin, end):
        row = sample[i, c]
        if known[row] < 0:
            known[row] = left_in(counted, bits, row)
        total += known[row]
    return total


@kernel
def _scores_of_passing(bits, open_queries, sample, candidates, placed, begin, end):
    """By candidate: what passes of the queries that are open; the lower the better."""
    scores = np.zeros(len(candidates), np.int64)
    for i in range(len(candidates)):
        if not placed[candidates[i]]:
            scores[i] = _passed(bits, open_queries, sample, candidates[i], begin, end)
    return scores


@kernel
def _left_after(bits, counted, sample, sequence, begin, end):
    """The bitmaps of events that a sequence leaves, each with its number before it."""
    words = len(counted)
    left = np.empty((end - begin, words + 1), np.uint64)
    kept = 0
    for i in range(begin, end):
        grb = left[kept, 1:]
        grb[:] = counted
        some = True
        for c in sequence:
            some = and_row(grb, bits, sample[i, c])
            if not some:
                break
        if some:
            left[kept, 0] = np.uint64(i)
            kept += 1
    return left[:kept]


@kernel
def _scores_of_dropping(bits, left, sample, candidates, placed):
    """By candidate: how many of the events it drops, with a minus; the lower the better."""
    scores = np.zeros(len(candidates), np.int64)
    for k in range(len(left)):
        grb, i = left[k, 1:], np.int64(left[k, 0])
        for j in range(len(candidates)):
            if not placed[candidates[j]]:
                scores[j] -= not meets(grb, bits, sample[i, candidates[j]])
    return scores


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
