"""Leaves: blocks of records that grow by moving to the end of the pool."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.kernels.pools import (
    ALWAYS,
    ATTRIBUTE,
    BEGIN,
    BUCKETS,
    CHANGES,
    COUNT,
    CUTTABLE,
    EQUALITY,
    EXACT,
    FIRST,
    HASHED,
    HIGH,
    HOME,
    LEFT,
    LOW,
    NONE,
    OWNER,
    RECORDS,
    RIGHT,
    ROOM,
    SIZE,
    TOGETHER,
    USED,
    filled_up,
    header,
)

SLACK = 48  # numbers that a block has to spare at first


@kernel
def bloom_word(column, bloom):
    """The bit of an attribute in a filter of so many bits (section 6.2).

    The paper hashes names by sdbm; the number of a column is as good, once it is mixed.
    """
    x = np.uint64(column) * np.uint64(2654435761)
    return np.int64((x >> np.uint64(8)) % np.uint64(bloom))


@kernel
def is_decided(tree, predicates, b, p):
    """Does the path to a bucket decide a predicate? Then it is subsumed, in the paper's words."""
    if not predicates.flags[p] & EXACT:
        return False
    owner = tree.fact[b, OWNER]
    while owner != NONE:
        attribute = tree.partition[owner, ATTRIBUTE]
        if attribute == predicates.column[p]:
            low, high = tree.bucket[b, LOW], tree.bucket[b, HIGH]
            inside = tree.domain_low[attribute] < low and high < tree.domain_high[attribute]
            return tree.fact[b, HASHED] == 1 or (low == high and inside)
        b = tree.partition[owner, HOME]
        owner = tree.fact[b, OWNER]
    return False


@kernel
def longest(expressions, e, head):
    """The size of an expression's record, if no predicate is decided."""
    return head + filled_up(expressions.count[e])


@kernel
def has_room(tree, b, size):
    """Can the leaf of a bucket take a record of this size without a larger pool?"""
    used = tree.bucket[b, USED]
    return used + size <= tree.fact[b, ROOM] or tree.state[RECORDS] + 2 * (
        used + size
    ) + SLACK <= len(tree.records)


@kernel
def reserve(tree, b, size):
    """Move the leaf to a larger block if there is no room for another record."""
    used = tree.bucket[b, USED]
    if used + size <= tree.fact[b, ROOM]:
        return
    begin, room = tree.state[RECORDS], 2 * used + size + SLACK
    old = tree.bucket[b, BEGIN]
    for i in range(used):
        tree.records[begin + i] = tree.records[old + i]
    tree.bucket[b, BEGIN], tree.fact[b, ROOM] = begin, room
    tree.state[RECORDS] = begin + room


