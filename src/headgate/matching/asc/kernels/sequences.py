"""Find a macro-sequence, the order of constructs that drops events soonest, and micro-arrows.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", sections
4.2 and 4.3. Of each step only the counts are compared, because all candidates have the same
denominators. A micro-arrow is the construct that comes next for the events in one region.

Deviations: the paper measures each step on the events of its own period; the bounds of periods in
the sample are given here, and may be those of the whole sample for each of them. Candidate-arrow
bitmaps are not kept: what is no candidate fails no query that the region leaves, so it gains
nothing and is never chosen.

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

from headgate.jit import kernel, plain_kernel, popcount

Words = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

MAX_MOVES = 40  # of constructs, to improve a sequence
MIN_STANDARD_ERRORS = 2.0  # that an arrow must gain, if it is chosen by looking ahead


@plain_kernel
def and_row(grb, bits, row):
    """AND a row into a bitmap; return whether anything is left."""
    left = np.uint64(0)
    for w in range(len(grb)):
        grb[w] &= bits[row, w]
        left |= grb[w]
    return left != 0


@plain_kernel
def has_common_bit(grb, bits, row):
    """Return whether a bitmap and a row have a bit in common."""
    w = 0
    while w < len(grb) and not grb[w] & bits[row, w]:
        w += 1
    return w < len(grb)


@plain_kernel
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
        # the lowest score; among equals the construct that lets least pass by itself
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
        # written where the next event that is left will stand, and kept only then
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
        # take it out of its place, then shift what stands from the new place on
        moved = improved[best]
        improved[best:-1] = improved[best + 1 :].copy()
        improved[to + 1 :] = improved[to:-1].copy()
        improved[to] = moved
    return improved


@kernel
def _cost_moves(monitored, sequence, place):
    """Return by place the constructs that the sample evaluates if one moves there from `place`.

    An event that the others drop `without` the moved construct after d of them, and `together` with
    it after d′ of them, costs d if the moved one stands behind these, and else one more than d′ or
    than its place, whichever is later.
    """
    bits, counted, sample = monitored.bits, monitored.counted, monitored.sample
    count = len(sequence)
    moved = sequence[place]
    others = np.concatenate((sequence[:place], sequence[place + 1 :]))
    costs = np.zeros(count, np.int64)
    without, together = np.empty_like(counted), np.empty_like(counted)
    for i in range(len(sample)):
        without[:] = counted
        together[:] = counted
        # after how many of the others the event is dropped; `count`: never
        after_without = after_together = count
        if not and_row(together, bits, sample[i, moved]):
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
                # the first construct that is not evaluated yet is the macro-sequence's choice
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
        # an arrow to a construct that is evaluated already does not count
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
