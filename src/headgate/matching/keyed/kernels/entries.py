"""Find the nodes under which each query is placed, and what is left to check there."""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel
from headgate.matching.keyed.arrays import NULL, TRUE
from headgate.matching.keyed.kernels.records import MASK_BITS, PROGRAM, PROGRAM_ONCE
from headgate.snapshot.arrays.atoms import IS_NULL, MATCHES, WITHIN

MAX_ROW_INTERVALS = 8  # of a condition; one with more is evaluated by its program


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
    """Return the nodes under which each query is placed, one entry for each node of each literal.

    An interval of codes is covered by the fewest dyadic nodes, as in a segment tree. The entries
    are returned as node, query, and the literal that they come from.
    """
    # how many nodes there will be is not known, so the arrays double
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
            # an interval needs fewer than 64 nodes, two for each level; FALSE has one more piece
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
            # a literal that is no set of codes has a node of its own
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
            else:  # FALSE: the gaps between the intervals; NULL is one of them for IS NULL only
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
    # from the leaves up: a node that is a right child on the left, or a left one on the right,
    # has a parent that reaches out of the interval
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
def fill_rows(conditions, queries, key_atom, pure, repeated):
    """Return what is left to check of each entry: a row of intervals, and what decides then.

    Intervals are the conditions on one column that the whole is an AND of. A set of intervals is
    written as the interval from the first to the last, without the gaps between: the column c of a
    gap is −1 − c. The literal that an entry is placed under (`key_atom`, or −1 if there are more)
    holds wherever it is met, and is left out. A query that is `pure` intervals needs no program;
    one that is `repeated` may be met more than once for an event.
    """
    longest = np.zeros(len(pure), np.int64)  # the row of each query, with its literal
    for q in range(len(pure)):
        for k in range(conditions.offsets[q], conditions.offsets[q + 1]):
            if _in_row(conditions, q, k):
                atom = conditions.program[k]
                longest[q] += conditions.starts[atom + 1] - conditions.starts[atom]
    # the longest rows that can occur, so that the arrays are allocated once
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
        if not pure[q]:
            then[i] = PROGRAM_ONCE if repeated[q] else PROGRAM
        for k in range(conditions.offsets[q], conditions.offsets[q + 1]):
            if _in_row(conditions, q, k) and conditions.program[k] != key_atom[i]:
                atom = conditions.program[k]
                # code 0 is NULL: without it the column must be present
                if conditions.low[conditions.starts[atom]] > 0:
                    mask[i] |= np.int64(1) << (conditions.column[atom] % MASK_BITS)
                used = row_of_atom(conditions, atom, column, low, high, used)
        row[i + 1] = used
    return mask, row, then, column[:used].copy(), low[:used].copy(), high[:used].copy()


@inlined_kernel
def _in_row(conditions, q, k):
    """Return whether an entry of a program must hold and is a few intervals of codes."""
    whole = conditions.offsets[q + 1] - conditions.offsets[q] == 1
    return (whole or conditions.deciding[k]) and _is_few(conditions, conditions.program[k])


@inlined_kernel
def _is_few(conditions, atom):
    """Return whether an entry is an atom that holds in a few intervals of codes."""
    if atom < 0 or (conditions.kind[atom] != WITHIN and conditions.kind[atom] != IS_NULL):
        return False
    return 1 <= conditions.starts[atom + 1] - conditions.starts[atom] <= MAX_ROW_INTERVALS


@inlined_kernel
def row_of_atom(conditions, atom, column, low, high, used):
    """Append the interval of an atom and the gaps in it; return where they end."""
    first, last = conditions.starts[atom], conditions.starts[atom + 1] - 1
    c = conditions.column[atom]
    # from the first interval's begin to the last one's end, then the gap behind each but the last
    column[used], low[used], high[used] = c, conditions.low[first], conditions.high[last]
    for i in range(first, last):
        used += 1
        column[used], low[used] = -1 - c, conditions.high[i] + 1
        high[used] = conditions.low[i + 1] - 1
    return used + 1


@kernel
def find_pure_rows(conditions):
    """Return, by query, whether it is an AND of conditions of a few intervals of codes each."""
    is_pure = np.zeros(len(conditions.offsets) - 1, np.bool_)
    for q in range(len(is_pure)):
        begin, end = conditions.offsets[q], conditions.offsets[q + 1]
        is_pure[q] = end > begin
        # the last entry of a longer program is its AND
        for k in range(begin, end - 1 if end - begin > 1 else end):
            is_pure[q] = is_pure[q] and _in_row(conditions, q, k)
    return is_pure
