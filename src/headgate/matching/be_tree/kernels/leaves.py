"""Leaves: blocks of records that grow by moving to the end of the array.

A record is laid out as `pools` explains; its first number is its size, so that a leaf is read from
one record to the next.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, plain_kernel
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    CHANGES,
    CUTTABLE,
    EQUALITY,
    EXACT,
    FIRST_PARTITION,
    HASHED,
    HIGH,
    HOME,
    LEAF_BEGIN,
    LEAF_COUNT,
    LEAF_ROOM,
    LEAF_SIZE,
    LEFT,
    LOW,
    NONE,
    OWNER,
    PARTITION_SIZE,
    PREDICATES_PER_STEP,
    RIGHT,
    TRUE_PREDICATE,
    USED_BUCKETS,
    USED_RECORDS,
    header_size,
    pad_count,
)
from headgate.matching.be_tree.values import MAX_POINT, MIN_POINT

BLOCK_SLACK = 48  # numbers that a block can take in before it must move


@plain_kernel
def bloom_bit(column, bloom):
    """Return the bit of an attribute in a filter of so many bits (section 6.2).

    The paper hashes names by sdbm; the number of a column is as good, once it is mixed.
    """
    x = np.uint64(column) * np.uint64(2654435761)
    return np.int64((x >> np.uint64(8)) % np.uint64(bloom))


@plain_kernel
def is_decided(tree, predicates, b, p):
    """Return whether the path to a bucket decides a predicate, which need not be evaluated then."""
    owner = tree.fact[b, OWNER]
    while owner != NONE:
        if tree.partition[owner, ATTRIBUTE] == predicates.column[p]:
            # a hashed bucket of values that do not fit into 64 bits is one of their hash only
            return predicates.flags[p] & EXACT > 0 and is_subsumed(tree, predicates, b, p)
        b = tree.partition[owner, HOME]
        owner = tree.fact[b, OWNER]
    return False


@plain_kernel
def is_subsumed(tree, predicates, b, p):
    """Return whether a predicate accepts just the values that a bucket of its attribute is for.

    The paper calls it subsumed then, and covered if the bucket is for other values too (5.1).
    """
    if tree.fact[b, HASHED] == 1:
        return True
    first, last = predicates.first[p], predicates.last[p]
    if not predicates.flags[p] & EXACT or last - first != 1:
        return False
    # The ends of a domain also hold what lies outside of it.
    low, high = tree.bucket[b, LOW], tree.bucket[b, HIGH]
    attribute = predicates.column[p]
    if low == tree.domain_low[attribute]:
        low = np.int64(MIN_POINT)
    if high == tree.domain_high[attribute]:
        high = np.int64(MAX_POINT)
    return predicates.low[first] == low and predicates.high[first] == high


@plain_kernel
def max_record_size(expressions, e, head):
    """Return the size of an expression's record if no predicate is decided."""
    return head + pad_count(expressions.count[e])


@plain_kernel
def has_room(tree, b, size):
    """Return whether the leaf of a bucket can take a record of this size as the array is now."""
    used = tree.bucket[b, LEAF_SIZE]
    return used + size <= tree.fact[b, LEAF_ROOM] or tree.state[USED_RECORDS] + 2 * (
        used + size
    ) + BLOCK_SLACK <= len(tree.records)


@plain_kernel
def reserve_room(tree, b, size):
    """Move the leaf to a larger block if there is no room for another record."""
    # The old block stays behind as a gap, until `pack_records` writes all leaves together.
    used = tree.bucket[b, LEAF_SIZE]
    if used + size <= tree.fact[b, LEAF_ROOM]:
        return
    begin, room = tree.state[USED_RECORDS], 2 * used + size + BLOCK_SLACK
    old = tree.bucket[b, LEAF_BEGIN]
    for i in range(used):
        tree.records[begin + i] = tree.records[old + i]
    tree.bucket[b, LEAF_BEGIN], tree.fact[b, LEAF_ROOM] = begin, room
    tree.state[USED_RECORDS] = begin + room


