"""One hash table for both directories of the tree, with open addressing.

Row i of the table is (owner, value, target). The partition of bucket b on an attribute has the
owner 2b and the attribute as its value; the bucket of partition p for a key has the owner 2p + 1.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel
from headgate.matching.be_tree.pools import NONE

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
