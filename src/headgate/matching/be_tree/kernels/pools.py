"""The layout of a tree: buckets, partitions, leaves and directories, each an array that can grow.

A *bucket* is a cluster node, the interval of points that it stands for, and its leaf, in one row:
the paper pairs them one to one. A *partition* is a partition node: the attribute by which some
expressions of a bucket were separated. Of its buckets, one for each value with an equality
predicate is looked up by hashing, and the others form a binary tree of halved intervals below
`TOP_BUCKET`.

A leaf is a block of `records`, written one behind the other:

    size of the record | position | expression | Bloom filter, if any | predicates left to check

where a position p of a query with more than one expression is written as −1 − p. Predicates that
the path to the leaf has decided are left out, and rows are filled up to a multiple of
`PREDICATES_PER_STEP`: the paper's two-dimensional leaf, as wide as each expression needs it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.jit import kernel, plain_kernel

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

NONE = -1

# Columns of `TreeArrays.bucket`: what matching reads of a bucket, in one cache line. The interval
# of points, its halves, where its leaf begins in `records` and how many numbers it takes there,
# the first of its partitions, and a mask of their attributes that lets most events pass by.
LOW, HIGH, LEFT, RIGHT, LEAF_BEGIN, LEAF_SIZE, FIRST_PARTITION, ATTRIBUTE_MASK = range(8)
# Columns of `TreeArrays.fact`: what else is known of a bucket. The expressions of its leaf, how
# many it may hold and the numbers reserved for it; the bucket that it is a half of, the partition
# that it belongs to, its neighbours in the chain of hashed buckets, its value's key, and whether it
# is hashed (1), a part of the binary tree (0) or free (NONE).
LEAF_COUNT, CAPACITY, LEAF_ROOM, PARENT, OWNER, NEXT_HASHED, PREVIOUS_HASHED, KEY, HASHED = range(9)
# Statistics since the bucket was last judged (section 5), and the number of its partitions.
VISITS, DISCARDED, FALSE_CANDIDATES, CHANGES, PARTITIONS = range(9, 14)
# Columns of `TreeArrays.partition`: its attribute (NONE: free), the top of its binary tree, its
# neighbours in the chain of its bucket's partitions, that bucket, the first of its hashed buckets,
# the expressions below it, and the number of hashed buckets.
(
    ATTRIBUTE,
    TOP_BUCKET,
    NEXT_PARTITION,
    PREVIOUS_PARTITION,
    HOME,
    FIRST_HASHED,
    PARTITION_SIZE,
    HASHED_COUNT,
) = range(8)
# Places in `TreeArrays.state`: how much of each array is used, where the chains of what is free
# begin, the seed of what is left to chance, and the number of expressions in the tree.
(
    USED_BUCKETS,
    FREE_BUCKET,
    USED_PARTITIONS,
    FREE_PARTITION,
    USED_RECORDS,
    PENDING_COUNT,
    RANDOM_STATE,
    LIVE_EXPRESSIONS,
) = range(8)

ROOT = 0

# The first predicates, a word of bits, are always TRUE; records are filled up with the very first,
# so that predicates can be tested some at a time.
TRUE_PREDICATE, FIRST_PREDICATE = 0, 64
PREDICATES_PER_STEP = 8

# Flags of a predicate: a set of values of one attribute, so that a leaf can be cut by it; a single
# value; of values that are their own points; no set, but evaluated for the whole batch beforehand.
CUTTABLE, EQUALITY, EXACT, PRECOMPUTED = 1, 2, 4, 8

# Values of `Policy.directory`
GENERIC, SPECIALISED, HYBRID, RANKED = range(4)


class TreeArrays(NamedTuple):
    """The arrays of a tree; `table` is one hash table for both directories (`nodes`)."""

    bucket: Int64s  # (buckets, 8)
    fact: Int64s  # (buckets, 14)
    partition: Int64s  # (partitions, 8)
    penalty: Floats  # by partition: what its score is below its gain
    records: Int32s  # the leaves, one block of records after the other
    table: Int64s  # (a power of two, 4)
    state: Int64s  # (8,)
    pending: Int64s  # buckets whose leaf may be over its capacity
    domain_low: Int64s  # by attribute: the points that are distinguished
    domain_high: Int64s


class ExpressionArrays(NamedTuple):
    """Expression e has the predicates `predicate[start[e]:start[e] + count[e]]`.

    They are filled up to a multiple of `PREDICATES_PER_STEP`, as in records.
    """

    start: Int64s
    count: Any  # int32; `count` of a tuple is a method
    position: Int32s  # of its query
    is_alternative: Bytes  # does its query have others too?
    leaf: Int32s  # the bucket that holds it, or NONE
    predicate: Int32s


class PredicateArrays(NamedTuple):
    """Predicate p is TRUE for the values `low[i]` … `high[i]`, for i from `first[p]` to `last[p]`.

    These are values of its column; `least` and `most` are the points at the ends, and `key` is the
    hash of a single value.
    """

    column: Int32s
    first: Int64s
    last: Int64s
    low: Int64s
    high: Int64s
    least: Int64s
    most: Int64s
    key: Int64s
    flags: Bytes


class Policy(NamedTuple):
    """The options that the kernels need, as `BeTreeOptions` explains them."""

    directory: int
    capacity: int
    min_size: int
    histogram: bool
    alpha: float
    beta: float
    exploit: float
    reinserted: float
    bloom: int


@plain_kernel
def attribute_bit(attribute):
    """Return the bit of an attribute in a bucket's mask of those that it is partitioned by."""
    return np.int64(1) << np.int64(attribute % 63)


@kernel
def pad_count(count):
    """Return the length of a row of predicates once it is filled up."""
    return -(-count // PREDICATES_PER_STEP) * PREDICATES_PER_STEP


@plain_kernel
def header_size(bloom):
    """Return the length of the part of a record before its predicates."""
    return 3 + (bloom + 31) // 32