@plain_kernel
def append_expression(tree, expressions, predicates, bloom, b, e):
    """Write an expression into the leaf of a bucket; there is room for it."""
    head = header_size(bloom)
    reserve_room(tree, b, max_record_size(expressions, e, head))
    records, place = tree.records, tree.bucket[b, LEAF_BEGIN] + tree.bucket[b, LEAF_SIZE]
    position = expressions.position[e]
    # A negative position tells matching that the query may match by another expression too.
    records[place + 1] = -1 - position if expressions.is_alternative[e] else position
    records[place + 2] = e
    for i in range(3, head):
        records[place + i] = 0
    size = head
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        if bloom and predicates.flags[p] & CUTTABLE:
            bit = bloom_bit(predicates.column[p], bloom)
            # records are int32: set the bit in 64 bits, and bring the word back into their range
            word = np.int64(records[place + 3 + bit // 32]) & 0xFFFFFFFF
            word |= np.int64(1) << (bit % 32)
            records[place + 3 + bit // 32] = np.int32(word - (word >> 31 << 32))
        # what the path has decided need not be checked again
        if not is_decided(tree, predicates, b, p):
            records[place + size] = p
            size += 1
    while (size - head) % PREDICATES_PER_STEP:
        records[place + size] = TRUE_PREDICATE
        size += 1
    records[place] = size
    tree.bucket[b, LEAF_SIZE] += size
    tree.fact[b, LEAF_COUNT] += 1
    tree.fact[b, CHANGES] += 1
    expressions.leaf[e] = b
    add_to_partitions(tree, b, 1)


@plain_kernel
def add_to_partitions(tree, b, change):
    """Add `change` to the number of expressions of all partitions above a bucket."""
    owner = tree.fact[b, OWNER]
    while owner != NONE:
        tree.partition[owner, PARTITION_SIZE] += change
        owner = tree.fact[tree.partition[owner, HOME], OWNER]


@plain_kernel
def remove_expression(tree, expressions, e):
    """Remove an expression from its leaf, and return the bucket."""
    b = expressions.leaf[e]
    records, begin = tree.records, tree.bucket[b, LEAF_BEGIN]
    end = begin + tree.bucket[b, LEAF_SIZE]
    place = begin
    # the leaf is read from its beginning: an expression knows its leaf, not its place
    while records[place + 2] != e:
        place += records[place]
    # Records behind it move up, so that a leaf has no gaps.
    size = records[place]
    for i in range(place, end - size):
        records[i] = records[i + size]
    tree.bucket[b, LEAF_SIZE] -= size
    tree.fact[b, LEAF_COUNT] -= 1
    tree.fact[b, CHANGES] += 1
    expressions.leaf[e] = NONE
    add_to_partitions(tree, b, -1)
    return b


@kernel
def list_leaf(tree, b):
    """Return the expressions in the leaf of a bucket."""
    numbers = np.empty(tree.fact[b, LEAF_COUNT], np.int64)
    place = tree.bucket[b, LEAF_BEGIN]
    for i in range(len(numbers)):
        numbers[i] = tree.records[place + 2]
        place += tree.records[place]
    return numbers


@plain_kernel
def is_empty_bucket(tree, b):
    """Return whether a bucket has neither expressions nor partitions nor halves."""
    return (
        tree.fact[b, LEAF_COUNT] == 0
        and tree.bucket[b, FIRST_PARTITION] == NONE
        and tree.bucket[b, LEFT] == NONE
        and tree.bucket[b, RIGHT] == NONE
    )


@kernel
def pack_records(tree, order, size):
    """Return the records of the buckets in this order, in an array of this size, each with room.

    In the order of the tree, an event that goes down it reads records that lie close together.
    """
    records = np.zeros(size, np.int32)
    used = 0
    for b in order:
        begin, length = tree.bucket[b, LEAF_BEGIN], tree.bucket[b, LEAF_SIZE]
        for i in range(length):
            records[used + i] = tree.records[begin + i]
        tree.bucket[b, LEAF_BEGIN] = used
        # a quarter more than it has, so that a few insertions need not move it
        tree.fact[b, LEAF_ROOM] = length + length // 4 + (8 if length else 0)
        used += tree.fact[b, LEAF_ROOM]
    tree.state[USED_RECORDS] = used
    return records


@plain_kernel
def renumber_predicates(tree, expressions, new, count, bloom):
    """Give the predicates of expressions and records their new numbers, `new[old]`."""
    # Expressions that are gone have no leaf, and perhaps predicates without a number.
    for e in range(count):
        if expressions.leaf[e] != NONE:
            for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
                expressions.predicate[k] = new[expressions.predicate[k]]
    head = header_size(bloom)
    for b in range(tree.state[USED_BUCKETS]):
        place = tree.bucket[b, LEAF_BEGIN]
        end = place + tree.bucket[b, LEAF_SIZE]
        while place < end:
            size = tree.records[place]
            for i in range(place + head, place + size):
                tree.records[i] = new[tree.records[i]]
            place += size


@plain_kernel
def sort_predicates(expressions, predicates, numbers):
    """Sort the predicates of expressions so that those which accept few values are tested first."""
    # Insertion sort: an expression has few predicates.
    for e in numbers:
        start = expressions.start[e]
        for i in range(start + 1, start + expressions.count[e]):
            p = expressions.predicate[i]
            k = i
            while k > start and estimate_width(predicates, p) < estimate_width(
                predicates, expressions.predicate[k - 1]
            ):
                expressions.predicate[k] = expressions.predicate[k - 1]
                k -= 1
            expressions.predicate[k] = p


@plain_kernel
def estimate_width(predicates, p):
    """Return a number that is lower the fewer values a predicate accepts, as a guess."""
    if predicates.flags[p] & EQUALITY:
        return 0.0
    return 1.0 + np.float64(predicates.most[p]) - np.float64(predicates.least[p])


@plain_kernel
def copy_live_predicates(expressions, count, predicate):
    """Write the predicates of live expressions one after the other; return how many there are."""
    # rows are copied with what fills them up, and `start` moves with them
    used = 0
    for e in range(count):
        if expressions.leaf[e] != NONE:
            start = expressions.start[e]
            expressions.start[e] = used
            for k in range(start, start + pad_count(expressions.count[e])):
                predicate[used] = expressions.predicate[k]
                used += 1
    return used
