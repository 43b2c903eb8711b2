"""Buckets and partitions: their directory, how they come and go, and which one an expression joins.

One hash table with open addressing serves both directories of the tree. Row i of the table is
(owner, value, target): the partition of bucket b on an attribute has the owner 2b and the attribute
as its value; the bucket of partition p for a key has the owner 2p + 1. What is free is chained, and
used again first.

Where an expression belongs: Algorithms 3 and 4 of "Analysis and optimization for Boolean expression
indexing", without recursion. Deviations: the greatest score starts at −∞ (the paper's listing
leaves it open), and intervals are halved at their middle, [low, m] and [m + 1, high].
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel, plain_kernel
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    ATTRIBUTE_MASK,
    CAPACITY,
    CHANGES,
    CUTTABLE,
    DISCARDED,
    EQUALITY,
    FALSE_CANDIDATES,
    FIRST_HASHED,
    FIRST_PARTITION,
    FREE_BUCKET,
    FREE_PARTITION,
    GENERIC,
    HASHED,
    HASHED_COUNT,
    HIGH,
    HOME,
    KEY,
    LEAF_BEGIN,
    LEAF_COUNT,
    LEAF_ROOM,
    LEAF_SIZE,
    LEFT,
    LOW,
    NEXT_HASHED,
    NEXT_PARTITION,
    NONE,
    OWNER,
    PARENT,
    PARTITION_SIZE,
    PARTITIONS,
    PREVIOUS_HASHED,
    PREVIOUS_PARTITION,
    RANDOM_STATE,
    RANKED,
    RIGHT,
    ROOT,
    SPECIALISED,
    TOP_BUCKET,
    USED_BUCKETS,
    USED_PARTITIONS,
    VISITS,
    attribute_bit,
)

OWNER_FIELD, VALUE_FIELD, TARGET_FIELD = 0, 1, 2


@inlined_kernel
def partition_owner(bucket):
    """Return the owner of the directory entries for the partitions of a bucket."""
    return 2 * bucket


@inlined_kernel
def bucket_owner(partition):
    """Return the owner of the directory entries for the buckets of a partition."""
    return 2 * partition + 1


@plain_kernel
def hash_slot(table, owner, value):
    """Return the slot where a search begins."""
    # xorshift: shifts only, as Numba would turn a product that overflows into a float
    x = np.uint64(value & np.int64(0x7FFFFFFFFFFFFFFF)) ^ (np.uint64(owner) << np.uint64(21))
    x ^= x >> np.uint64(33)
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    x ^= x >> np.uint64(29)
    return np.int64(x & np.uint64(len(table) - 1))


@plain_kernel
def look_up(table, owner, value):
    """Return the target of an owner and a value, or NONE."""
    # linear probing: a search ends at the first free slot
    slot = hash_slot(table, owner, value)
    mask = len(table) - 1
    while table[slot, OWNER_FIELD] != NONE:
        if table[slot, OWNER_FIELD] == owner and table[slot, VALUE_FIELD] == value:
            return table[slot, TARGET_FIELD]
        slot = (slot + 1) & mask
    return np.int64(NONE)


@plain_kernel
def add_entry(table, owner, value, target):
    """Add an entry that is not there yet. The table has room: it is never more than half full."""
    slot = hash_slot(table, owner, value)
    mask = len(table) - 1
    while table[slot, OWNER_FIELD] != NONE:
        slot = (slot + 1) & mask
    table[slot, OWNER_FIELD], table[slot, VALUE_FIELD] = owner, value
    table[slot, TARGET_FIELD] = target


@plain_kernel
def remove_entry(table, owner, value):
    """Remove an entry that is there."""
    mask = len(table) - 1
    slot = hash_slot(table, owner, value)
    while table[slot, OWNER_FIELD] != owner or table[slot, VALUE_FIELD] != value:
        slot = (slot + 1) & mask
    # Move up the entries that were pushed past the hole, or a search for them would end there.
    hole, slot = slot, (slot + 1) & mask
    while table[slot, OWNER_FIELD] != NONE:
        home = hash_slot(table, table[slot, OWNER_FIELD], table[slot, VALUE_FIELD])
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            for k in range(table.shape[1]):
                table[hole, k] = table[slot, k]
            hole = slot
        slot = (slot + 1) & mask
    table[hole, OWNER_FIELD] = NONE


@kernel
def rehash(table, size):
    """Return the same entries in a table of another size, a power of two."""
    larger = np.full((size, 4), NONE, np.int64)
    for slot in range(len(table)):
        if table[slot, OWNER_FIELD] != NONE:
            owner, value, target = table[slot, 0], table[slot, 1], table[slot, 2]
            add_entry(larger, owner, value, target)
    return larger


@plain_kernel
def add_bucket(tree, owner, parent, low, high, capacity):
    """Add a bucket without expressions that nothing leads to yet."""
    # the first of the free ones, or the next of the array, which has room
    b = tree.state[FREE_BUCKET]
    if b == NONE:
        b = tree.state[USED_BUCKETS]
        tree.state[USED_BUCKETS] += 1
    else:
        tree.state[FREE_BUCKET] = tree.fact[b, NEXT_HASHED]
    bucket, fact = tree.bucket, tree.fact
    bucket[b, LOW], bucket[b, HIGH] = low, high
    bucket[b, LEFT], bucket[b, RIGHT], bucket[b, FIRST_PARTITION] = NONE, NONE, NONE
    bucket[b, LEAF_BEGIN], bucket[b, LEAF_SIZE], bucket[b, ATTRIBUTE_MASK] = 0, 0, 0
    fact[b, PARTITIONS] = 0
    fact[b, LEAF_COUNT], fact[b, CAPACITY], fact[b, LEAF_ROOM] = 0, capacity, 0
    fact[b, PARENT], fact[b, OWNER] = parent, owner
    fact[b, NEXT_HASHED], fact[b, PREVIOUS_HASHED] = NONE, NONE
    fact[b, KEY], fact[b, HASHED] = 0, 0
    fact[b, VISITS], fact[b, DISCARDED], fact[b, FALSE_CANDIDATES], fact[b, CHANGES] = 0, 0, 0, 0
    return b


@plain_kernel
def add_hashed_bucket(tree, p, key, point, capacity):
    """Add the bucket of a partition for one value, which lies at `point`."""
    b = add_bucket(tree, p, NONE, point, point, capacity)
    tree.fact[b, KEY], tree.fact[b, HASHED] = key, 1
    # It becomes the first in the chain of the partition's hashed buckets.
    first = tree.partition[p, FIRST_HASHED]
    tree.fact[b, NEXT_HASHED] = first
    if first != NONE:
        tree.fact[first, PREVIOUS_HASHED] = b
    tree.partition[p, FIRST_HASHED] = b
    tree.partition[p, HASHED_COUNT] += 1
    add_entry(tree.table, bucket_owner(p), key, b)
    return b


@plain_kernel
def add_partition(tree, b, attribute):
    """Add a partition of a bucket, without buckets of its own."""
    p = tree.state[FREE_PARTITION]
    if p == NONE:
        p = tree.state[USED_PARTITIONS]
        tree.state[USED_PARTITIONS] += 1
    else:
        tree.state[FREE_PARTITION] = tree.partition[p, NEXT_PARTITION]
    partition = tree.partition
    partition[p, ATTRIBUTE], partition[p, TOP_BUCKET], partition[p, HOME] = attribute, NONE, b
    partition[p, FIRST_HASHED], partition[p, HASHED_COUNT], partition[p, PARTITION_SIZE] = (
        NONE,
        0,
        0,
    )
    tree.penalty[p] = 0.0
    # It becomes the first in the chain of the bucket's partitions.
    first = tree.bucket[b, FIRST_PARTITION]
    partition[p, NEXT_PARTITION], partition[p, PREVIOUS_PARTITION] = first, NONE
    if first != NONE:
        partition[first, PREVIOUS_PARTITION] = p
    tree.bucket[b, FIRST_PARTITION] = p
    tree.bucket[b, ATTRIBUTE_MASK] |= attribute_bit(attribute)
    tree.fact[b, PARTITIONS] += 1
    add_entry(tree.table, partition_owner(b), attribute, p)
    return p


@plain_kernel
def free_bucket(tree, b):
    """Give back a bucket that has nothing and that nothing leads to any more."""
    tree.fact[b, NEXT_HASHED] = tree.state[FREE_BUCKET]
    tree.fact[b, LEAF_COUNT], tree.bucket[b, LEAF_SIZE], tree.fact[b, OWNER] = 0, 0, NONE
    tree.bucket[b, FIRST_PARTITION], tree.bucket[b, ATTRIBUTE_MASK], tree.fact[b, PARTITIONS] = (
        NONE,
        0,
        0,
    )
    tree.bucket[b, LEFT], tree.bucket[b, RIGHT] = NONE, NONE
    tree.fact[b, HASHED] = NONE  # marks it as free
    tree.state[FREE_BUCKET] = b


@plain_kernel
def drop_hashed_bucket(tree, b):
    """Take a hashed bucket out of its partition."""
    # out of the directory, out of the chain, and into the chain of free buckets
    p, after, before = tree.fact[b, OWNER], tree.fact[b, NEXT_HASHED], tree.fact[b, PREVIOUS_HASHED]
    remove_entry(tree.table, bucket_owner(p), tree.fact[b, KEY])
    if before == NONE:
        tree.partition[p, FIRST_HASHED] = after
    else:
        tree.fact[before, NEXT_HASHED] = after
    if after != NONE:
        tree.fact[after, PREVIOUS_HASHED] = before
    tree.partition[p, HASHED_COUNT] -= 1
    free_bucket(tree, b)


@plain_kernel
def drop_partition(tree, p):
    """Take a partition without buckets out of its bucket."""
    b, after, before = (
        tree.partition[p, HOME],
        tree.partition[p, NEXT_PARTITION],
        tree.partition[p, PREVIOUS_PARTITION],
    )
    remove_entry(tree.table, partition_owner(b), tree.partition[p, ATTRIBUTE])
    if before == NONE:
        tree.bucket[b, FIRST_PARTITION] = after
    else:
        tree.partition[before, NEXT_PARTITION] = after
    if after != NONE:
        tree.partition[after, PREVIOUS_PARTITION] = before
    tree.fact[b, PARTITIONS] -= 1
    # Attributes share bits of the mask, so it is made from those that are left.
    mask, other = np.int64(0), tree.bucket[b, FIRST_PARTITION]
    while other != NONE:
        mask |= attribute_bit(tree.partition[other, ATTRIBUTE])
        other = tree.partition[other, NEXT_PARTITION]
    tree.bucket[b, ATTRIBUTE_MASK] = mask
    tree.partition[p, NEXT_PARTITION] = tree.state[FREE_PARTITION]
    tree.partition[p, ATTRIBUTE] = NONE  # marks it as free
    tree.state[FREE_PARTITION] = p


@plain_kernel
def find_middle(low, high):
    """Return the last point of the lower half; no sum overflows."""
    return (low >> 1) + (high >> 1) + (low & high & 1)


@plain_kernel
def clamp(point, low, high):
    """Return the point of a domain that is nearest to a point."""
    return min(max(point, low), high)


@plain_kernel
def draw_random(state):
    """Return a random number from 0 to 1, not included, by xorshift."""
    x = np.uint64(state[RANDOM_STATE])
    x ^= (x << np.uint64(13)) & np.uint64(0x7FFFFFFFFFFFFFFF)
    x ^= x >> np.uint64(7)
    x ^= (x << np.uint64(17)) & np.uint64(0x7FFFFFFFFFFFFFFF)
    state[RANDOM_STATE] = np.int64(x)
    return np.float64(x >> np.uint64(11)) / np.float64(1 << 52)


@plain_kernel
def is_partitioned_by(tree, b, attribute):
    """Return whether the path to a bucket is partitioned by an attribute."""
    owner = tree.fact[b, OWNER]
    while owner != NONE:
        if tree.partition[owner, ATTRIBUTE] == attribute:
            return True
        owner = tree.fact[tree.partition[owner, HOME], OWNER]
    return False


@plain_kernel
def choose_partition(tree, expressions, predicates, policy, b, e):
    """Return the partition of a bucket that an expression joins, and its predicate there; or NONE.

    It is the one of the highest score, or now and then any (exploration, section 5.2). With ranked
    directories those of equality predicates come before all others.
    """
    best, chosen, highest, rank = np.int64(NONE), np.int64(NONE), -np.inf, -1
    explore = policy.exploit < 1.0 and draw_random(tree.state) >= policy.exploit
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        # Only what tells values of one attribute apart leads to a partition, and each attribute
        # at most once on a path.
        if not predicates.flags[p] & CUTTABLE:
            continue
        attribute = np.int64(predicates.column[p])
        partition = look_up(tree.table, partition_owner(b), attribute)
        if partition == NONE or is_partitioned_by(tree, b, attribute):
            continue
        # equality comes first where directories are ranked, then the score decides
        its_rank = 1 if policy.directory == RANKED and predicates.flags[p] & EQUALITY else 0
        its_score = (
            draw_random(tree.state) if explore else score_partition(tree, policy.alpha, partition)
        )
        if its_rank > rank or (its_rank == rank and its_score > highest):
            best, chosen, highest, rank = partition, np.int64(p), its_score, its_rank
    return best, chosen


@plain_kernel
def score_partition(tree, alpha, partition):
    """Return the rank of a partition: its gain, by Equation 14, less what it was seen to lose."""
    return (1.0 - alpha) * tree.partition[partition, PARTITION_SIZE] - tree.penalty[partition]


@plain_kernel
def find_bucket(tree, predicates, policy, partition, p):
    """Return the smallest bucket of a partition that encloses a predicate; make hashed ones."""
    if policy.directory != GENERIC and predicates.flags[p] & EQUALITY:
        # a single value has a bucket of its own, found by hashing
        key = predicates.key[p]
        b = look_up(tree.table, bucket_owner(partition), key)
        if b == NONE:
            b = add_hashed_bucket(tree, partition, key, predicates.least[p], policy.capacity)
        return b
    # Others descend the binary tree of halved intervals, as far as one half holds them entirely.
    attribute = tree.partition[partition, ATTRIBUTE]
    start, end = tree.domain_low[attribute], tree.domain_high[attribute]
    b = tree.partition[partition, TOP_BUCKET]
    if b == NONE:
        b = add_bucket(tree, partition, NONE, start, end, policy.capacity)
        tree.partition[partition, TOP_BUCKET] = b
    if policy.directory == SPECIALISED:
        return b
    low, high = clamp(predicates.least[p], start, end), clamp(predicates.most[p], start, end)
    while tree.bucket[b, LEFT] != NONE:
        cut = find_middle(tree.bucket[b, LOW], tree.bucket[b, HIGH])
        if high <= cut:
            b = tree.bucket[b, LEFT]
        elif low > cut:
            b = tree.bucket[b, RIGHT]
        else:
            break
    return b


@plain_kernel
def find_home(tree, expressions, predicates, policy, e):
    """Return the bucket whose leaf an expression goes to."""
    # from the root on, until a bucket has no partition for any of its attributes
    b = np.int64(ROOT)
    while tree.bucket[b, ATTRIBUTE_MASK]:
        partition, p = choose_partition(tree, expressions, predicates, policy, b, e)
        if partition == NONE:
            break
        b = find_bucket(tree, predicates, policy, partition, p)
    return b
