"""The tree as arrays: buckets, partitions, leaves and directories, each a pool that can grow.

A *bucket* is a cluster node, the interval of points that it stands for, and its leaf, in one row:
the paper pairs them one to one. A *partition* is a partition node: the attribute by which some
expressions of a bucket were told apart. Of its buckets, one for each value with an equality
predicate is found by hashing, and the others form a binary tree of halved intervals below `TOP`.

A leaf is a block of `records`, written one behind the other:

    size of the record | position | expression | Bloom filter, if any | predicates left to check

where a position p of a query with several expressions is written as −1 − p. Predicates that the
path to the leaf has decided are left out, and rows are filled up to a multiple of four: the paper's
two-dimensional leaf, as wide as each expression needs it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headgate.jit import kernel

NONE = -1

# columns of `Tree.bucket`: what matching reads, in one cache line
LOW, HIGH, LEFT, RIGHT, BEGIN, USED, FIRST, MASK = range(8)
# columns of `Tree.fact`: what else is known of a bucket
COUNT, CAPACITY, ROOM, PARENT, OWNER, NEXT, PREVIOUS, KEY, HASHED = range(9)
VISITS, DISCARDED, FALSE_ONES, CHANGES, PARTITIONS = range(9, 14)
# columns of `Tree.partition`
ATTRIBUTE, TOP, AFTER, BEFORE, HOME, FIRST_HASHED, SIZE, HASHES = range(8)
# places in `Tree.state`
BUCKETS, FREE_BUCKET, USED_PARTITIONS, FREE_PARTITION, RECORDS, PENDING, RANDOM, LIVE = range(8)

ROOT = 0

# The first predicates, a word of bits, are always TRUE; records are filled up with the very first,
# so that predicates can be tested some at a time.
ALWAYS, ALWAYS_TRUE = 0, 64
TOGETHER = 8

# parts of a predicate's flags
CUTTABLE, EQUALITY, EXACT, GIVEN = 1, 2, 4, 8

GENERIC, SPECIALISED, HYBRID, RANKED = range(4)


class Tree(NamedTuple):
    """The pools. `table` is one hash table for both directories (`directory`)."""

    bucket: Any
    fact: Any
    partition: Any
    penalty: Any  # by partition: what its score is below its gain
    records: Any
    table: Any
    state: Any
    pending: Any  # buckets whose leaf may be over its capacity
    domain_low: Any  # by attribute: the points that are told apart
    domain_high: Any


class Expressions(NamedTuple):
    """Expression e has the predicates `predicate[start[e]:start[e] + count[e]]`, filled up as in
    records."""

    start: Any
    count: Any
    position: Any
    several: Any  # is it one of several of its query?
    leaf: Any  # the bucket that holds it, or NONE
    predicate: Any


class Predicates(NamedTuple):
    """Predicate p is TRUE for the values `low[i]` … `high[i]` of its column, for i from `first[p]`
    to `last[p]`; `least` and `most` are the points at the ends, `key` the hash of a single value.
    """

    column: Any
    first: Any
    last: Any
    low: Any
    high: Any
    least: Any
    most: Any
    key: Any
    flags: Any


class Policy(NamedTuple):
    """The options that the kernels need; see `options`."""

    directory: int
    capacity: int
    fewest: int
    histogram: bool
    alpha: float
    beta: float
    exploit: float
    reinserted: float
    bloom: int
    adapt: bool


@kernel
def mask_of(attribute):
    """The bit of an attribute in a bucket's mask of those that it is partitioned by."""
    return np.int64(1) << np.int64(attribute % 63)


@kernel
def filled_up(count):
    """So many predicates, and those that fill up their row."""
    return -(-count // TOGETHER) * TOGETHER


@kernel
def header(bloom):
    """The numbers of a record before its predicates."""
    return 3 + (bloom + 31) // 32
