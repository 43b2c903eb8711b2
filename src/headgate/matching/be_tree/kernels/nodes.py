"""Buckets and partitions come and go; what is free is chained, and used again first."""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel
from headgate.matching.be_tree.kernels.pools import (
    AFTER,
    ATTRIBUTE,
    BEFORE,
    BEGIN,
    BUCKETS,
    CAPACITY,
    CHANGES,
    COUNT,
    CUTTABLE,
    DISCARDED,
    EQUALITY,
    FALSE_ONES,
    FIRST,
    FIRST_HASHED,
    FREE_BUCKET,
    FREE_PARTITION,
    GENERIC,
    HASHED,
    HASHES,
    HIGH,
    HOME,
    KEY,
    LEFT,
    LOW,
    MASK,
    NEXT,
    NONE,
    OWNER,
    PARENT,
    PARTITIONS,
    PREVIOUS,
    RANDOM,
    RANKED,
    RIGHT,
    ROOM,
    ROOT,
    SIZE,
    SPECIALISED,
    TOP,
    USED,
    USED_PARTITIONS,
    VISITS,
    mask_of,
)

OWNER_FIELD, VALUE_FIELD, TARGET_FIELD = 0, 1, 2


@inlined_kernel
def of_partition(bucket):
    return 2 * bucket


@inlined_kernel
def of_bucket(partition):
    return 2 * partition + 1


@kernel
def slot_of(table, owner, value):
    """Where a search for these begins: shifts alone, as products would overflow."""
    x = np.uint64(value & np.int64(0x7FFFFFFFFFFFFFFF)) ^ (np.uint64(owner) << np.uint64(21))
    x ^= x >> np.uint64(33)
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    x ^= x >> np.uint64(29)
    return np.int64(x & np.uint64(len(table) - 1))


@kernel
def found(table, owner, value):
    """The target, or NONE."""
    slot = slot_of(table, owner, value)
    mask = len(table) - 1
    while table[slot, OWNER_FIELD] != NONE:
        if table[slot, OWNER_FIELD] == owner and table[slot, VALUE_FIELD] == value:
            return table[slot, TARGET_FIELD]
        slot = (slot + 1) & mask
    return np.int64(NONE)


@kernel
def enter(table, owner, value, target):
    """Add what is not there yet. The table must have room: it is never more than half full."""
    slot = slot_of(table, owner, value)
    mask = len(table) - 1
    while table[slot, OWNER_FIELD] != NONE:
        slot = (slot + 1) & mask
    table[slot, OWNER_FIELD], table[slot, VALUE_FIELD] = owner, value
    table[slot, TARGET_FIELD] = target


@kernel
def erase(table, owner, value):
    """Take out what is there, and move up what was pushed past it."""
    mask = len(table) - 1
    slot = slot_of(table, owner, value)
    while table[slot, OWNER_FIELD] != owner or table[slot, VALUE_FIELD] != value:
        slot = (slot + 1) & mask
    hole, slot = slot, (slot + 1) & mask
    while table[slot, OWNER_FIELD] != NONE:
        home = slot_of(table, table[slot, OWNER_FIELD], table[slot, VALUE_FIELD])
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            table[hole] = table[slot]
            hole = slot
        slot = (slot + 1) & mask
    table[hole, OWNER_FIELD] = NONE


@kernel
def rehashed(table, size):
    """The same entries in a table of another size, a power of two."""
    larger = np.full((size, 4), NONE, np.int64)
    for slot in range(len(table)):
        if table[slot, OWNER_FIELD] != NONE:
            owner, value, target = table[slot, 0], table[slot, 1], table[slot, 2]
            enter(larger, owner, value, target)
    return larger


@kernel
def new_bucket(tree, owner, parent, low, high, capacity):
    """A bucket without expressions that nothing leads to yet."""
    b = tree.state[FREE_BUCKET]
    if b == NONE:
        b = tree.state[BUCKETS]
        tree.state[BUCKETS] += 1
    else:
        tree.state[FREE_BUCKET] = tree.fact[b, NEXT]
    bucket, fact = tree.bucket, tree.fact
    bucket[b, LOW], bucket[b, HIGH] = low, high
    bucket[b, LEFT], bucket[b, RIGHT], bucket[b, FIRST] = NONE, NONE, NONE
    bucket[b, BEGIN], bucket[b, USED], bucket[b, MASK] = 0, 0, 0
    fact[b, PARTITIONS] = 0
    fact[b, COUNT], fact[b, CAPACITY], fact[b, ROOM] = 0, capacity, 0
    fact[b, PARENT], fact[b, OWNER] = parent, owner
    fact[b, NEXT], fact[b, PREVIOUS] = NONE, NONE
    fact[b, KEY], fact[b, HASHED] = 0, 0
    fact[b, VISITS], fact[b, DISCARDED], fact[b, FALSE_ONES], fact[b, CHANGES] = 0, 0, 0, 0
    return b


