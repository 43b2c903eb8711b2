"""Insertion and deletion, each O(k log N): k predicates, and a domain of N points.

Insertion follows one path (Algorithm 3). Deletion is our own design, as the paper's is in an
appendix that is not at hand: an expression knows the bucket that holds it, so nothing is searched.
What a deletion leaves behind is put in order on the way up: halves that hold little are merged
(Rule 3), and partitions that are worth less than `fewest` expressions are given up.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.kernels.cut import cut_pending, fitting, pend
from headgate.matching.be_tree.kernels.leaves import (
    append,
    has_room,
    is_bare,
    longest,
    members,
    reserve,
    take_out,
)
from headgate.matching.be_tree.kernels.nodes import (
    drop_hashed,
    drop_partition,
    free_bucket,
    home_of,
    random_share,
)
from headgate.matching.be_tree.kernels.pools import (
    AFTER,
    BUCKETS,
    CAPACITY,
    COUNT,
    FIRST,
    FIRST_HASHED,
    HASHED,
    HOME,
    LEFT,
    LIVE,
    NEXT,
    NONE,
    OWNER,
    PARENT,
    PENDING,
    RIGHT,
    SIZE,
    TOP,
    header,
)


@kernel
def insert_all(tree, expressions, predicates, policy, numbers, begin, cutting):
    """Insert expressions one after the other; how many of `numbers` are in.

    It ends early where the pools must grow first: call it again then.
    """
    if cutting and not cut_pending(tree, expressions, predicates, policy):
        return begin
    head = header(policy.bloom)
    for i in range(begin, len(numbers)):
        e = numbers[i]
        if tree.state[BUCKETS] + 2 > len(tree.bucket) or tree.state[PENDING] + 2 > len(
            tree.pending
        ):
            return i
        b = home_of(tree, expressions, predicates, policy, e)
        if not has_room(tree, b, longest(expressions, e, head)):
            return i
        append(tree, expressions, predicates, policy.bloom, b, e)
        tree.state[LIVE] += 1
        if not cutting:
            continue
        if policy.reinserted > 0.0 and tree.fact[b, COUNT] > tree.fact[b, CAPACITY]:
            reinsert_some(tree, expressions, predicates, policy, b, head)
        pend(tree, b)
        if not cut_pending(tree, expressions, predicates, policy):
            return i + 1
    return len(numbers)


@kernel
def reinsert_some(tree, expressions, predicates, policy, b, head):
    """Before a leaf is cut, look whether some of it has a better place by now (section 5.2)."""
    for e in members(tree, b):
        if random_share(tree.state) < policy.reinserted:
            if tree.state[BUCKETS] + 2 > len(tree.bucket) or tree.state[PENDING] + 4 > len(
                tree.pending
            ):
                break
            to = home_of(tree, expressions, predicates, policy, e)
            if to != b and has_room(tree, to, longest(expressions, e, head)):
                take_out(tree, expressions, e)
                append(tree, expressions, predicates, policy.bloom, to, e)
                pend(tree, to)
    put_in_order(tree, expressions, predicates, policy, b, head)


@kernel
def remove_all(tree, expressions, predicates, policy, numbers, begin):
    """Delete expressions one after the other; how many of `numbers` are out.

    It ends early where the pools must grow first: call it again then.
    """
    head = header(policy.bloom)
    if not cut_pending(tree, expressions, predicates, policy):
        return begin
    for i in range(begin, len(numbers)):
        b = take_out(tree, expressions, numbers[i])
        tree.state[LIVE] -= 1
        tree.fact[b, CAPACITY] = fitting(tree.fact[b, COUNT], policy.capacity)
        put_in_order(tree, expressions, predicates, policy, b, head)
        if not cut_pending(tree, expressions, predicates, policy):
            return i + 1
    return len(numbers)


@kernel
def put_in_order(tree, expressions, predicates, policy, b, head):
    """Merge and give up what a deletion has left too small, from a bucket upwards."""
    while tree.fact[b, OWNER] != NONE:
        owner, parent = tree.fact[b, OWNER], tree.fact[b, PARENT]
        home = tree.partition[owner, HOME]
        if tree.partition[owner, SIZE] < policy.fewest:
            if not give_up(tree, expressions, predicates, policy, owner, head):
                return
            b = home
        elif tree.fact[b, HASHED] == 1:
            if not is_bare(tree, b):
                return
            drop_hashed(tree, b)
            b = home
        elif parent == NONE:
            if not is_bare(tree, b):
                return
            tree.partition[owner, TOP] = NONE
            free_bucket(tree, b)
            b = home
        else:
            if not merge_halves(tree, expressions, predicates, policy, parent, head):
                return
            b = parent


@kernel
def merge_halves(tree, expressions, predicates, policy, b, head):
    """Rule 3: if a bucket is open, and it and its halves hold little, they become one again."""
    left, right = tree.bucket[b, LEFT], tree.bucket[b, RIGHT]
    if tree.bucket[b, FIRST] != NONE:
        return False
    for half in (left, right):
        if tree.bucket[half, FIRST] != NONE or tree.bucket[half, LEFT] != NONE:
            return False
    total = tree.fact[b, COUNT] + tree.fact[left, COUNT] + tree.fact[right, COUNT]
    if 2 * total > policy.capacity:
        return False
    need = 0
    for half in (left, right):
        for e in members(tree, half):
            need += longest(expressions, e, head)
    if not has_room(tree, b, need):
        return False
    reserve(tree, b, need)
    for half in (left, right):
        for e in members(tree, half):
            take_out(tree, expressions, e)
            append(tree, expressions, predicates, policy.bloom, b, e)
    tree.bucket[b, LEFT], tree.bucket[b, RIGHT] = NONE, NONE
    free_bucket(tree, left)
    free_bucket(tree, right)
    return True


@kernel
def give_up(tree, expressions, predicates, policy, partition, head):
    """Move the few expressions of a partition to the leaf above it, and drop the partition."""
    home = tree.partition[partition, HOME]
    inside = below(tree, partition)
    need = 0
    for e in inside:
        need += longest(expressions, e, head)
    if not has_room(tree, home, need):
        return False
    reserve(tree, home, need)
    detach(tree, expressions, partition, inside)
    for e in inside:
        append(tree, expressions, predicates, policy.bloom, home, e)
    pend(tree, home)
    return True


@kernel
def below(tree, partition):
    """The expressions in all leaves below a partition."""
    inside = np.empty(tree.partition[partition, SIZE], np.int64)
    used = 0
    for b in buckets_below(tree, partition):
        for e in members(tree, b):
            inside[used] = e
            used += 1
    return inside


@kernel
def buckets_below(tree, partition):
    """All buckets below a partition, each before those that are below it."""
    return buckets_from(tree, -1 - partition)


@kernel
def buckets_from(tree, node):
    """A bucket, or a partition that is written as −1 − p, and all buckets below it, depth first."""
    found, used = np.empty(16, np.int64), 0
    walk, depth = np.empty(16, np.int64), 1
    walk[0] = node
    while depth:
        depth -= 1
        node = walk[depth]
        if depth + 3 > len(walk):
            walk = np.concatenate((walk, np.empty(len(walk), np.int64)))
        if used == len(found):
            found = np.concatenate((found, np.empty(len(found), np.int64)))
        if node >= 0:
            found[used] = node
            used += 1
            for half in (tree.bucket[node, LEFT], tree.bucket[node, RIGHT]):
                if half != NONE:
                    walk[depth] = half
                    depth += 1
            inner = tree.bucket[node, FIRST]
            while inner != NONE:
                if depth == len(walk):
                    walk = np.concatenate((walk, np.empty(len(walk), np.int64)))
                walk[depth] = -1 - inner
                depth += 1
                inner = tree.partition[inner, AFTER]
            continue
        top = tree.partition[-1 - node, TOP]
        if top != NONE:
            walk[depth] = top
            depth += 1
        hashed = tree.partition[-1 - node, FIRST_HASHED]
        while hashed != NONE:
            if depth == len(walk):
                walk = np.concatenate((walk, np.empty(len(walk), np.int64)))
            walk[depth] = hashed
            depth += 1
            hashed = tree.fact[hashed, NEXT]
    return found[:used]


@kernel
def detach(tree, expressions, partition, inside):
    """Take a partition out of the tree, with all buckets and partitions below it."""
    owner = tree.fact[tree.partition[partition, HOME], OWNER]
    while owner != NONE:
        tree.partition[owner, SIZE] -= len(inside)
        owner = tree.fact[tree.partition[owner, HOME], OWNER]
    for e in inside:
        expressions.leaf[e] = NONE
    found = buckets_below(tree, partition)
    for i in range(len(found) - 1, -1, -1):
        b = found[i]
        while tree.bucket[b, FIRST] != NONE:
            drop_partition(tree, tree.bucket[b, FIRST])
        if tree.fact[b, HASHED] == 1:
            drop_hashed(tree, b)
        else:
            free_bucket(tree, b)
    drop_partition(tree, partition)
