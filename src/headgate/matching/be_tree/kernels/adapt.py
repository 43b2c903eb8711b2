"""Self-adjustment: move what ranks too low, or was cut by too small a domain.

"Analysis and optimization for Boolean expression indexing", section 5.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel, plain_kernel
from headgate.matching.be_tree.kernels.change import (
    detach_partition,
    dissolve_partition,
    list_expressions_below,
    shrink_upwards,
)
from headgate.matching.be_tree.kernels.cut import find_predicate, mark_pending
from headgate.matching.be_tree.kernels.leaves import is_subsumed, list_leaf, remove_expression
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    CAPACITY,
    CHANGES,
    DISCARDED,
    FALSE_CANDIDATES,
    HASHED,
    HOME,
    LEAF_COUNT,
    LIVE_EXPRESSIONS,
    NONE,
    OWNER,
    PARTITION_SIZE,
    USED_BUCKETS,
    USED_PARTITIONS,
    VISITS,
    header_size,
)

MIN_OPERATIONS = 16  # that a node has seen before it is judged


@kernel
def recycle_attributes(tree, expressions, predicates, policy, wanted):
    """Take out all partitions by the `wanted` attributes; return the expressions below them."""
    # Of two partitions, one below the other, either may have the lower number, as free numbers are
    # used again. The upper one takes the lower with it if it is first; else both are taken out.
    recycled = np.empty(tree.state[LIVE_EXPRESSIONS], np.int64)
    used = np.int64(0)  # not a literal, for which `take_out_partition` would be compiled twice
    for partition in range(tree.state[USED_PARTITIONS]):
        attribute = tree.partition[partition, ATTRIBUTE]
        if attribute != NONE and wanted[attribute]:
            used = take_out_partition(
                tree, expressions, predicates, policy, partition, recycled, used
            )
    tree.state[LIVE_EXPRESSIONS] -= used
    return recycled[:used]


@kernel
def take_out_partition(tree, expressions, predicates, policy, partition, recycled, used):
    """Take a partition out of the tree, and append its expressions; return how many there are."""
    # the first `used` entries of `recycled` are taken; what is above may be too small now
    home, inside = tree.partition[partition, HOME], list_expressions_below(tree, partition)
    detach_partition(tree, expressions, partition, inside)
    recycled[used : used + len(inside)] = inside
    shrink_upwards(tree, expressions, predicates, policy, home, header_size(policy.bloom))
    return used + len(inside)


@plain_kernel
def fit_leaves(tree, expressions, predicates, policy):
    """Fit the leaves to another capacity, as far as the arrays have room.

    Those that are over it are to be cut, and partitions that a leaf can hold are dissolved.
    """
    fact = tree.fact
    for b in range(tree.state[USED_BUCKETS]):
        if fact[b, HASHED] != NONE:
            fact[b, CAPACITY] = policy.capacity
    # Free numbers are used again, so this is no order by depth. It needs none: a partition counts
    # what lies at any depth below it, and one that went with another is marked as free.
    for partition in range(tree.state[USED_PARTITIONS] - 1, -1, -1):
        if tree.partition[partition, ATTRIBUTE] == NONE:
            continue
        home = tree.partition[partition, HOME]
        together = fact[home, LEAF_COUNT] + tree.partition[partition, PARTITION_SIZE]
        if together <= policy.capacity:
            dissolve_partition(
                tree, expressions, predicates, policy, partition, header_size(policy.bloom)
            )
    for b in range(tree.state[USED_BUCKETS]):
        if fact[b, HASHED] != NONE:
            mark_pending(tree, b)


@kernel
def rank_nodes(tree, expressions, predicates, alpha, beta):
    """Return the rank of each leaf and partition, and the operations that partitions have seen.

    Equations 10 to 13; the rank of a partition is the sum of its leaves' ranks.

    Equation 10 sums over children, as the errata say. Nothing is evaluated but in leaves, so what
    an inner node discards is what its leaves do.
    """
    leaf = np.zeros(tree.state[USED_BUCKETS], np.float64)
    inner = np.zeros(tree.state[USED_PARTITIONS], np.float64)
    seen = np.zeros(tree.state[USED_PARTITIONS], np.int64)
    for b in range(tree.state[USED_BUCKETS]):
        if tree.fact[b, HASHED] == NONE or tree.fact[b, LEAF_COUNT] == 0:
            continue
        # Go up to the root: each partition covers or subsumes a predicate of every expression.
        inside = list_leaf(tree, b)
        subsumed, covered = 0, 0
        owner, at = tree.fact[b, OWNER], b
        while owner != NONE:
            count = count_subsumed(tree, expressions, predicates, at, inside)
            subsumed += count
            covered += len(inside) - count
            at = tree.partition[owner, HOME]
            owner = tree.fact[at, OWNER]
        gain = (1.0 - beta) * subsumed + beta * covered
        loss = tree.fact[b, DISCARDED] / max(1, tree.fact[b, VISITS])
        leaf[b] = (1.0 - alpha) * gain - alpha * loss
        # Add rank and operations to every partition above.
        owner = tree.fact[b, OWNER]
        while owner != NONE:
            inner[owner] += leaf[b]
            seen[owner] += tree.fact[b, VISITS] + tree.fact[b, CHANGES]
            owner = tree.fact[tree.partition[owner, HOME], OWNER]
    return leaf, inner, seen


@plain_kernel
def count_subsumed(tree, expressions, predicates, b, inside):
    """Return how many of the expressions have a predicate that a bucket subsumes."""
    attribute = tree.partition[tree.fact[b, OWNER], ATTRIBUTE]
    count = 0
    for e in inside:
        p = find_predicate(expressions, predicates, e, attribute)
        count += is_subsumed(tree, predicates, b, p)
    return count


@kernel
def recycle_low_ranked(tree, expressions, predicates, policy, threshold, window):
    """Take out partitions and leaves whose rank is below the threshold; return their expressions.

    A node is judged when it has seen as many operations as the window says, and begins a new one
    then. Partitions get their ranks as scores, so that what is reinserted avoids bad ones.
    """
    leaf, inner, operations = rank_nodes(tree, expressions, predicates, policy.alpha, policy.beta)
    for partition in range(len(inner)):
        gain = (1.0 - policy.alpha) * tree.partition[partition, PARTITION_SIZE]
        tree.penalty[partition] = gain - inner[partition]
    recycled = np.empty(tree.state[LIVE_EXPRESSIONS], np.int64)
    used = np.int64(0)
    fact = tree.fact
    for partition in range(len(inner)):
        if tree.partition[partition, ATTRIBUTE] == NONE or inner[partition] >= threshold:
            continue
        size = tree.partition[partition, PARTITION_SIZE]
        if operations[partition] >= max(MIN_OPERATIONS, window * size):
            used = take_out_partition(
                tree, expressions, predicates, policy, partition, recycled, used
            )
    # Then the leaves of what is left; the root's own leaf has nowhere else to go.
    for b in range(len(leaf)):
        seen = fact[b, VISITS] + fact[b, CHANGES]
        if fact[b, HASHED] == NONE or fact[b, OWNER] == NONE:
            continue
        if seen < max(MIN_OPERATIONS, window * fact[b, LEAF_COUNT]):
            continue
        fact[b, VISITS], fact[b, DISCARDED], fact[b, FALSE_CANDIDATES], fact[b, CHANGES] = (
            0,
            0,
            0,
            0,
        )
        if leaf[b] < threshold and fact[b, LEAF_COUNT]:
            for e in list_leaf(tree, b):
                remove_expression(tree, expressions, e)
                recycled[used] = e
                used += 1
            shrink_upwards(tree, expressions, predicates, policy, b, header_size(policy.bloom))
    tree.state[LIVE_EXPRESSIONS] -= used
    return recycled[:used]


@kernel
def measure_false_rate(tree, expressions, predicates):
    """Return how often an expression that a covered predicate led to is a false candidate.

    This is φ of Equation 15. A leaf counts as a whole, unless its bucket subsumes the predicates of
    all its expressions.
    """
    # the root has no owner, and a hashed bucket subsumes what is in it
    seen, false = 0, 0
    for b in range(tree.state[USED_BUCKETS]):
        if tree.fact[b, HASHED] != 0 or tree.fact[b, OWNER] == NONE or not tree.fact[b, VISITS]:
            continue
        inside = list_leaf(tree, b)
        if count_subsumed(tree, expressions, predicates, b, inside) < len(inside):
            seen += tree.fact[b, VISITS] * len(inside)
            false += tree.fact[b, FALSE_CANDIDATES]
    return min(1.0, false / max(1, seen))
