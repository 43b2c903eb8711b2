"""Kernels of rival orders of evaluation: A-Greedy, lotteries, and all fixed orders at once.

`rows[c, e]` is the row of `bits` that event e is in for construct c; `left[e]` the queries, a bit
each, that are left of event e. A graph bitmap (`grb`) is such a row of words.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, lowest_bit, popcount
from headgate.matching.asc.kernels.sequences import and_row, count_common_bits


@kernel
def route_greedily(bits, rows, left, chosen, order, profile, matrix, profiled, alpha):
    """Evaluate events in a greedy order; return the constructs evaluated and events profiled.

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
            # the profile is a ring: the oldest event leaves the matrix before the new one enters
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
    """Add an event to the matrix `times` times.

    `matrix[i, j]` pairs are dropped by place j of those left before place i.
    """
    grb = alive.copy()
    for i in range(len(order)):
        # pairs before place i, less those that place j leaves over
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
    # backwards, so that the last one noted is the first violation
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
            # places changed their meaning: count the whole profile anew
            matrix[:] = 0
            for k in range(len(profile)):
                _add(matrix, bits, alive, order, profile[k], 1)


@kernel
def route_by_lot(bits, rows, left, draws, counted, earned, seen, window, by_queries):
    """Evaluate events by lot; return the constructs evaluated and events of the window seen.

    Step k of event e takes the construct at the share `draws[e, k]` of all tickets still there.
    """
    count, events = rows.shape
    remaining = np.empty(count, np.int64)
    evaluated, now = np.int64(0), np.int64(seen)
    for e in range(events):
        if window > 0 and now == window:
            counted[:] = earned
            earned[:] = 0
            now = np.int64(0)
        now += 1
        tickets = np.int64(0)
        for c in range(count):
            remaining[c] = c
            tickets += counted[c] + 1
        some, step = True, 0
        queries = _total(left[e])
        while some and step < count:
            # walk along the tickets of the constructs that are left, up to the one drawn
            aim = draws[e, step] * tickets
            place = 0
            below = counted[remaining[0]] + 1
            while below <= aim and place < count - step - 1:
                place += 1
                below += counted[remaining[place]] + 1
            c = remaining[place]
            remaining[place] = remaining[count - step - 1]
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
    """Return how many queries are left."""
    total = np.int64(0)
    for w in range(len(grb)):
        total += popcount(grb[w])
    return total


@kernel
def count_survivors(bits, alive, rows):
    """Return, for each set of constructs, how many events are left after all of its own.

    A set is a number with a bit for each construct. It is built by adding constructs in ascending
    order, and abandoned once nothing is left.
    """
    count, events = rows.shape
    words = len(alive)
    left_after = np.zeros(1 << count, np.int64)
    grb = np.empty((count + 1, len(alive)), np.uint64)
    grb[0] = alive
    members = np.zeros(count + 1, np.int64)
    following = np.zeros(count + 1, np.int64)
    for e in range(events):
        left_after[0] += 1
        following[0] = 0
        # depth first over the sets; `following[d]` is the next construct to add at depth d
        depth = 0
        while depth >= 0:
            c = following[depth]
            if c == count:
                depth -= 1
                continue
            following[depth] = c + 1
            row, left = rows[c, e], np.uint64(0)
            for w in range(words):
                word = grb[depth, w] & bits[row, w]
                grb[depth + 1, w] = word
                left |= word
            if left != 0:
                depth += 1
                members[depth] = members[depth - 1] | (1 << c)
                left_after[members[depth]] += 1
                following[depth] = c + 1
    return left_after


@kernel
def find_cheapest(counts, dearest):
    """Return the order with the least cost, or with the greatest, and that cost."""
    sign = -1 if dearest else 1
    count = 0
    while 1 << count < len(counts):
        count += 1
    # dynamic programming from the full set down: the best way to finish, by set
    cost = np.zeros(len(counts), np.int64)
    choice = np.zeros(len(counts), np.int8)
    for members in range(len(counts) - 2, -1, -1):
        best = -1
        for c in range(count):
            more = members | (1 << c)
            if more != members and (
                best < 0 or sign * cost[more] < sign * cost[members | (1 << best)]
            ):
                best = c
        cost[members] = counts[members] + cost[members | (1 << best)]
        choice[members] = best
    order, members = np.empty(count, np.int64), 0
    for step in range(count):
        order[step] = choice[members]
        members |= 1 << order[step]
    return order, cost[0]


@kernel
def collect_matches(left, owner):
    """Return the matches of events as offsets and queries; slot s is `owner[s]`'s."""
    # count first, so that the queries are written into an array of the right size
    events, words = left.shape
    offsets = np.zeros(events + 1, np.int64)
    for e in range(events):
        total = offsets[e]
        for w in range(words):
            total += popcount(left[e, w])
        offsets[e + 1] = total
    queries = np.empty(offsets[events], np.int64)
    used = 0
    for e in range(events):
        for w in range(words):
            word = left[e, w]
            while word != 0:
                queries[used] = owner[(w << 6) + lowest_bit(word)]
                used += 1
                word &= word - np.uint64(1)
    return offsets, queries
