"""What the kernels read: named groups of arrays.

Truth values are numbered as in `encoding.trees`: FALSE 0, TRUE 1, NULL 2. Nodes are numbers in one
row: those of column c begin at `node_base[c]`, in the order of a heap over the codes from 0 to
`width[c]`, a power of two; those of literals that are no codes begin at `bit_base`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

FALSE, TRUE, NULL = 0, 1, 2


class Conditions(NamedTuple):
    """The atoms and the programs over them."""

    kind: Any
    column: Any
    starts: Any
    low: Any
    high: Any
    negated: Any
    slot: Any  # of a comparison or constant its column in `bits`; of a pattern its stamp
    offsets: Any
    program: Any


class Clusters(NamedTuple):
    """Which queries to look at. Entry i of a cluster is query `query[i]`, of which the columns in
    `mask[i]` must be present and the row from `row[i]` to `row[i + 1]` must hold; where `whole[i]`
    is 0, its program decides."""

    node_base: Any
    width: Any
    null_keyed: Any
    cluster_of: Any
    start: Any
    query: Any
    mask: Any
    row: Any
    whole: Any
    column: Any
    low: Any
    high: Any
    repeated: Any  # by query: may it be met more than once for an event?
    unkeyed: Any
    plain_cluster: Any  # by pattern slot, where it matches
    negated_cluster: Any
    compared: Any  # the atoms of comparisons under which something is filed
    bit_base: Any


class Leaves(NamedTuple):
    """The clusters that are bitmaps (`leaves.fill_leaves`). Cluster c is leaf `of_cluster[c]`, or
    none if that is −1, and the first `size[c]` of its entries are in it."""

    of_cluster: Any
    size: Any
    first: Any
    column: Any
    first_bound: Any
    first_word: Any
    bound: Any
    bits: Any


class Events(NamedTuple):
    """What is known of a batch. Text `ranks[e, p]` of pattern column p matched the slots from
    `matched_start[first_text[p] + rank]` on."""

    codes: Any
    bits: Any
    ranks: Any
    pattern_column: Any
    first_text: Any
    matched_start: Any
    matched: Any
