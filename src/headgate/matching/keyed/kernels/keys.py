"""Choose for each condition the rarest literals of which one must hold for it to hold.

A literal is an atom together with the truth value that it should have. `cost[a, t]` is how often
atom a has the truth value t: 0 for never, infinity where nothing can be placed under it. Entries of
a program are those of `snapshot.arrays.trees`.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.keyed.arrays import FALSE, NULL, TRUE


@kernel
def choose_keys(offsets, program, cost):
    """Choose for each query the rarest set of literals of which at least one must hold.

    Return `start`, `atom`, `target`: the literals of query q are those from start[q] to
    start[q + 1]; and `weight[q]`: how often one of them holds, 0 where the query is never TRUE,
    inf where no set is known.
    """
    count = len(offsets) - 1
    longest = 0
    for q in range(count):
        longest = max(longest, offsets[q + 1] - offsets[q])
    # scratch of one program, by its entries
    first = np.empty(longest, np.int64)  # where the subtree that ends there begins
    costs = np.empty((longest, 3))  # of the cheapest key for each truth value of the subtree
    todo = np.empty(4 * longest + 4, np.int64)
    requested = np.empty(longest, np.uint8)
    start = np.zeros(count + 1, np.int64)
    weight = np.empty(count)
    atoms = np.empty(max(16, 2 * count), np.int32)
    targets = np.empty(max(16, 2 * count), np.uint8)
    used = 0
    for q in range(count):
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        if _is_and_of_atoms(program, begin, size):
            # as in most queries: the cheapest atom, if none is never TRUE
            best = program[begin]
            for k in range(begin + 1, begin + size - 1):
                best = program[k] if cost[program[k], TRUE] <= cost[best, TRUE] else best
            weight[q] = cost[best, TRUE]
            if 0.0 < weight[q] < np.inf:
                if used == len(atoms):
                    atoms, targets = _grow(atoms, targets, used, 1)
                atoms[used], targets[used] = best, TRUE
                used += 1
            start[q + 1] = used
            continue
        for i in range(size):
            _node_cost(program, begin, i, first, costs, cost)
        weight[q] = costs[size - 1, TRUE]
        if 0.0 < weight[q] < np.inf:
            # a key has at most three literals for each atom
            if used + size * 3 > len(atoms):
                atoms, targets = _grow(atoms, targets, used, 3 * size)
            used = _collect(
                program, begin, size, first, costs, todo, requested, atoms, targets, used
            )
            # what two truths of a node need of the same part was counted twice, and is collected
            # once: sum again
            weight[q] = 0.0
            for i in range(start[q], used):
                weight[q] += cost[atoms[i], targets[i]]
        start[q + 1] = used
    return start, atoms[:used].copy(), targets[:used].copy(), weight


@kernel
def _is_and_of_atoms(program, begin, size):
    """Return whether a program is an AND of one atom or more, and nothing else."""
    if size < 2 or program[begin + size - 1] != -16 - 2 * (size - 1):
        return False
    has_operator = False
    for k in range(begin, begin + size - 1):
        has_operator |= program[k] < 0
    return not has_operator


@kernel
def _grow(atoms, targets, used, more):
    """Return arrays with the same literals that are twice as long, and longer by as many."""
    room = 2 * len(atoms) + more
    more_atoms, more_targets = np.empty(room, np.int32), np.empty(room, np.uint8)
    more_atoms[:used], more_targets[:used] = atoms[:used], targets[:used]
    return more_atoms, more_targets


@kernel
def _node_cost(program, begin, i, first, costs, cost):
    """Compute the cost of each truth value at entry i from those of its parts before it."""
    entry = program[begin + i]
    if entry >= 0:
        first[i] = i
        for t in range(3):
            costs[i, t] = cost[entry, t]
        return
    if entry == -1:
        first[i] = first[i - 1]
        # NOT swaps TRUE and FALSE, and keeps NULL
        costs[i, FALSE], costs[i, TRUE] = costs[i - 1, TRUE], costs[i - 1, FALSE]
        costs[i, NULL] = costs[i - 1, NULL]
        return
    if entry > -16:
        mask = -8 - entry
        first[i] = first[i - 1]
        # IS [NOT] TRUE and the like: TRUE where the part's value is in the mask, else FALSE
        costs[i, TRUE] = costs[i, FALSE] = costs[i, NULL] = 0.0
        for t in range(3):
            costs[i, (mask >> t) & 1] += costs[i - 1, t]
        return
    arity, is_or = (-16 - entry) // 2, (-16 - entry) % 2
    # The value that wins (TRUE for OR, FALSE for AND) may come from any part: costs add up. The
    # other needs every part, so the cheapest part is key enough. NULL comes from any part that
    # is NULL, and needs every part not to win.
    wins = is_or
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
def _collect(program, begin, size, first, costs, todo, requested, atoms, targets, used):
    """Append the literals of the cheapest set; return their end.

    From the root down: `todo` is a stack of 4 · node + truth. `requested` has by node the truths
    that were requested, so that each is followed once.
    """
    requested[:size] = 0
    depth = _request(size - 1, TRUE, todo, requested, 0)
    while depth > 0:
        depth -= 1
        i, t = todo[depth] >> 2, todo[depth] & 3
        if costs[i, t] == 0.0:  # this never happens, and needs no literal
            continue
        entry = program[begin + i]
        if entry >= 0:
            atoms[used], targets[used] = entry, t
            used += 1
        elif entry == -1:
            # NOT: the opposite of its part, NULL of NULL
            depth = _request(i - 1, t if t == NULL else 1 - t, todo, requested, depth)
        elif entry > -16:
            mask = -8 - entry
            for v in range(3):
                # the values of the part that make it TRUE, or FALSE; it is never NULL
                if (mask >> v) & 1 == t:
                    depth = _request(i - 1, v, todo, requested, depth)
        else:
            depth = _request_parts(entry, i, t, first, costs, todo, requested, depth)
    return used


@kernel
def _request(node, truth, todo, requested, depth):
    """Put a node on the stack, unless this truth was requested of it already."""
    if requested[node] >> truth & 1:
        return depth
    requested[node] |= 1 << truth
    todo[depth] = 4 * node + truth
    return depth + 1


@kernel
def _request_parts(entry, i, t, first, costs, todo, requested, depth):
    """Put the parts of an AND or OR on the stack that make up its cheapest key for a truth."""
    # the cheapest part, by the costs of `_node_cost`
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
            depth = _request(child, t, todo, requested, depth)
            child = first[child] - 1
        return depth
    depth = _request(best_child, loses, todo, requested, depth)
    if t == NULL:
        depth = _request(best_child, NULL, todo, requested, depth)
    return depth


@kernel
def find_deciding(offsets, program):
    """Return, by entry, whether it ends a part of an AND that is the whole condition.

    If such a part is not TRUE, neither is the condition.
    """
    is_deciding = np.zeros(len(program), np.bool_)
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    first = np.empty(longest, np.int64)  # by entry: where what it ends begins
    for q in range(len(offsets) - 1):
        begin, size = offsets[q], offsets[q + 1] - offsets[q]
        for i in range(size):
            entry = program[begin + i]
            # an atom is a subtree by itself, as is an AND of nothing; others begin where their
            # first part does
            parts = 0 if entry >= 0 else (-16 - entry) // 2 if entry <= -16 else 1
            first[i] = i
            for _ in range(parts):
                first[i] = first[first[i] - 1]
        root = program[offsets[q + 1] - 1] if size else 0
        # the whole is an AND: step back over its parts, each of which decides
        if root <= -16 and root % 2 == 0:
            child = size - 2
            for _ in range((-16 - root) // 2):
                is_deciding[begin + child] = True
                child = first[child] - 1
    return is_deciding
