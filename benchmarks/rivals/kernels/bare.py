"""The kernels of the rival `bare`: lay out clusters, and match events against them.

A cluster is described by eight words, one cache line:

    SIZE      queries in it
    KIND      0 for rows, else the attributes of its bitmap
    BEGIN     where its rows or its bits begin
    END       where its rows end
    OWN       where the attributes of its bitmap are
    MEMBERS   where the queries of its bitmap are

A row has a mask of attributes, the query, the numbers of the row, and a number for each interval. A
bitmap has, for each attribute, a row of bits for each value and one for its absence.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import (
    copy_lanes,
    inlined_kernel,
    kernel,
    load_unchecked,
    lowest_bit,
    plain_kernel,
    prefetch,
    store_unchecked,
)

WORDS = 8
SIZE, KIND, BEGIN, END, OWN, MEMBERS = range(6)
HEAD = 3
ALL_BITS = ~np.uint64(0)


@kernel
def place(offsets, attribute, low, high, cost, span):
    """Place each query at the dyadic nodes of its cheapest interval; return node, query, interval.

    A node is `2 · span · attribute + n`, with n as in a heap over the values.
    """
    # an interval over up to 64 values has at most two nodes on each of six levels, and a larger one
    # on eight
    room = 2 * 8 * (len(offsets) - 1)
    node, query, key = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)
    used = 0
    for q in range(len(offsets) - 1):
        best = offsets[q]
        for k in range(offsets[q], offsets[q + 1]):
            if cost[k] < cost[best]:
                best = k
        left, right = low[best] + span, high[best] + 1 + span
        base = 2 * span * np.int64(attribute[best])
        while left < right:
            if left & 1:
                node[used], query[used], key[used] = base + left, q, best
                used += 1
                left += 1
            if right & 1:
                right -= 1
                node[used], query[used], key[used] = base + right, q, best
                used += 1
            left >>= 1
            right >>= 1
    return node[:used].copy(), query[:used].copy(), key[:used].copy()


@kernel
def lay_out(start, query, key, offsets, attribute, low, high, values, attributes):
    """Return descriptions, bits, the attributes of bitmaps, their members, and rows."""
    # first the sizes of all parts, then what is in them
    clusters = len(start) - 1
    descriptions = np.zeros((clusters, WORDS), np.int64)
    met, place_of = np.full(attributes, -1, np.int64), np.empty(attributes, np.int64)
    bits_used, own_used, members_used, rows_used = 0, 0, 0, 0
    for c in range(clusters):
        n, own, intervals = start[c + 1] - start[c], 0, 0
        for i in range(start[c], start[c + 1]):
            for k in range(offsets[query[i]], offsets[query[i] + 1]):
                if k != key[i]:
                    intervals += 1
                    own += met[attribute[k]] != c
                    met[attribute[k]] = c
        words = (n + 63) >> 6
        description = descriptions[c]
        description[SIZE] = n
        # a bitmap where that takes fewer steps than rows, and is at most ten times as large
        size = own * (values + 1) * words
        rows = HEAD * n + intervals
        if own and own * (2 + n / 128) < 5 * n and 8 * size <= 10 * 4 * rows:
            description[KIND], description[BEGIN] = own, bits_used
            description[OWN], description[MEMBERS] = own_used, members_used
            bits_used += size
            own_used += own
            members_used += n
        else:
            description[BEGIN], description[END] = rows_used, rows_used + rows
            rows_used += rows
    bits, owns = np.full(bits_used + 3, ALL_BITS), np.empty(own_used, np.int32)
    members, rows = np.empty(members_used, np.int32), np.empty(rows_used, np.int32)
    met[:] = -1
    for c in range(clusters):
        part = descriptions[c], start[c], start[c + 1], query, key, offsets, attribute, low, high
        if descriptions[c, KIND]:
            _fill_bits(*part, values, c, met, place_of, bits, owns, members)
        else:
            _fill_rows(*part, rows)
    return descriptions.ravel(), bits, owns, members, rows


@kernel
def _fill_rows(description, begin, end, query, key, offsets, attribute, low, high, rows):
    # the mask is signed, since 32 bits of it are in an array of int32
    at = description[BEGIN]
    for i in range(begin, end):
        head, mask = at, np.int64(0)
        at += HEAD
        for k in range(offsets[query[i]], offsets[query[i] + 1]):
            if k != key[i]:
                a = np.int64(attribute[k])
                mask |= np.int64(1) << (a & 31)
                rows[at] = np.int32(a << 16 | low[k] << 8 | high[k])
                at += 1
        rows[head] = np.int32((mask ^ (1 << 31)) - (1 << 31))
        rows[head + 1], rows[head + 2] = query[i], at - head


@kernel
def _fill_bits(
    description,
    begin,
    end,
    query,
    key,
    offsets,
    attribute,
    low,
    high,
    values,
    c,
    met,
    place_of,
    bits,
    owns,
    members,
):
    # all bits are set; a query clears its own in the rows of values that it refuses, and of absence
    words, own = (description[SIZE] + 63) >> 6, 0
    for i in range(begin, end):
        entry = i - begin
        members[description[MEMBERS] + entry] = query[i]
        for k in range(offsets[query[i]], offsets[query[i] + 1]):
            if k == key[i]:
                continue
            a = attribute[k]
            if met[a] != c:
                met[a] = c
                place_of[a] = own
                owns[description[OWN] + own] = a
                own += 1
            first = description[BEGIN] + place_of[a] * (values + 1) * words + (entry >> 6)
            bit = ~(np.uint64(1) << np.uint64(entry & 63))
            for value in range(values + 1):
                if not low[k] <= value <= high[k]:
                    bits[first + value * words] &= bit


@plain_kernel
def match(
    start,
    column,
    code,
    levels,
    is_cluster,
    cluster_of,
    descriptions,
    bits,
    owns,
    members,
    rows,
    span,
    values,
    val,
    met,
    places,
    out,
    offsets,
):
    """Match all events; return the number of matches, those of event e from `offsets[e]` on.

    `val` is by attribute the value of the event, or `values` where it is absent.
    """
    used = np.int64(0)
    offsets[0] = 0
    for e in range(len(start) - 1):
        # the clusters at the nodes of each value, whose descriptions begin to be loaded
        present, count, needed = np.int64(0), 0, 0
        for i in range(start[e], start[e + 1]):
            a, v = np.int64(load_unchecked(column, i)), np.int64(load_unchecked(code, i))
            store_unchecked(val, a, v)
            present |= np.int64(1) << (a & 31)
            remaining, leaf, base = load_unchecked(levels, a), v + span, 2 * span * a
            while remaining != 0:
                node = base + (leaf >> lowest_bit(remaining))
                remaining &= remaining - np.uint64(1)
                bit = np.uint64(node & 63)
                if load_unchecked(is_cluster, node >> 6) >> bit & np.uint64(1) != 0:
                    c = np.int64(load_unchecked(cluster_of, node)) * WORDS
                    store_unchecked(met, count, c)
                    prefetch(descriptions, c)
                    count += 1
        # what they describe is loaded next, and then matched
        absent = ~present & 0xFFFFFFFF
        for i in range(count):
            c = load_unchecked(met, i)
            needed += load_unchecked(descriptions, c + SIZE)
            begin = load_unchecked(descriptions, c + BEGIN)
            if load_unchecked(descriptions, c + KIND) == 0:
                prefetch(rows, begin)
                prefetch(rows, begin + 16)
            else:
                prefetch(owns, load_unchecked(descriptions, c + OWN))
                prefetch(members, load_unchecked(descriptions, c + MEMBERS))
        if used + needed > len(out):
            return -1
        for i in range(count):
            c = load_unchecked(met, i)
            own, begin = (
                load_unchecked(descriptions, c + KIND),
                load_unchecked(descriptions, c + BEGIN),
            )
            if own == 0:
                end = load_unchecked(descriptions, c + END)
                used = _match_rows(rows, begin, end, absent, val, out, used)
            else:
                used = _match_bits(
                    load_unchecked(descriptions, c + SIZE),
                    own,
                    begin,
                    load_unchecked(descriptions, c + OWN),
                    load_unchecked(descriptions, c + MEMBERS),
                    bits,
                    owns,
                    members,
                    values,
                    val,
                    places,
                    out,
                    used,
                )
        for i in range(start[e], start[e + 1]):
            store_unchecked(val, np.int64(load_unchecked(column, i)), values)
        offsets[e + 1] = used
    return used


@inlined_kernel
def _match_rows(rows, row, end, absent, val, out, used):
    while row < end:
        behind = row + np.int64(load_unchecked(rows, row + 2))
        # the mask first, then interval by interval
        if np.int64(load_unchecked(rows, row)) & absent == 0:
            at, holds = row + HEAD, True
            while at < behind:
                short = np.int64(load_unchecked(rows, at))
                v = np.int64(load_unchecked(val, short >> 16))
                if v < short >> 8 & 255 or v > short & 255:
                    holds = False
                    break
                at += 1
            if holds:
                store_unchecked(out, used, load_unchecked(rows, row + 1))
                used += 1
        row = behind
    return used


@inlined_kernel
def _match_bits(
    size, own, begin, own_at, member, bits, owns, members, values, val, places, out, used
):
    # where the row of bits of each attribute begins, for the event's value
    words = (size + 63) >> 6
    for k in range(own):
        v = np.int64(load_unchecked(val, np.int64(load_unchecked(owns, own_at + k))))
        at = begin + v * words
        prefetch(bits, at)
        store_unchecked(places, k, at)
        begin += (values + 1) * words
    last = ALL_BITS
    if size & 63:
        last = (np.uint64(1) << np.uint64(size & 63)) - np.uint64(1)
    # four words at a time, in registers
    w = np.int64(0)
    while w + 1 < words:
        x0 = x1 = x2 = x3 = ALL_BITS
        for k in range(own):
            at = load_unchecked(places, k) + w
            x0 &= load_unchecked(bits, at)
            x1 &= load_unchecked(bits, at + 1)
            x2 &= load_unchecked(bits, at + 2)
            x3 &= load_unchecked(bits, at + 3)
            if (x0 | x1 | x2 | x3) == 0:
                break
        left = words - w
        if left <= 4:
            if left == 4:
                x3 &= last
            elif left == 3:
                x2 &= last
                x3 = np.uint64(0)
            else:
                x1 &= last
                x2 = x3 = np.uint64(0)
        at = member + (w << 6)
        used = _append(x0, members, at, out, used)
        used = _append(x1, members, at + 64, out, used)
        used = _append(x2, members, at + 128, out, used)
        used = _append(x3, members, at + 192, out, used)
        w += 4
    if w < words:
        word = last
        for k in range(own):
            word &= load_unchecked(bits, load_unchecked(places, k) + w)
            if word == 0:
                break
        used = _append(word, members, member + (w << 6), out, used)
    return used


@inlined_kernel
def _append(word, members, first, out, used):
    # all of 64 queries match
    if word == ALL_BITS:
        copy_lanes(out, used, members, first)
        return used + 64
    while word != 0:
        store_unchecked(out, used, load_unchecked(members, first + lowest_bit(word)))
        used += 1
        word &= word - np.uint64(1)
    return used
