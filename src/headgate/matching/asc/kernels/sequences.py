"""Find a macro-sequence: the order of constructs that drops events soonest.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
4.2. Of each step only the counts are compared, because all candidates have the same denominators.

Deviation: the paper measures each step on the events of its own period; the bounds of periods in
the sample are given here, and may be those of the whole sample for each of them.

Beyond the paper, which goes step by step, each time to the construct that filters best next. On
real events that is up to 5 % above the best fixed order (`python -m benchmarks
asc-sequences-connections`). So its macro-sequence is only where a search by the cost of the whole
path begins: constructs move to other places as long as the sample costs less. `find_arrows` looks
ahead in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.jit import kernel, popcount

Words = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

MAX_MOVES = 40  # of constructs, to improve a sequence


@kernel
def and_row(grb, bits, row):
    """AND a row into a bitmap; return whether anything is left."""
    left = np.uint64(0)
    for w in range(len(grb)):
        grb[w] &= bits[row, w]
        left |= grb[w]
    return left != 0


@kernel
def has_common_bit(grb, bits, row):
    """Return whether a bitmap and a row have a bit in common."""
    w = 0
    while w < len(grb) and not grb[w] & bits[row, w]:
        w += 1
    return w < len(grb)


@kernel
def count_common_bits(grb, bits, row):
    """Return how many bits a bitmap and a row have in common."""
    total = np.int64(0)
    for w in range(len(grb)):
        total += popcount(grb[w] & bits[row, w])
    return total


class MonitoredSample(NamedTuple):
    """A sample of events, and the bits of the constructs that are put into a sequence."""

    bits: Words  # (rows, words or more): the bits of regions
    usage: Words  # (constructs, words): the queries that use a construct
    counted: Words  # (words,): the queries that count
    sample: npt.NDArray[np.int32]  # (events, constructs): the row that an event is in
    begin: Int64s  # by step: the first event that it looks at,
    end: Int64s  # and where these end


@kernel
def find_macro_sequence(monitored, candidates):
    """Return the candidates in order, the size of the cover set, and their own selectivities.

    Phase 1 takes the lowest conditional selectivity (Definition 3) until every query is covered,
    and phase 2 the highest dropping ratio (Definition 4). Ties go to the lowest selectivity of the
    construct alone, as in the first period, and then to the lower number.
    """
    bits, usage = monitored.bits, monitored.usage
    counted, sample = monitored.counted, monitored.sample
    words, count = len(counted), len(candidates)
    selectivity = np.zeros(usage.shape[0], np.int64)
    for c in candidates:
        selectivity[c] = _count_passing(
            bits, counted, sample, c, monitored.begin[0], monitored.end[0]
        )
    sequence, placed = np.empty(count, np.int64), np.zeros(usage.shape[0], np.bool_)
    open_queries = counted.copy()
    cover = 0
    for step in range(count):
        # Phase 1 as long as a query is open, which no construct in the sequence is used by.
        begin, end = monitored.begin[step], monitored.end[step]
        covered = True
        for w in range(words):
            covered = covered and open_queries[w] == 0
        if not covered:
            cover = step + 1
            score = _score_passing(bits, open_queries, sample, candidates, placed, begin, end)
        else:
            left = _list_left(bits, counted, sample, sequence[:step], begin, end)
            score = _score_dropping(bits, left, sample, candidates, placed)
        best = np.int64(-1)
        for i in range(count):
            c = candidates[i]
            if placed[c]:
                continue
            if best < 0 or (score[i], selectivity[c]) < (
                score[best],
                selectivity[candidates[best]],
            ):
                best = i
        chosen = candidates[best]
        sequence[step], placed[chosen] = chosen, True
        for w in range(words):
            open_queries[w] &= ~usage[chosen, w]
    return sequence, cover, selectivity


@kernel
def _count_passing(bits, counted, sample, c, begin, end):
    """Return how many of the counted bits are left, over all events, by one construct."""
    known = np.full(bits.shape[0], -1, np.int64)  # by row: events in the same row leave the same
    total = np.int64(0)
    for i in range(begin, end):
        row = sample[i, c]
        if known[row] < 0:
            known[row] = count_common_bits(counted, bits, row)
        total += known[row]
    return total


@kernel
def _score_passing(bits, open_queries, sample, candidates, placed, begin, end):
    """Return by candidate what passes of the queries that are open; the lower the better."""
    scores = np.zeros(len(candidates), np.int64)
    for i in range(len(candidates)):
        if not placed[candidates[i]]:
            scores[i] = _count_passing(bits, open_queries, sample, candidates[i], begin, end)
    return scores


@kernel
def _list_left(bits, counted, sample, sequence, begin, end):
    """Return the bitmaps of the events that a sequence does not drop, each after its number."""
    # (events, 1 + words): column 0 has the number of the event
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
def _score_dropping(bits, left, sample, candidates, placed):
    """Return by candidate how many of the events it drops, negated; the lower the better."""
    # `left` is what `_list_left` returns
    scores = np.zeros(len(candidates), np.int64)
    for k in range(len(left)):
        grb, i = left[k, 1:], np.int64(left[k, 0])
        for j in range(len(candidates)):
            if not placed[candidates[j]]:
                scores[j] -= not has_common_bit(grb, bits, sample[i, candidates[j]])
    return scores


@kernel
def improve_sequence(monitored, sequence):
    """Return the sequence after moving constructs, one at a time, each time to save the most."""
    # Try every construct at every place; one pass over the sample gives all costs of a construct.
    improved = sequence.copy()
    for _ in range(MAX_MOVES):
        saved, best, to = np.int64(0), 0, 0
        for place in range(len(improved)):
            costs = _cost_moves(monitored, improved, place)
            there = np.argmin(costs)
            if costs[place] - costs[there] > saved:
                saved, best, to = costs[place] - costs[there], place, there
        if saved == 0:
            break
        moved = improved[best]
        improved[best:-1] = improved[best + 1 :].copy()
        improved[to + 1 :] = improved[to:-1].copy()
        improved[to] = moved
    return improved


@kernel
def _cost_moves(monitored, sequence, place):
    """Return by place the constructs that the sample evaluates if one moves there from its own.

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
        # after how many of the others the event is dropped; `count`: never
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
