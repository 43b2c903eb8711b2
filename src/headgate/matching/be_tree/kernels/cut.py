"""A leaf that is over its capacity is cut: Algorithms 5 and 6 of the BE-Tree paper.

What the paper does by recursion is done here by a stack of buckets, `Tree.pending`, one step at a
time, so that the pools can grow between two steps. The three rules of section 4.3 hold after each:
an expression lies in the smallest bucket that encloses it, a bucket is halved before it is
partitioned, and only halves of a bucket without partitions are merged (`remove`).

Where no attribute is shared by enough expressions, Algorithm 5 would not end: the leaf is extended
instead (section 4.2), by as many times the capacity as it takes.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.kernels.leaves import SLACK, add_to_path, append, members
from headgate.matching.be_tree.kernels.nodes import (
    bucket_for,
    clamped,
    found,
    is_used,
    middle,
    new_bucket,
    new_partition,
    of_partition,
)
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    BEGIN,
    BUCKETS,
    CAPACITY,
    CHANGES,
    COUNT,
    CUTTABLE,
    EQUALITY,
    HASHED,
    HIGH,
    LEFT,
    LOW,
    NONE,
    OWNER,
    PENDING,
    RANKED,
    RECORDS,
    RIGHT,
    SPECIALISED,
    USED,
    USED_PARTITIONS,
)


@kernel
def pend(tree, b):
    """Have the leaf of a bucket cut, if it is over its capacity; later, if too many are waiting."""
    if tree.fact[b, COUNT] <= tree.fact[b, CAPACITY]:
        return
    if tree.state[PENDING] == len(tree.pending):
        tree.fact[b, CAPACITY] = tree.fact[b, COUNT]  # the next that comes makes it overflow
    else:
        tree.pending[tree.state[PENDING]] = b
        tree.state[PENDING] += 1


@kernel
def cut_pending(tree, expressions, predicates, policy):
    """Cut until nothing is pending; False if the pools must grow first."""
    while tree.state[PENDING]:
        b = tree.pending[tree.state[PENDING] - 1]
        fact = tree.fact
        if fact[b, HASHED] == NONE or fact[b, COUNT] <= fact[b, CAPACITY]:
            fact[b, CAPACITY] = fitting(fact[b, COUNT], policy.capacity)
            tree.state[PENDING] -= 1
            continue
        if not can_cut(tree, b):
            return False
        if is_halvable(tree, policy, b):
            halve(tree, expressions, predicates, policy, b)
        elif not partition_once(tree, expressions, predicates, policy, b):
            fact[b, CAPACITY] = fitting(fact[b, COUNT], policy.capacity)
    return True


@kernel
def fitting(count, capacity):
    """The capacity of a leaf that holds so many and cannot be cut any further (Equation 9)."""
    return max(1, -(-count // capacity)) * capacity


@kernel
def can_cut(tree, b):
    """Is there room for whatever one step makes of a leaf?"""
    count, used = tree.fact[b, COUNT], tree.bucket[b, USED]
    wanted = 4 * used + (2 * SLACK) * count + 4 * SLACK
    return (
        tree.state[RECORDS] + wanted <= len(tree.records)
        and tree.state[BUCKETS] + count + 2 <= len(tree.bucket)
        and tree.state[USED_PARTITIONS] + 1 <= len(tree.partition)
        and tree.state[PENDING] + count + 2 <= len(tree.pending)
    )


@kernel
def is_halvable(tree, policy, b):
    """Is it a bucket of a binary tree that is neither halved yet nor a single point? (Rule 2)"""
    return (
        tree.fact[b, OWNER] != NONE
        and tree.fact[b, HASHED] == 0
        and tree.bucket[b, LEFT] == NONE
        and tree.bucket[b, LOW] < tree.bucket[b, HIGH]
        and policy.directory != SPECIALISED
    )


@kernel
def halve(tree, expressions, predicates, policy, b):
    """Space clustering: two halves, and the expressions that one of them encloses move there."""
    owner = tree.fact[b, OWNER]
    attribute = tree.partition[owner, ATTRIBUTE]
    low, high = tree.bucket[b, LOW], tree.bucket[b, HIGH]
    cut = middle(low, high)
    left = new_bucket(tree, owner, b, low, cut, policy.capacity)
    right = new_bucket(tree, owner, b, cut + 1, high, policy.capacity)
    tree.bucket[b, LEFT], tree.bucket[b, RIGHT] = left, right
    start, end = tree.domain_low[attribute], tree.domain_high[attribute]
    records, count = tree.records, tree.fact[b, COUNT]
    place = kept = tree.bucket[b, BEGIN]
    for _ in range(count):
        e, size = records[place + 2], records[place]
        p = predicate_on(expressions, predicates, e, attribute)
        to = np.int64(NONE)
        if clamped(predicates.most[p], start, end) <= cut:
            to = left
        elif clamped(predicates.least[p], start, end) > cut:
            to = right
        if to == NONE:
            kept = keep(records, place, kept)
        else:
            append(tree, expressions, predicates, policy.bloom, to, e)
        place += size
    left_behind(tree, b, kept, count)
    pend(tree, left)
    pend(tree, right)


@kernel
def predicate_on(expressions, predicates, e, attribute):
    """The predicate of an expression on an attribute that it can be cut by; or NONE."""
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        if predicates.column[p] == attribute and predicates.flags[p] & CUTTABLE:
            return np.int64(p)
    return np.int64(NONE)


@kernel
def partition_once(tree, expressions, predicates, policy, b):
    """Space partitioning: the best attribute gets a partition, and its expressions move there.

    False if no attribute is shared by enough expressions.
    """
    inside = members(tree, b)
    attribute, equality = best_attribute(tree, expressions, predicates, policy, b, inside)
    if attribute == NONE:
        return False
    partition = found(tree.table, of_partition(b), attribute)  # of those with equality, perhaps
    if partition == NONE:
        partition = new_partition(tree, b, attribute)
    records = tree.records
    place = kept = tree.bucket[b, BEGIN]
    for e in inside:
        size = records[place]
        p = predicate_on(expressions, predicates, e, attribute)
        stays = p == NONE or (
            equality  # another attribute will tell it apart better
            and not predicates.flags[p] & EQUALITY
            and has_equality(tree, expressions, predicates, b, e)
        )
        if stays:
            kept = keep(records, place, kept)
        else:
            to = bucket_for(tree, predicates, policy, partition, p)
            append(tree, expressions, predicates, policy.bloom, to, e)
            if tree.fact[to, COUNT] == tree.fact[to, CAPACITY] + 1:
                pend(tree, to)
        place += size
    left_behind(tree, b, kept, len(inside))
    return True


@kernel
def keep(records, place, kept):
    """Move a record up to where the others that stay in its leaf end."""
    size = records[place]
    for i in range(size):
        records[kept + i] = records[place + i]
    return kept + size


@kernel
def left_behind(tree, b, kept, count):
    """A leaf that had `count` expressions ends where those that were kept do."""
    begin, left = tree.bucket[b, BEGIN], 0
    place = begin
    while place < kept:
        place += tree.records[place]
        left += 1
    tree.bucket[b, USED], tree.fact[b, COUNT] = kept - begin, left
    tree.fact[b, CHANGES] += count - left
    add_to_path(tree, b, left - count)


@kernel
def has_equality(tree, expressions, predicates, b, e):
    """Has an expression an equality predicate that the path to a bucket has not used?"""
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        flags = predicates.flags[p]
        if flags & CUTTABLE and flags & EQUALITY and not is_used(tree, b, predicates.column[p]):
            return True
    return False


@kernel
def best_attribute(tree, expressions, predicates, policy, b, inside):
    """The attribute of the highest rank (Equation 14), and whether equality predicates made it so.

    Gain counts the expressions, by 1 − β where their predicate would be subsumed and by β where it
    would be covered; loss is 0, or the average number of expressions with the same predicate.
    """
    attributes = len(tree.domain_low)
    number = np.zeros((2, attributes), np.int64)  # with any predicate, and with equality
    gain = np.zeros((2, attributes), np.float64)
    for e in inside:
        for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
            p = expressions.predicate[k]
            flags = predicates.flags[p]
            if flags & CUTTABLE:
                equal = 1 if flags & EQUALITY else 0
                weight = 1.0 - policy.beta if equal else policy.beta
                attribute = predicates.column[p]
                number[0, attribute] += 1
                gain[0, attribute] += weight
                number[1, attribute] += equal
                gain[1, attribute] += equal * weight
    loss = histogram_loss(predicates, expressions, inside, attributes, policy.histogram)
    first = 1 if policy.directory == RANKED else 0
    for equality in range(first, -1, -1):
        best, rank = np.int64(NONE), -np.inf
        for attribute in range(attributes):
            if number[equality, attribute] >= policy.fewest:
                its = (1.0 - policy.alpha) * gain[equality, attribute] - policy.alpha * loss[
                    attribute
                ]
                if its > rank and not is_used(tree, b, attribute):
                    best, rank = np.int64(attribute), its
        if best != NONE:
            return best, equality == 1
    return np.int64(NONE), False


@kernel
def histogram_loss(predicates, expressions, inside, attributes, wanted):
    """By attribute: how many expressions share a predicate, on average; 0 where not wanted."""
    loss = np.zeros(attributes, np.float64)
    if not wanted:
        return loss
    room = 0
    for e in inside:
        room += expressions.count[e]
    listed = np.empty(room, np.int64)
    used = 0
    for e in inside:
        for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
            if predicates.flags[expressions.predicate[k]] & CUTTABLE:
                listed[used] = expressions.predicate[k]
                used += 1
    listed = np.sort(listed[:used])
    total, distinct = np.zeros(attributes, np.int64), np.zeros(attributes, np.int64)
    for i in range(used):
        attribute = predicates.column[listed[i]]
        total[attribute] += 1
        distinct[attribute] += i == 0 or listed[i] != listed[i - 1]
    for attribute in range(attributes):
        if distinct[attribute]:
            loss[attribute] = total[attribute] / distinct[attribute]
    return loss
