"""From the key of each query to the nodes where it is filed, and what is left to check there."""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel
from headgate.matching.keyed.arrays import NULL, TRUE
from headgate.matching.keyed.kernels.records import MASKED, PROGRAM, PROGRAM_ONCE
from headgate.snapshot.arrays.atoms import IS_NULL, MATCHES, WITHIN

FEW_INTERVALS = 8  # of a condition in a row; one of more is looked up in its program


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
    """What is left to check of each entry: a row of intervals that must hold, and then the program.

    Intervals are the conditions on one column that the whole is an AND of. One of several intervals
    is the interval from the first to the last of them without the gaps between: the column c of a
    gap is written as −1 − c. The literal that an entry is filed under (`key_atom`, or −1 where
    there are several) holds wherever it is met, and is left out. What is `alone` such intervals
    needs no program; what is `repeated` may be met more than once for an event.
    """
    longest = np.zeros(len(alone), np.int64)  # a row, before its literal is left out
    for q in range(len(alone)):
        for k in range(conditions.offsets[q], conditions.offsets[q + 1]):
            if _in_row(conditions, q, k):
                atom = conditions.program[k]
                longest[q] += conditions.starts[atom + 1] - conditions.starts[atom]
    count, room = len(queries), 0
    for q in queries:
        room += longest[q]
    column, low, high = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    mask = np.zeros(count, np.int64)
    row = np.zeros(count + 1, np.int64)
    then = np.zeros(count, np.int32)
    used = 0
    for i in range(count):
        q = queries[i]
        if not alone[q]:
            then[i] = PROGRAM_ONCE if repeated[q] else PROGRAM
        for k in range(conditions.offsets[q], conditions.offsets[q + 1]):
            if _in_row(conditions, q, k) and conditions.program[k] != key_atom[i]:
                atom = conditions.program[k]
                if conditions.low[conditions.starts[atom]] > 0:
                    mask[i] |= np.int64(1) << (conditions.column[atom] % MASKED)
                used = row_of_atom(conditions, atom, column, low, high, used)
        row[i + 1] = used
    return mask, row, then, column[:used].copy(), low[:used].copy(), high[:used].copy()


@inlined_kernel
def _in_row(conditions, q, k):
    """Is an entry of a program a condition that must hold, and that is a few intervals of codes?"""
    whole = conditions.offsets[q + 1] - conditions.offsets[q] == 1
    return (whole or conditions.deciding[k]) and _is_few(conditions, conditions.program[k])


@inlined_kernel
def _is_few(conditions, atom):
    if atom < 0 or (conditions.kind[atom] != WITHIN and conditions.kind[atom] != IS_NULL):
        return False
    return 1 <= conditions.starts[atom + 1] - conditions.starts[atom] <= FEW_INTERVALS


@inlined_kernel
def row_of_atom(conditions, atom, column, low, high, used):
    """Append the interval of an atom and the gaps in it; gives where they end."""
    first, last = conditions.starts[atom], conditions.starts[atom + 1] - 1
    c = conditions.column[atom]
    column[used], low[used], high[used] = c, conditions.low[first], conditions.high[last]
    for i in range(first, last):
        used += 1
        column[used], low[used] = -1 - c, conditions.high[i] + 1
        high[used] = conditions.low[i + 1] - 1
    return used + 1


@kernel
def rows_alone(conditions):
    """By query: is it the AND of conditions that are a few intervals of codes each?"""
    found = np.zeros(len(conditions.offsets) - 1, np.bool_)
    for q in range(len(found)):
        begin, end = conditions.offsets[q], conditions.offsets[q + 1]
        found[q] = end > begin
        for k in range(begin, end - 1 if end - begin > 1 else end):
            found[q] = found[q] and _in_row(conditions, q, k)
    return found
