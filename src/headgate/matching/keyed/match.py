"""The inner loop: events against clusters."""

from __future__ import annotations

import numpy as np

from headgate.encoding.atoms import COMPARE, CONSTANT, MATCHES, WITHIN
from headgate.matching.keyed.arrays import NULL, TRUE
from headgate.matching.keyed.bits import put_in_order
from headgate.matching.keyed.compiled import kernel
from headgate.matching.keyed.leaves import match_leaf


@kernel
def match(
    conditions, clusters, leaves, events, begin, alive, stamp, seen, stack, bitmap, out, offsets
):
    """Match events from `begin` on until `out` might not hold the next one; how far it got.

    `offsets[e - begin]` is where the matches of event e begin. `stamp` is by pattern slot, `seen`
    by query: the number of the last event that it stands for, plus one.
    """
    used = 0
    count = len(seen)
    rows = np.empty(events.codes.shape[1], np.int64)
    span = np.empty(2, np.int64)
    met = np.empty(_most_met(clusters), np.int64)
    e = begin
    while e < len(events.codes):
        if len(out) - used < count:
            break
        offsets[e - begin] = used
        now = e + 1
        span[0], span[1] = len(bitmap), -1
        codes = events.codes[e]
        present = _present(codes)
        _stamp_patterns(events, e, codes, stamp, now)
        for i in range(_clusters_met(conditions, clusters, events, e, codes, met)):
            used = _visit(
                conditions,
                clusters,
                leaves,
                events,
                e,
                codes,
                present,
                met[i],
                stamp,
                seen,
                now,
                stack,
                rows,
                bitmap,
                span,
                out,
                used,
            )
        for q in clusters.unkeyed:
            if _program_holds(conditions, events.bits[e], q, codes, stamp, now, stack):
                out[used] = q
                used += 1
        used = put_in_order(out, offsets[e - begin], used, bitmap, span, alive)
        e += 1
    offsets[e - begin] = used
    return e


@kernel
def _present(codes):
    """The columns that are not NULL, as bits; of 64 columns and more some share one."""
    present = np.uint64(0)
    for c in range(len(codes)):
        if codes[c] != 0:
            present |= np.uint64(1) << np.uint64(c & 63)
    return present


@kernel
def _most_met(clusters):
    """How many clusters an event can lead to at most."""
    most = 2 * len(clusters.plain_cluster) + len(clusters.compared)
    for width in clusters.width:
        node = width
        while node >= 1:
            most += 1
            node >>= 1
    return most


@kernel
def _clusters_met(conditions, clusters, events, e, codes, met):
    """The clusters that an event's codes, texts and comparisons lead to; gives their number."""
    count = 0
    for c in range(len(codes)):
        if codes[c] == 0 and not clusters.null_keyed[c]:
            continue
        node = clusters.width[c] + codes[c]
        while node >= 1:
            cluster = clusters.cluster_of[clusters.node_base[c] + node]
            if cluster >= 0:
                met[count] = cluster
                count += 1
            node >>= 1
    for p in range(events.ranks.shape[1]):
        if codes[events.pattern_column[p]] != 0:
            text = events.first_text[p] + events.ranks[e, p]
            for i in range(events.matched_start[text], events.matched_start[text + 1]):
                slot = events.matched[i]
                for cluster in (clusters.plain_cluster[slot], clusters.negated_cluster[slot]):
                    if cluster >= 0:
                        met[count] = cluster
                        count += 1
    for atom in clusters.compared:
        truth = events.bits[e, conditions.slot[atom]]
        cluster = clusters.cluster_of[clusters.bit_base + 3 * atom + truth]
        if cluster >= 0:
            met[count] = cluster
            count += 1
    return count


@kernel
def _stamp_patterns(events, e, codes, stamp, now):
    for p in range(events.ranks.shape[1]):
        if codes[events.pattern_column[p]] != 0:
            text = events.first_text[p] + events.ranks[e, p]
            for i in range(events.matched_start[text], events.matched_start[text + 1]):
                stamp[events.matched[i]] = now


@kernel
def _visit(
    conditions,
    clusters,
    leaves,
    events,
    e,
    codes,
    present,
    cluster,
    stamp,
    seen,
    now,
    stack,
    rows,
    bitmap,
    span,
    out,
    used,
):
    start = clusters.start[cluster]
    leaf, size = leaves.of_cluster[cluster], leaves.size[cluster]
    if leaf >= 0:
        queries = clusters.query[start : start + size]
        match_leaf(leaves, leaf, queries, size, codes, rows, bitmap, span)
    for i in range(start + size, clusters.start[cluster + 1]):
        if clusters.mask[i] & ~present:
            continue
        q = clusters.query[i]
        if clusters.whole[i]:
            holds = True
            for k in range(clusters.row[i], clusters.row[i + 1]):
                code = codes[clusters.column[k]]
                if code < clusters.low[k] or code > clusters.high[k]:
                    holds = False
                    break
            if not holds:
                continue
        if clusters.repeated[q]:
            if seen[q] == now:
                continue
            seen[q] = now
        if clusters.whole[i] or _program_holds(
            conditions, events.bits[e], q, codes, stamp, now, stack
        ):
            out[used] = q
            used += 1
    return used


@kernel
def _program_holds(conditions, bits, q, codes, stamp, now, stack):
    """The truth of a condition for one event: a stack machine over the program."""
    depth = 0
    for i in range(conditions.offsets[q], conditions.offsets[q + 1]):
        entry = conditions.program[i]
        if entry >= 0:
            stack[depth] = _atom(conditions, bits, entry, codes, stamp, now)
            depth += 1
        elif entry == -1:
            if stack[depth - 1] != NULL:
                stack[depth - 1] = 1 - stack[depth - 1]
        elif entry > -16:
            stack[depth - 1] = ((-8 - entry) >> stack[depth - 1]) & 1
        else:
            arity, wins = (-16 - entry) // 2, (-16 - entry) % 2
            result = 1 - wins
            for k in range(depth - arity, depth):
                if stack[k] == wins:
                    result = wins
                    break
                if stack[k] == NULL:
                    result = NULL
            depth -= arity - 1
            stack[depth - 1] = result
    return stack[0] == TRUE


@kernel
def _atom(conditions, bits, atom, codes, stamp, now):
    what = conditions.kind[atom]
    if what in (COMPARE, CONSTANT):
        return np.int64(bits[conditions.slot[atom]])
    code = codes[conditions.column[atom]]
    if what == MATCHES:
        if code == 0:
            return np.int64(NULL)
        return np.int64((stamp[conditions.slot[atom]] == now) != (conditions.negated[atom] == 1))
    if what == WITHIN and code == 0:
        return np.int64(NULL)
    left, right = conditions.starts[atom], conditions.starts[atom + 1]
    while left < right:  # the first interval that does not end before the code
        middle = (left + right) >> 1
        if conditions.high[middle] < code:
            left = middle + 1
        else:
            right = middle
    return np.int64(left < conditions.starts[atom + 1] and conditions.low[left] <= code)
