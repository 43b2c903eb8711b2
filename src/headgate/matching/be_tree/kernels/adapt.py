"""Self-adjustment (section 5): what ranks too low, or was cut by too small a domain, moves."""

from __future__ import annotations

import numpy as np

from headgate.jit import kernel
from headgate.matching.be_tree.kernels.change import below, detach, give_up, put_in_order
from headgate.matching.be_tree.kernels.cut import pend
from headgate.matching.be_tree.kernels.leaves import members, take_out
from headgate.matching.be_tree.kernels.pools import (
    ATTRIBUTE,
    BUCKETS,
    CAPACITY,
    CHANGES,
    COUNT,
    DISCARDED,
    FALSE_ONES,
    HASHED,
    HOME,
    LIVE,
    NONE,
    OWNER,
    SIZE,
    USED_PARTITIONS,
    VISITS,
    header,
)

FEWEST_OPERATIONS = 16  # before anything is judged


@kernel
def recycle_attributes(tree, expressions, predicates, policy, wanted):
    """Take out all partitions by some attributes, and everything below; gives the expressions."""
    found = np.empty(tree.state[LIVE], np.int64)
    used = 0
    for partition in range(tree.state[USED_PARTITIONS]):
        attribute = tree.partition[partition, ATTRIBUTE]
        if attribute != NONE and wanted[attribute]:
            used = taken_out(tree, expressions, predicates, policy, partition, found, used)
    tree.state[LIVE] -= used
    return found[:used]


@kernel
def taken_out(tree, expressions, predicates, policy, partition, found, used):
    """Add the expressions of a partition to those found, and take it out of the tree."""
    home, inside = tree.partition[partition, HOME], below(tree, partition)
    detach(tree, expressions, partition, inside)
    found[used : used + len(inside)] = inside
    put_in_order(tree, expressions, predicates, policy, home, header(policy.bloom))
    return used + len(inside)


@kernel
def coarsen(tree, expressions, predicates, policy):
    """Fit the leaves to another capacity: those that are over it are to be cut, and partitions that
    a leaf can hold are given up, as far as the pools have room."""
    fact = tree.fact
    for b in range(tree.state[BUCKETS]):
        if fact[b, HASHED] != NONE:
            fact[b, CAPACITY] = policy.capacity
    for partition in range(tree.state[USED_PARTITIONS] - 1, -1, -1):
        if tree.partition[partition, ATTRIBUTE] == NONE:
            continue
        home = tree.partition[partition, HOME]
        together = fact[home, COUNT] + tree.partition[partition, SIZE]
        if together <= policy.capacity:
            give_up(tree, expressions, predicates, policy, partition, header(policy.bloom))
    for b in range(tree.state[BUCKETS]):
        if fact[b, HASHED] != NONE:
            pend(tree, b)


@kernel
def ranks(tree, alpha, beta):
    """The rank of each leaf (Equations 10 to 13), and of each partition: the sum of its leaves'.
    And the operations that the leaves of each partition have seen.

    Equation 10 sums over children, as the errata say. Nothing is evaluated but in leaves, so what
    an inner node discards is what its leaves do.
    """
    leaf = np.zeros(tree.state[BUCKETS], np.float64)
    inner = np.zeros(tree.state[USED_PARTITIONS], np.float64)
    seen = np.zeros(tree.state[USED_PARTITIONS], np.int64)
    for b in range(tree.state[BUCKETS]):
        if tree.fact[b, HASHED] == NONE or tree.fact[b, COUNT] == 0:
            continue
        decided, cut = 0, 0
        owner, at = tree.fact[b, OWNER], b
        while owner != NONE:
            cut += 1
            decided += tree.fact[at, HASHED] == 1
            at = tree.partition[owner, HOME]
            owner = tree.fact[at, OWNER]
        count = tree.fact[b, COUNT]
        gain = (1.0 - beta) * decided * count + beta * (cut - decided) * count
        loss = tree.fact[b, DISCARDED] / max(1, tree.fact[b, VISITS])
        leaf[b] = (1.0 - alpha) * gain - alpha * loss
        owner = tree.fact[b, OWNER]
        while owner != NONE:
            inner[owner] += leaf[b]
            seen[owner] += tree.fact[b, VISITS] + tree.fact[b, CHANGES]
            owner = tree.fact[tree.partition[owner, HOME], OWNER]
    return leaf, inner, seen


@kernel
def recycle_low(tree, expressions, predicates, policy, threshold, window):
    """Take out partitions and leaves whose rank is below the threshold; gives their expressions.

    A node is judged when it has seen as many operations as the window says, and begins a new one
    then. Partitions get their ranks as scores, so that what is reinserted avoids bad ones.
    """
    leaf, inner, operations = ranks(tree, policy.alpha, policy.beta)
    for partition in range(len(inner)):
        gain = (1.0 - policy.alpha) * tree.partition[partition, SIZE]
        tree.penalty[partition] = gain - inner[partition]
    found = np.empty(tree.state[LIVE], np.int64)
    used = 0
    fact = tree.fact
    for partition in range(len(inner)):
        if tree.partition[partition, ATTRIBUTE] == NONE or inner[partition] >= threshold:
            continue
        size = tree.partition[partition, SIZE]
        if operations[partition] >= max(FEWEST_OPERATIONS, window * size):
            used = taken_out(tree, expressions, predicates, policy, partition, found, used)
    for b in range(len(leaf)):
        seen = fact[b, VISITS] + fact[b, CHANGES]
        if fact[b, HASHED] == NONE or fact[b, OWNER] == NONE:
            continue
        if seen < max(FEWEST_OPERATIONS, window * fact[b, COUNT]):
            continue
        fact[b, VISITS], fact[b, DISCARDED], fact[b, FALSE_ONES], fact[b, CHANGES] = 0, 0, 0, 0
        if leaf[b] < threshold and fact[b, COUNT]:
            for e in members(tree, b):
                take_out(tree, expressions, e)
                found[used] = e
                used += 1
            put_in_order(tree, expressions, predicates, policy, b, header(policy.bloom))
    tree.state[LIVE] -= used
    return found[:used]


@kernel
def covered_rate(tree):
    """How often an expression that covered predicates alone led to is a false candidate: φ of
    Equation 15."""
    seen, false = 0, 0
    for b in range(tree.state[BUCKETS]):
        if tree.fact[b, HASHED] == 0 and tree.fact[b, OWNER] != NONE:
            seen += tree.fact[b, VISITS] * tree.fact[b, COUNT]
            false += tree.fact[b, FALSE_ONES]
    return min(1.0, false / max(1, seen))