@kernel
def new_hashed(tree, p, key, point, capacity):
    """The bucket of a partition for one value, which `point` stands for."""
    b = new_bucket(tree, p, NONE, point, point, capacity)
    tree.fact[b, KEY], tree.fact[b, HASHED] = key, 1
    first = tree.partition[p, FIRST_HASHED]
    tree.fact[b, NEXT] = first
    if first != NONE:
        tree.fact[first, PREVIOUS] = b
    tree.partition[p, FIRST_HASHED] = b
    tree.partition[p, HASHES] += 1
    enter(tree.table, of_bucket(p), key, b)
    return b


@kernel
def new_partition(tree, b, attribute):
    """A partition of a bucket, without buckets of its own."""
    p = tree.state[FREE_PARTITION]
    if p == NONE:
        p = tree.state[USED_PARTITIONS]
        tree.state[USED_PARTITIONS] += 1
    else:
        tree.state[FREE_PARTITION] = tree.partition[p, AFTER]
    partition = tree.partition
    partition[p, ATTRIBUTE], partition[p, TOP], partition[p, HOME] = attribute, NONE, b
    partition[p, FIRST_HASHED], partition[p, HASHES], partition[p, SIZE] = NONE, 0, 0
    tree.penalty[p] = 0.0
    first = tree.bucket[b, FIRST]
    partition[p, AFTER], partition[p, BEFORE] = first, NONE
    if first != NONE:
        partition[first, BEFORE] = p
    tree.bucket[b, FIRST] = p
    tree.bucket[b, MASK] |= mask_of(attribute)
    tree.fact[b, PARTITIONS] += 1
    enter(tree.table, of_partition(b), attribute, p)
    return p


@kernel
def free_bucket(tree, b):
    """Give back a bucket that has nothing and that nothing leads to any more."""
    tree.fact[b, NEXT] = tree.state[FREE_BUCKET]
    tree.fact[b, COUNT], tree.bucket[b, USED], tree.fact[b, OWNER] = 0, 0, NONE
    tree.bucket[b, FIRST], tree.bucket[b, MASK], tree.fact[b, PARTITIONS] = NONE, 0, 0
    tree.bucket[b, LEFT], tree.bucket[b, RIGHT] = NONE, NONE
    tree.fact[b, HASHED] = NONE  # marks it as free
    tree.state[FREE_BUCKET] = b


@kernel
def drop_hashed(tree, b):
    """Take a hashed bucket out of its partition."""
    p, after, before = tree.fact[b, OWNER], tree.fact[b, NEXT], tree.fact[b, PREVIOUS]
    erase(tree.table, of_bucket(p), tree.fact[b, KEY])
    if before == NONE:
        tree.partition[p, FIRST_HASHED] = after
    else:
        tree.fact[before, NEXT] = after
    if after != NONE:
        tree.fact[after, PREVIOUS] = before
    tree.partition[p, HASHES] -= 1
    free_bucket(tree, b)


@kernel
def drop_partition(tree, p):
    """Take a partition without buckets out of its bucket."""
    b, after, before = tree.partition[p, HOME], tree.partition[p, AFTER], tree.partition[p, BEFORE]
    erase(tree.table, of_partition(b), tree.partition[p, ATTRIBUTE])
    if before == NONE:
        tree.bucket[b, FIRST] = after
    else:
        tree.partition[before, AFTER] = after
    if after != NONE:
        tree.partition[after, BEFORE] = before
    tree.fact[b, PARTITIONS] -= 1
    mask, other = np.int64(0), tree.bucket[b, FIRST]
    while other != NONE:
        mask |= mask_of(tree.partition[other, ATTRIBUTE])
        other = tree.partition[other, AFTER]
    tree.bucket[b, MASK] = mask
    tree.partition[p, AFTER] = tree.state[FREE_PARTITION]
    tree.partition[p, ATTRIBUTE] = NONE  # marks it as free
    tree.state[FREE_PARTITION] = p


