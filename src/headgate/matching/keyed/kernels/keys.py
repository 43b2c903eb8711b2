"""The literals of which at least one must hold for a condition to hold, and which are rarest.

A literal is an atom together with the truth value that it should have. `cost[a, t]` is how often
atom a has the truth value t: 0 for never, infinity where nothing can be filed under it.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.keyed.arrays import FALSE, NULL, TRUE


@kernel
def choose_keys(offsets, program, cost):
    """For each query the literals of which at least one must hold, the rarest such set.

    Gives `start`, `atom`, `target`: the literals of query q are those from start[q] to
    start[q + 1]; and `weight[q]`: how often one of them holds, 0 where the query is never TRUE,
    inf where no set is known.
    """
    count = len(offsets) - 1
    longest = 0
    for q in range(count):
        longest = max(longest, offsets[q + 1] - offsets[q])
    first = np.empty(longest, np.int64)
    costs = np.empty((longest, 3))
    todo = np.empty(4 * longest + 4, np.int64)
    asked = np.empty(longest, np.uint8)
    start = np.zeros(count + 1, np.int64)
    weight = np.empty(count)
    atoms = np.empty(max(16, 2 * count), np.int32)
    targets = np.empty(max(16, 2 * count), np.uint8)
    used = 0
    for q in range(count):
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        for i in range(size):
            _node_cost(program, begin, i, first, costs, cost)
        weight[q] = costs[size - 1, TRUE]
        if 0.0 < weight[q] < np.inf:
            if used + size * 3 > len(atoms):
                room = 2 * len(atoms) + 3 * size
                more_atoms, more_targets = np.empty(room, np.int32), np.empty(room, np.uint8)
                more_atoms[:used], more_targets[:used] = atoms[:used], targets[:used]
                atoms, targets = more_atoms, more_targets
            used = _collect(program, begin, size, first, costs, todo, asked, atoms, targets, used)
            weight[q] = 0.0
            for i in range(start[q], used):
                weight[q] += cost[atoms[i], targets[i]]
        start[q + 1] = used
    return start, atoms[:used].copy(), targets[:used].copy(), weight


@kernel
def _node_cost(program, begin, i, first, costs, cost):
    entry = program[begin + i]
    if entry >= 0:
        first[i] = i
        for t in range(3):
            costs[i, t] = cost[entry, t]
        return
    if entry == -1:
        first[i] = first[i - 1]
        costs[i, FALSE], costs[i, TRUE] = costs[i - 1, TRUE], costs[i - 1, FALSE]
        costs[i, NULL] = costs[i - 1, NULL]
        return
    if entry > -16:
        mask = -8 - entry
        first[i] = first[i - 1]
        costs[i, TRUE] = costs[i, FALSE] = costs[i, NULL] = 0.0
        for t in range(3):
            costs[i, (mask >> t) & 1] += costs[i - 1, t]
        return
    arity, is_or = (-16 - entry) // 2, (-16 - entry) % 2
    wins = is_or  # the value that decides alone: TRUE for OR, FALSE for AND
    loses = 1 - wins
    any_wins, any_null, best_loses, best_weak = 0.0, 0.0, np.inf, np.inf
    child = i - 1
    for _ in range(arity):
        any_wins += costs[child, wins]
        any_null += costs[child, NULL]
        best_loses = min(best_loses, costs[child, loses])
        best_weak = min(best_weak, costs[child, loses] + costs[child, NULL])
        child = first[child] - 1
    first[i] = child + 1
    costs[i, wins] = any_wins
    costs[i, loses] = best_loses
    costs[i, NULL] = min(any_null, best_weak)


@kernel
def _collect(program, begin, size, first, costs, todo, asked, atoms, targets, used):
    """The literals of the cheapest set, from the root down; `todo` holds 4 · node + truth.

    `asked` remembers by node which truths were asked of it, so that each is asked for once.
    """
    asked[:size] = 0
    depth = _ask(size - 1, TRUE, todo, asked, 0)
    while depth > 0:
        depth -= 1
        i, t = todo[depth] >> 2, todo[depth] & 3
        if costs[i, t] == 0.0:
            continue
        entry = program[begin + i]
        if entry >= 0:
            atoms[used], targets[used] = entry, t
            used += 1
        elif entry == -1:
            depth = _ask(i - 1, t if t == NULL else 1 - t, todo, asked, depth)
        elif entry > -16:
            mask = -8 - entry
            for v in range(3):
                if (mask >> v) & 1 == t:
                    depth = _ask(i - 1, v, todo, asked, depth)
        else:
            depth = _ask_parts(entry, i, t, first, costs, todo, asked, depth)
    return used


@kernel
def _ask(node, truth, todo, asked, depth):
    """Put a node on the list, unless this truth was asked of it already."""
    if asked[node] >> truth & 1:
        return depth
    asked[node] |= 1 << truth
    todo[depth] = 4 * node + truth
    return depth + 1


@kernel
def _ask_parts(entry, i, t, first, costs, todo, asked, depth):
    arity, wins = (-16 - entry) // 2, (-16 - entry) % 2
    loses = 1 - wins
    best, best_child, any_null = np.inf, i - 1, 0.0
    child = i - 1
    for _ in range(arity):
        weight = costs[child, loses] + (costs[child, NULL] if t == NULL else 0.0)
        any_null += costs[child, NULL]
        if weight < best:
            best, best_child = weight, child
        child = first[child] - 1
    if t == wins or (t == NULL and any_null <= best):
        child = i - 1
        for _ in range(arity):
            depth = _ask(child, t, todo, asked, depth)
            child = first[child] - 1
        return depth
    depth = _ask(best_child, loses, todo, asked, depth)
    if t == NULL:
        depth = _ask(best_child, NULL, todo, asked, depth)
    return depth


@kernel
def deciding(offsets, program):
    """By entry: is it the end of a part of an AND that is the whole condition?

    Where such a part is not TRUE, the condition is not either.
    """
    found = np.zeros(len(program), np.bool_)
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    first = np.empty(longest, np.int64)  # by entry: where what it ends begins
    for q in range(len(offsets) - 1):
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        for i in range(size):
            entry = program[begin + i]
            first[i] = i if entry >= 0 else first[i - 1]
            if entry <= -16:
                child = i - 1
                for _ in range((-16 - entry) // 2):
                    first[i] = first[child]
                    child = first[child] - 1
        root = program[offsets[q + 1] - 1] if size else 0
        if root <= -16 and root % 2 == 0:
            child = size - 2
            for _ in range((-16 - root) // 2):
                found[begin + child] = True
                child = first[child] - 1
    return found
