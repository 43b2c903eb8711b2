"""Cut a leaf that is over its capacity: Algorithms 5 and 6 of the BE-Tree paper.

"Analysis and optimization for Boolean expression indexing". What the paper does by recursion is
done here by a stack of buckets, `TreeArrays.pending`, one step at a time, so that the arrays can
grow between two steps. The three rules of section 4.3 hold after each:
an expression lies in the smallest bucket that encloses it, a bucket is halved before it is
partitioned, and only halves of a bucket without partitions are merged (`change`).

Where no attribute is shared by enough expressions, Algorithm 5 would not end: the leaf is extended
instead (section 4.2), by as many times the capacity as it takes.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, plain_kernel
from headgate.matching.be_tree.kernels.leaves import (
    BLOCK_SLACK,
    add_to_partitions,
    append_expression,
    list_leaf,
)
from headgate.matching.be_tree.kernels.nodes import (
    add_bucket,
    add_partition,
    clamp,
    find_bucket,
    find_middle,
    is_partitioned_by,
    look_up,
    partition_owner,
)
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    CAPACITY,
    CHANGES,
    CUTTABLE,
    EQUALITY,
    HASHED,
    HIGH,
    LEAF_BEGIN,
    LEAF_COUNT,
    LEAF_SIZE,
    LEFT,
    LOW,
    NONE,
    OWNER,
    PENDING_COUNT,
    RANKED,
    RIGHT,
    SPECIALISED,
    USED_BUCKETS,
    USED_PARTITIONS,
    USED_RECORDS,
)


@plain_kernel
def mark_pending(tree, b):
    """Have the leaf of a bucket cut if it is over its capacity; later, if too many are waiting."""
    if tree.fact[b, LEAF_COUNT] <= tree.fact[b, CAPACITY]:
        return
    if tree.state[PENDING_COUNT] == len(tree.pending):
        tree.fact[b, CAPACITY] = tree.fact[b, LEAF_COUNT]  # the next that comes makes it overflow
    else:
        tree.pending[tree.state[PENDING_COUNT]] = b
        tree.state[PENDING_COUNT] += 1


@plain_kernel
def cut_pending(tree, expressions, predicates, policy):
    """Cut until nothing is pending; return False if the arrays must grow first."""
    while tree.state[PENDING_COUNT]:
        b = tree.pending[tree.state[PENDING_COUNT] - 1]
        fact = tree.fact
        # a free bucket, or one that was cut in the meantime
        if fact[b, HASHED] == NONE or fact[b, LEAF_COUNT] <= fact[b, CAPACITY]:
            fact[b, CAPACITY] = fit_capacity(fact[b, LEAF_COUNT], policy.capacity)
            tree.state[PENDING_COUNT] -= 1
            continue
        if not has_room_to_cut(tree, b):
            return False
        # Rule 2: halve as long as that is possible, and only then partition.
        if is_halvable(tree, policy, b):
            halve(tree, expressions, predicates, policy, b)
        elif not partition_leaf(tree, expressions, predicates, policy, b):
            fact[b, CAPACITY] = fit_capacity(fact[b, LEAF_COUNT], policy.capacity)
    return True


@plain_kernel
def fit_capacity(count, capacity):
    """Return the capacity of a leaf that holds so many and cannot be cut further (Equation 9)."""
    return max(1, -(-count // capacity)) * capacity


@plain_kernel
def has_room_to_cut(tree, b):
    """Return whether there is room for whatever one step makes of a leaf."""
    # At worst each expression gets a bucket of its own, and each of these blocks has slack and
    # was moved on its way.
    count, used = tree.fact[b, LEAF_COUNT], tree.bucket[b, LEAF_SIZE]
    wanted = 4 * used + (2 * BLOCK_SLACK) * count + 4 * BLOCK_SLACK
    return (
        tree.state[USED_RECORDS] + wanted <= len(tree.records)
        and tree.state[USED_BUCKETS] + count + 2 <= len(tree.bucket)
        and tree.state[USED_PARTITIONS] + 1 <= len(tree.partition)
        and tree.state[PENDING_COUNT] + count + 2 <= len(tree.pending)
    )


@plain_kernel
def is_halvable(tree, policy, b):
    """Return whether a bucket of a binary tree is neither halved nor a single point (Rule 2)."""
    # the root has no owner, and a hashed bucket is one value
    return (
        tree.fact[b, OWNER] != NONE
        and tree.fact[b, HASHED] == 0
        and tree.bucket[b, LEFT] == NONE
        and tree.bucket[b, LOW] < tree.bucket[b, HIGH]
        and policy.directory != SPECIALISED
    )


@plain_kernel
def halve(tree, expressions, predicates, policy, b):
    """Halve a bucket (space clustering): expressions that a half encloses move there."""
    owner = tree.fact[b, OWNER]
    attribute = tree.partition[owner, ATTRIBUTE]
    low, high = tree.bucket[b, LOW], tree.bucket[b, HIGH]
    cut = find_middle(low, high)
    left = add_bucket(tree, owner, b, low, cut, policy.capacity)
    right = add_bucket(tree, owner, b, cut + 1, high, policy.capacity)
    tree.bucket[b, LEFT], tree.bucket[b, RIGHT] = left, right
    # Records that stay are moved up in place: `kept` is where they end, `place` the one in hand.
    start, end = tree.domain_low[attribute], tree.domain_high[attribute]
    records, count = tree.records, tree.fact[b, LEAF_COUNT]
    place = kept = tree.bucket[b, LEAF_BEGIN]
    for _ in range(count):
        e, size = records[place + 2], records[place]
        p = find_predicate(expressions, predicates, e, attribute)
        to = np.int64(NONE)
        if clamp(predicates.most[p], start, end) <= cut:
            to = left
        elif clamp(predicates.least[p], start, end) > cut:
            to = right
        if to == NONE:
            kept = keep_record(records, place, kept)
        else:
            append_expression(tree, expressions, predicates, policy.bloom, to, e)
        place += size
    end_leaf(tree, b, kept, count)
    mark_pending(tree, left)
    mark_pending(tree, right)


@plain_kernel
def find_predicate(expressions, predicates, e, attribute):
    """Return the predicate of an expression on an attribute that it can be cut by; or NONE."""
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        if predicates.column[p] == attribute and predicates.flags[p] & CUTTABLE:
            return np.int64(p)
    return np.int64(NONE)


@kernel
def partition_leaf(tree, expressions, predicates, policy, b):
    """Give the best attribute a partition (space partitioning), and move its expressions there.

    Return False if no attribute is shared by enough expressions.
    """
    inside = list_leaf(tree, b)
    attribute, equality = choose_attribute(tree, expressions, predicates, policy, b, inside)
    if attribute == NONE:
        return False
    partition = look_up(
        tree.table, partition_owner(b), attribute
    )  # of those with equality, perhaps
    if partition == NONE:
        partition = add_partition(tree, b, attribute)
    records = tree.records
    place = kept = tree.bucket[b, LEAF_BEGIN]
    for e in inside:
        size = records[place]
        p = find_predicate(expressions, predicates, e, attribute)
        # with equality predicates first, an expression by a range waits for a better attribute
        stays = p == NONE or (
            equality  # another attribute will tell it apart better
            and not predicates.flags[p] & EQUALITY
            and has_equality(tree, expressions, predicates, b, e)
        )
        if stays:
            kept = keep_record(records, place, kept)
        else:
            to = find_bucket(tree, predicates, policy, partition, p)
            append_expression(tree, expressions, predicates, policy.bloom, to, e)
            if tree.fact[to, LEAF_COUNT] == tree.fact[to, CAPACITY] + 1:
                mark_pending(tree, to)
        place += size
    end_leaf(tree, b, kept, len(inside))
    return True


@plain_kernel
def keep_record(records, place, kept):
    """Move a record up to where the others that stay in its leaf end; return its own end."""
    size = records[place]
    for i in range(size):
        records[kept + i] = records[place + i]
    return kept + size


@plain_kernel
def end_leaf(tree, b, kept, count):
    """Let a leaf that had `count` expressions end where those that were kept do."""
    # count them by walking from record to record, as their sizes differ
    begin, left = tree.bucket[b, LEAF_BEGIN], 0
    place = begin
    while place < kept:
        place += tree.records[place]
        left += 1
    tree.bucket[b, LEAF_SIZE], tree.fact[b, LEAF_COUNT] = kept - begin, left
    tree.fact[b, CHANGES] += count - left
    add_to_partitions(tree, b, left - count)


@plain_kernel
def has_equality(tree, expressions, predicates, b, e):
    """Return whether an expression has an equality predicate that the path to a bucket lacks."""
    # then another partition tells it apart better than one by a range
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        flags = predicates.flags[p]
        if (
            flags & CUTTABLE
            and flags & EQUALITY
            and not is_partitioned_by(tree, b, predicates.column[p])
        ):
            return True
    return False


@kernel
def choose_attribute(tree, expressions, predicates, policy, b, inside):
    """Return the attribute of the highest rank (Equation 14), and whether equality made it so.

    Gain counts the expressions, by 1 − β where their predicate would be subsumed and by β where it
    would be covered; loss is 0, or the average number of expressions with the same predicate.
    """
    attributes = len(tree.domain_low)
    # row 0: expressions with any predicate on the attribute, row 1: with an equality predicate
    number = np.zeros((2, attributes), np.int64)
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
    loss = estimate_losses(predicates, expressions, inside, attributes, policy.histogram)
    # Ranked directories use up equality predicates first: these lead to one bucket by hashing.
    first = 1 if policy.directory == RANKED else 0
    for equality in range(first, -1, -1):
        best, rank = np.int64(NONE), -np.inf
        for attribute in range(attributes):
            if number[equality, attribute] >= policy.min_size:
                its = (1.0 - policy.alpha) * gain[equality, attribute] - policy.alpha * loss[
                    attribute
                ]
                if its > rank and not is_partitioned_by(tree, b, attribute):
                    best, rank = np.int64(attribute), its
        if best != NONE:
            return best, equality == 1
    return np.int64(NONE), False


@kernel
def estimate_losses(predicates, expressions, inside, attributes, wanted):
    """Return by attribute how many expressions share a predicate on average; 0 if not wanted."""
    loss = np.zeros(attributes, np.float64)
    if not wanted:
        return loss
    # all predicates that a leaf can be cut by, of all expressions, in one array
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
    # Sorted, equal predicates stand side by side, so the distinct ones can be counted.
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
