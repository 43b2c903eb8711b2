"""Where an expression belongs: Algorithms 3 and 4 of the BE-Tree paper, without recursion.

Deviations: the greatest score starts at −∞ (the paper's listing leaves it open), and intervals are
halved at their middle, [low, m] and [m + 1, high].
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.directory import found, of_bucket, of_partition
from headgate.matching.be_tree.nodes import new_bucket, new_hashed
from headgate.matching.be_tree.pools import (
    ATTRIBUTE,
    CUTTABLE,
    EQUALITY,
    GENERIC,
    HIGH,
    HOME,
    LEFT,
    LOW,
    MASK,
    NONE,
    OWNER,
    RANDOM,
    RANKED,
    RIGHT,
    ROOT,
    SIZE,
    SPECIALISED,
    TOP,
)


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
