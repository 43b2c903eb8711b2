"""Find the nodes under which each query is placed."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.keyed.arrays import NULL, TRUE
from headgate.snapshot.arrays.atoms import IS_NULL, MATCHES, WITHIN


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
