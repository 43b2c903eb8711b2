"""Buckets and partitions come and go; what is free is chained, and used again first."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.directory import enter, erase, of_bucket, of_partition
from headgate.matching.be_tree.pools import (
    AFTER,
    ATTRIBUTE,
    BEFORE,
    BEGIN,
    BUCKETS,
    CAPACITY,
    CHANGES,
    COUNT,
    DISCARDED,
    FALSE_ONES,
    FIRST,
    FIRST_HASHED,
    FREE_BUCKET,
    FREE_PARTITION,
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
    RIGHT,
    ROOM,
    SIZE,
    TOP,
    USED,
    USED_PARTITIONS,
    VISITS,
    mask_of,
)


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