@kernel
def append(tree, expressions, predicates, bloom, b, e):
    """Write an expression into the leaf of a bucket; there is room for it."""
    head = header(bloom)
    reserve(tree, b, longest(expressions, e, head))
    records, place = tree.records, tree.bucket[b, BEGIN] + tree.bucket[b, USED]
    position = expressions.position[e]
    records[place + 1] = -1 - position if expressions.several[e] else position
    records[place + 2] = e
    for i in range(3, head):
        records[place + i] = 0
    size = head
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        if bloom and predicates.flags[p] & CUTTABLE:
            bit = bloom_word(predicates.column[p], bloom)
            word = np.int64(records[place + 3 + bit // 32]) & 0xFFFFFFFF
            word |= np.int64(1) << (bit % 32)
            records[place + 3 + bit // 32] = np.int32(word - (word >> 31 << 32))
        if not is_decided(tree, predicates, b, p):
            records[place + size] = p
            size += 1
    while (size - head) % TOGETHER:
        records[place + size] = ALWAYS
        size += 1
    records[place] = size
    tree.bucket[b, USED] += size
    tree.fact[b, COUNT] += 1
    tree.fact[b, CHANGES] += 1
    expressions.leaf[e] = b
    add_to_path(tree, b, 1)


@kernel
def add_to_path(tree, b, change):
    """Count an expression, or discount it, in all partitions above a bucket."""
    owner = tree.fact[b, OWNER]
    while owner != NONE:
        tree.partition[owner, SIZE] += change
        owner = tree.fact[tree.partition[owner, HOME], OWNER]


@kernel
def take_out(tree, expressions, e):
    """Remove an expression from its leaf; gives the bucket."""
    b = expressions.leaf[e]
    records, begin = tree.records, tree.bucket[b, BEGIN]
    end = begin + tree.bucket[b, USED]
    place = begin
    while records[place + 2] != e:
        place += records[place]
    size = records[place]
    for i in range(place, end - size):
        records[i] = records[i + size]
    tree.bucket[b, USED] -= size
    tree.fact[b, COUNT] -= 1
    tree.fact[b, CHANGES] += 1
    expressions.leaf[e] = NONE
    add_to_path(tree, b, -1)
    return b


@kernel
def members(tree, b):
    """The expressions in the leaf of a bucket."""
    found = np.empty(tree.fact[b, COUNT], np.int64)
    place = tree.bucket[b, BEGIN]
    for i in range(len(found)):
        found[i] = tree.records[place + 2]
        place += tree.records[place]
    return found


@kernel
def is_bare(tree, b):
    """Has a bucket neither expressions nor partitions nor halves?"""
    return (
        tree.fact[b, COUNT] == 0
        and tree.bucket[b, FIRST] == NONE
        and tree.bucket[b, LEFT] == NONE
        and tree.bucket[b, RIGHT] == NONE
    )


@kernel
def packed(tree, order, size):
    """The records of the buckets in this order, in a pool of this size, each with some room."""
    records = np.zeros(size, np.int32)
    used = 0
    for b in order:
        begin, length = tree.bucket[b, BEGIN], tree.bucket[b, USED]
        for i in range(length):
            records[used + i] = tree.records[begin + i]
        tree.bucket[b, BEGIN] = used
        tree.fact[b, ROOM] = length + length // 4 + (8 if length else 0)
        used += tree.fact[b, ROOM]
    tree.state[RECORDS] = used
    return records


@kernel
def renumber_records(tree, expressions, new, count, bloom):
    """Give the predicates of expressions and records their new numbers."""
    for e in range(count):
        if expressions.leaf[e] != NONE:
            for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
                expressions.predicate[k] = new[expressions.predicate[k]]
    head = header(bloom)
    for b in range(tree.state[BUCKETS]):
        place = tree.bucket[b, BEGIN]
        end = place + tree.bucket[b, USED]
        while place < end:
            size = tree.records[place]
            for i in range(place + head, place + size):
                tree.records[i] = new[tree.records[i]]
            place += size


@kernel
def in_order(expressions, predicates, numbers):
    """Put the predicates of expressions in the order in which they are best tested: what accepts
    one value first, and what accepts the most last."""
    for e in numbers:
        start = expressions.start[e]
        for i in range(start + 1, start + expressions.count[e]):
            p = expressions.predicate[i]
            k = i
            while k > start and weight(predicates, p) < weight(
                predicates, expressions.predicate[k - 1]
            ):
                expressions.predicate[k] = expressions.predicate[k - 1]
                k -= 1
            expressions.predicate[k] = p


@kernel
def weight(predicates, p):
    """The less it is, the fewer values a predicate accepts, as a guess."""
    if predicates.flags[p] & EQUALITY:
        return 0.0
    return 1.0 + np.float64(predicates.most[p]) - np.float64(predicates.least[p])


@kernel
def copy_live_predicates(expressions, count, predicate):
    used = 0
    for e in range(count):
        if expressions.leaf[e] != NONE:
            start = expressions.start[e]
            expressions.start[e] = used
            for k in range(start, start + filled_up(expressions.count[e])):
                predicate[used] = expressions.predicate[k]
                used += 1
    return used