@kernel
def middle(low, high):
    """The last point of the lower half; no sum overflows."""
    return (low >> 1) + (high >> 1) + (low & high & 1)


@kernel
def clamped(point, low, high):
    return min(max(point, low), high)


@kernel
def random_share(state):
    """A number from 0 to 1, not included, by xorshift."""
    x = np.uint64(state[RANDOM])
    x ^= (x << np.uint64(13)) & np.uint64(0x7FFFFFFFFFFFFFFF)
    x ^= x >> np.uint64(7)
    x ^= (x << np.uint64(17)) & np.uint64(0x7FFFFFFFFFFFFFFF)
    state[RANDOM] = np.int64(x)
    return np.float64(x >> np.uint64(11)) / np.float64(1 << 52)


@kernel
def is_used(tree, b, attribute):
    """Has the path to a bucket been partitioned by an attribute?"""
    owner = tree.fact[b, OWNER]
    while owner != NONE:
        if tree.partition[owner, ATTRIBUTE] == attribute:
            return True
        owner = tree.fact[tree.partition[owner, HOME], OWNER]
    return False


@kernel
def best_partition(tree, expressions, predicates, policy, b, e):
    """The partition of a bucket that an expression goes to, and its predicate there; or NONE.

    It is the one of the highest score, or now and then any (exploration, section 5.2). With ranked
    directories those of equality predicates come before all others.
    """
    best, chosen, highest, rank = np.int64(NONE), np.int64(NONE), -np.inf, -1
    explore = policy.exploit < 1.0 and random_share(tree.state) >= policy.exploit
    for k in range(expressions.start[e], expressions.start[e] + expressions.count[e]):
        p = expressions.predicate[k]
        if not predicates.flags[p] & CUTTABLE:
            continue
        attribute = np.int64(predicates.column[p])
        partition = found(tree.table, of_partition(b), attribute)
        if partition == NONE or is_used(tree, b, attribute):
            continue
        its_rank = 1 if policy.directory == RANKED and predicates.flags[p] & EQUALITY else 0
        its_score = random_share(tree.state) if explore else score(tree, policy.alpha, partition)
        if its_rank > rank or (its_rank == rank and its_score > highest):
            best, chosen, highest, rank = partition, np.int64(p), its_score, its_rank
    return best, chosen


@kernel
def score(tree, alpha, partition):
    """The rank of a partition: what it gains, by Equation 14, without what it was seen to lose."""
    return (1.0 - alpha) * tree.partition[partition, SIZE] - tree.penalty[partition]


@kernel
def bucket_for(tree, predicates, policy, partition, p):
    """The smallest bucket of a partition that encloses a predicate; hashed ones are made."""
    if policy.directory != GENERIC and predicates.flags[p] & EQUALITY:
        key = predicates.key[p]
        b = found(tree.table, of_bucket(partition), key)
        if b == NONE:
            b = new_hashed(tree, partition, key, predicates.least[p], policy.capacity)
        return b
    attribute = tree.partition[partition, ATTRIBUTE]
    start, end = tree.domain_low[attribute], tree.domain_high[attribute]
    b = tree.partition[partition, TOP]
    if b == NONE:
        b = new_bucket(tree, partition, NONE, start, end, policy.capacity)
        tree.partition[partition, TOP] = b
    if policy.directory == SPECIALISED:
        return b
    low, high = clamped(predicates.least[p], start, end), clamped(predicates.most[p], start, end)
    while tree.bucket[b, LEFT] != NONE:
        cut = middle(tree.bucket[b, LOW], tree.bucket[b, HIGH])
        if high <= cut:
            b = tree.bucket[b, LEFT]
        elif low > cut:
            b = tree.bucket[b, RIGHT]
        else:
            break
    return b


@kernel
def home_of(tree, expressions, predicates, policy, e):
    """The bucket whose leaf an expression goes to."""
    b = np.int64(ROOT)
    while tree.bucket[b, MASK]:
        partition, p = best_partition(tree, expressions, predicates, policy, b, e)
        if partition == NONE:
            break
        b = bucket_for(tree, predicates, policy, partition, p)
    return b
