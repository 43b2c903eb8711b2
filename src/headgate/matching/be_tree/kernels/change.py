"""Insert and delete expressions, each in O(k log N): k predicates, and a domain of N points.

Insertion follows one path (Algorithm 3). Deletion is our own design, as the paper's is in an
appendix that is not at hand: an expression knows the bucket that holds it, so nothing is searched.
What a deletion leaves too small is removed on the way up: halves that hold little are merged (Rule
3), and partitions of fewer than `min_size` expressions are dissolved.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, plain_kernel
from headgate.matching.be_tree.kernels.cut import cut_pending, fit_capacity, mark_pending
from headgate.matching.be_tree.kernels.leaves import (
    append_expression,
    has_room,
    is_empty_bucket,
    list_leaf,
    max_record_size,
    remove_expression,
    reserve_room,
)
from headgate.matching.be_tree.kernels.nodes import (
    draw_random,
    drop_hashed_bucket,
    drop_partition,
    find_home,
    free_bucket,
)
from headgate.matching.be_tree.kernels.pools import (
    CAPACITY,
    FIRST_HASHED,
    FIRST_PARTITION,
    HASHED,
    HOME,
    LEAF_COUNT,
    LEFT,
    LIVE_EXPRESSIONS,
    NEXT_HASHED,
    NEXT_PARTITION,
    NONE,
    OWNER,
    PARENT,
    PARTITION_SIZE,
    PENDING_COUNT,
    RIGHT,
    TOP_BUCKET,
    USED_BUCKETS,
    header_size,
)


@plain_kernel
def insert_expressions(tree, expressions, predicates, policy, numbers, begin, cutting):
    """Insert expressions one after the other; return how many of `numbers` are in.

    It ends early where the arrays must grow first: call it again then.
    """
    # what an earlier call has left over the capacity
    if cutting and not cut_pending(tree, expressions, predicates, policy):
        return begin
    head = header_size(policy.bloom)
    for i in range(begin, len(numbers)):
        e = numbers[i]
        # room for whatever the next steps may add
        if tree.state[USED_BUCKETS] + 2 > len(tree.bucket) or tree.state[PENDING_COUNT] + 2 > len(
            tree.pending
        ):
            return i
        b = find_home(tree, expressions, predicates, policy, e)  # may make one or two buckets
        if not has_room(tree, b, max_record_size(expressions, e, head)):
            return i
        append_expression(tree, expressions, predicates, policy.bloom, b, e)
        tree.state[LIVE_EXPRESSIONS] += 1
        if not cutting:
            continue
        if policy.reinserted > 0.0 and tree.fact[b, LEAF_COUNT] > tree.fact[b, CAPACITY]:
            reinsert_expressions(tree, expressions, predicates, policy, b, head)
        mark_pending(tree, b)
        if not cut_pending(tree, expressions, predicates, policy):
            return i + 1
    return len(numbers)


@kernel
def reinsert_expressions(tree, expressions, predicates, policy, b, head):
    """Move expressions of a full leaf that have a better place by now (section 5.2)."""
    # a share of them by chance; the list was made before any of them moves
    for e in list_leaf(tree, b):
        if draw_random(tree.state) < policy.reinserted:
            if tree.state[USED_BUCKETS] + 2 > len(tree.bucket) or tree.state[
                PENDING_COUNT
            ] + 4 > len(tree.pending):
                break
            to = find_home(tree, expressions, predicates, policy, e)
            if to != b and has_room(tree, to, max_record_size(expressions, e, head)):
                remove_expression(tree, expressions, e)
                append_expression(tree, expressions, predicates, policy.bloom, to, e)
                mark_pending(tree, to)
    shrink_upwards(tree, expressions, predicates, policy, b, head)


@plain_kernel
def remove_expressions(tree, expressions, predicates, policy, numbers, begin):
    """Delete expressions one after the other; return how many of `numbers` are out.

    It ends early where the arrays must grow first: call it again then.
    """
    head = header_size(policy.bloom)
    if not cut_pending(tree, expressions, predicates, policy):
        return begin
    for i in range(begin, len(numbers)):
        b = remove_expression(tree, expressions, numbers[i])
        tree.state[LIVE_EXPRESSIONS] -= 1
        # a leaf that was extended may shrink to fewer multiples of the capacity
        tree.fact[b, CAPACITY] = fit_capacity(tree.fact[b, LEAF_COUNT], policy.capacity)
        shrink_upwards(tree, expressions, predicates, policy, b, head)
        if not cut_pending(tree, expressions, predicates, policy):
            return i + 1
    return len(numbers)


@plain_kernel
def shrink_upwards(tree, expressions, predicates, policy, b, head):
    """Merge and dissolve what a deletion has left too small, from a bucket upwards."""
    # Each turn removes one node and goes on with the bucket above it; it ends at the root, at a
    # node that must stay, or where the array of records has no room to move expressions up.
    while tree.fact[b, OWNER] != NONE:
        owner, parent = tree.fact[b, OWNER], tree.fact[b, PARENT]
        home = tree.partition[owner, HOME]
        if tree.partition[owner, PARTITION_SIZE] < policy.min_size:
            # too few expressions for a partition: they move to the leaf above
            if not dissolve_partition(tree, expressions, predicates, policy, owner, head):
                return
            b = home
        elif tree.fact[b, HASHED] == 1:
            # a value that no expression has any more
            if not is_empty_bucket(tree, b):
                return
            drop_hashed_bucket(tree, b)
            b = home
        elif parent == NONE:
            # the top of a binary tree that is empty
            if not is_empty_bucket(tree, b):
                return
            tree.partition[owner, TOP_BUCKET] = NONE
            free_bucket(tree, b)
            b = home
        else:
            # a half, which may fit into the bucket that was halved
            if not merge_halves(tree, expressions, predicates, policy, parent, head):
                return
            b = parent


@kernel
def merge_halves(tree, expressions, predicates, policy, b, head):
    """Merge a bucket with its halves if all are without partitions and hold little (Rule 3)."""
    left, right = tree.bucket[b, LEFT], tree.bucket[b, RIGHT]
    if tree.bucket[b, FIRST_PARTITION] != NONE:
        return False
    for half in (left, right):
        if tree.bucket[half, FIRST_PARTITION] != NONE or tree.bucket[half, LEFT] != NONE:
            return False
    total = tree.fact[b, LEAF_COUNT] + tree.fact[left, LEAF_COUNT] + tree.fact[right, LEAF_COUNT]
    # at half the capacity, so that the next insertion does not halve it again
    if 2 * total > policy.capacity:
        return False
    need = 0
    for half in (left, right):
        for e in list_leaf(tree, half):
            need += max_record_size(expressions, e, head)
    if not has_room(tree, b, need):
        return False
    reserve_room(tree, b, need)
    for half in (left, right):
        for e in list_leaf(tree, half):
            remove_expression(tree, expressions, e)
            append_expression(tree, expressions, predicates, policy.bloom, b, e)
    tree.bucket[b, LEFT], tree.bucket[b, RIGHT] = NONE, NONE
    free_bucket(tree, left)
    free_bucket(tree, right)
    return True


@kernel
def dissolve_partition(tree, expressions, predicates, policy, partition, head):
    """Move the few expressions of a partition to the leaf above it, and drop the partition."""
    # make room for all of them first, or leave everything as it is
    home = tree.partition[partition, HOME]
    inside = list_expressions_below(tree, partition)
    need = 0
    for e in inside:
        need += max_record_size(expressions, e, head)
    if not has_room(tree, home, need):
        return False
    reserve_room(tree, home, need)
    detach_partition(tree, expressions, partition, inside)
    for e in inside:
        append_expression(tree, expressions, predicates, policy.bloom, home, e)
    mark_pending(tree, home)
    return True


@kernel
def list_expressions_below(tree, partition):
    """Return the expressions in all leaves below a partition."""
    # a partition counts them, so the array has the right size at once
    inside = np.empty(tree.partition[partition, PARTITION_SIZE], np.int64)
    used = 0
    for b in list_buckets_below(tree, partition):
        for e in list_leaf(tree, b):
            inside[used] = e
            used += 1
    return inside


@kernel
def list_buckets_below(tree, partition):
    """Return all buckets below a partition, each before those that are below it."""
    return list_buckets(tree, -1 - partition)


@kernel
def list_buckets(tree, node):
    """Return all buckets from a node downwards, depth first; partition p is the node −1 − p."""
    # `walk` is a stack of nodes that grows as needed; `buckets` is what was reached
    buckets, used = np.empty(16, np.int64), 0
    walk, depth = np.empty(16, np.int64), 1
    walk[0] = node
    while depth:
        depth -= 1
        node = walk[depth]
        if depth + 3 > len(walk):
            walk = np.concatenate((walk, np.empty(len(walk), np.int64)))
        if used == len(buckets):
            buckets = np.concatenate((buckets, np.empty(len(buckets), np.int64)))
        if node >= 0:
            buckets[used] = node
            used += 1
            # a bucket: below it are its halves and its partitions
            for half in (tree.bucket[node, LEFT], tree.bucket[node, RIGHT]):
                if half != NONE:
                    walk[depth] = half
                    depth += 1
            inner = tree.bucket[node, FIRST_PARTITION]
            while inner != NONE:
                if depth == len(walk):
                    walk = np.concatenate((walk, np.empty(len(walk), np.int64)))
                walk[depth] = -1 - inner
                depth += 1
                inner = tree.partition[inner, NEXT_PARTITION]
            continue
        # a partition: below it are its binary tree and its hashed buckets
        top = tree.partition[-1 - node, TOP_BUCKET]
        if top != NONE:
            walk[depth] = top
            depth += 1
        hashed = tree.partition[-1 - node, FIRST_HASHED]
        while hashed != NONE:
            if depth == len(walk):
                walk = np.concatenate((walk, np.empty(len(walk), np.int64)))
            walk[depth] = hashed
            depth += 1
            hashed = tree.fact[hashed, NEXT_HASHED]
    return buckets[:used]


@kernel
def detach_partition(tree, expressions, partition, inside):
    """Take a partition out of the tree, with all buckets and partitions below it."""
    # `inside` are its expressions, which then have no leaf
    owner = tree.fact[tree.partition[partition, HOME], OWNER]
    while owner != NONE:
        tree.partition[owner, PARTITION_SIZE] -= len(inside)
        owner = tree.fact[tree.partition[owner, HOME], OWNER]
    for e in inside:
        expressions.leaf[e] = NONE
    # From the bottom upwards, so that a bucket's partitions are empty when they are dropped.
    buckets = list_buckets_below(tree, partition)
    for i in range(len(buckets) - 1, -1, -1):
        b = buckets[i]
        while tree.bucket[b, FIRST_PARTITION] != NONE:
            drop_partition(tree, tree.bucket[b, FIRST_PARTITION])
        if tree.fact[b, HASHED] == 1:
            drop_hashed_bucket(tree, b)
        else:
            free_bucket(tree, b)
    drop_partition(tree, partition)
