"""From the key of each query to the nodes where it is filed, and what is left to check there."""

from __future__ import annotations

import numpy as np

from headgate.encoding.atoms import IS_NULL, MATCHES, WITHIN
from headgate.matching.keyed.arrays import NULL, TRUE
from headgate.matching.keyed.compiled import kernel
from headgate.matching.keyed.records import BY_PROGRAM, BY_PROGRAM_ONCE, MASKED


@kernel
def key_entries(
    key_start,
    key_atom,
    key_target,
    kind,
    column,
    starts,
    low,
    high,
    greatest,
    node_base,
    width,
    bit_base,
):
    """The nodes under which each query is filed, one entry for each node of each literal.

    An interval of codes is covered by the fewest dyadic nodes, as in a segment tree. The entries
    are given as node, query, and the literal that they come from.
    """
    room = max(16, 2 * len(key_atom))
    nodes, queries, literals = (
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
    )
    used = 0
    for q in range(len(key_start) - 1):
        for k in range(key_start[q], key_start[q + 1]):
            atom, target = key_atom[k], key_target[k]
            pieces = starts[atom + 1] - starts[atom] + 1
            if used + 64 * pieces > len(nodes):
                room = 2 * len(nodes) + 64 * pieces
                more = np.empty(room, np.int64)
                more[:used] = nodes[:used]
                nodes = more
                more_queries = np.empty(room, np.int32)
                more_queries[:used] = queries[:used]
                queries = more_queries
                more = np.empty(room, np.int64)
                more[:used] = literals[:used]
                literals = more
            if (
                kind[atom] != WITHIN
                and kind[atom] != IS_NULL
                and not (kind[atom] == MATCHES and target == NULL)
            ):
                nodes[used], queries[used], literals[used] = bit_base + 3 * atom + target, q, k
                used += 1
                continue
            c = column[atom]
            before = used
            if target == TRUE:
                for i in range(starts[atom], starts[atom + 1]):
                    used = _cover(low[i], high[i], node_base[c], width[c], nodes, used)
            elif target == NULL:
                used = _cover(0, 0, node_base[c], width[c], nodes, used)
            else:
                edge = 0 if kind[atom] == IS_NULL else 1
                for i in range(starts[atom], starts[atom + 1]):
                    used = _cover(edge, low[i] - 1, node_base[c], width[c], nodes, used)
                    edge = high[i] + 1
                used = _cover(edge, greatest[c], node_base[c], width[c], nodes, used)
            for i in range(before, used):
                queries[i], literals[i] = q, k
    return nodes[:used].copy(), queries[:used].copy(), literals[:used].copy()


@kernel
def _cover(low, high, base, width, nodes, used):
    left, right = low + width, high + 1 + width
    while left < right:
        if left & 1:
            nodes[used] = base + left
            used += 1
            left += 1
        if right & 1:
            right -= 1
            nodes[used] = base + right
            used += 1
        left >>= 1
        right >>= 1
    return used


@kernel
def rows(conditions, queries, key_atom, alone, repeated):
    """What is left to check of each entry: a row of intervals where the query is `alone` such.

    The literal that it is filed under holds wherever it is met, and is left out. `how` is 0, or
    says that the program decides, and whether the query may be met more than once for an event.
    """
    count = len(queries)
    mask = np.zeros(count, np.int64)
    row = np.zeros(count + 1, np.int64)
    how = np.zeros(count, np.int32)
    total = 0
    for i in range(count):
        q = queries[i]
        if alone[q]:
            total += conditions.offsets[q + 1] - conditions.offsets[q]
        else:
            how[i] = BY_PROGRAM_ONCE if repeated[q] else BY_PROGRAM
    column = np.empty(total, np.int32)
    low, high = np.empty(total, np.int32), np.empty(total, np.int32)
    used = 0
    for i in range(count):
        q = queries[i]
        if alone[q]:
            for k in range(conditions.offsets[q], conditions.offsets[q + 1]):
                atom = conditions.program[k]
                if atom >= 0 and atom != key_atom[i]:
                    c, first = conditions.column[atom], conditions.starts[atom]
                    column[used] = c
                    low[used], high[used] = conditions.low[first], conditions.high[first]
                    if low[used] > 0:
                        mask[i] |= np.int64(1) << (c % MASKED)
                    used += 1
        row[i + 1] = used
    return mask, row, how, column[:used].copy(), low[:used].copy(), high[:used].copy()


@kernel
def rows_alone(conditions):
    """By query: is it the AND of conditions that are one interval of codes each?"""
    found = np.zeros(len(conditions.offsets) - 1, np.bool_)
    for q in range(len(found)):
        found[q] = _is_row(conditions, conditions.offsets[q], conditions.offsets[q + 1])
    return found


@kernel
def _is_row(conditions, begin, end):
    """Is a condition the AND of conditions that are one interval of codes each?"""
    atoms = 0
    for k in range(begin, end):
        entry = conditions.program[k]
        if entry >= 0:
            if conditions.kind[entry] != WITHIN and conditions.kind[entry] != IS_NULL:
                return False
            if conditions.starts[entry + 1] - conditions.starts[entry] != 1:
                return False
            atoms += 1
        elif entry > -16 or entry % 2 != 0:
            return False
    return atoms > 0
