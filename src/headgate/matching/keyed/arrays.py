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
    deciding: Any  # by entry of a program: may it be the last that is looked at?


class Clusters(NamedTuple):
    """Which queries to look at: the record of each node's cluster is at `line_of[node]`, −1 where
    there is none."""

    node_base: Any
    width: Any
    filed: Any  # by column: is any query filed under it?
    null_keyed: Any  # the columns of which an absent value leads somewhere
    line_of: Any
    records: Any
    bits: Any
    unkeyed: Any
    plain_line: Any  # by pattern slot, where it matches
    negated_line: Any
    compared: Any  # the atoms of comparisons under which something is filed
    bit_base: Any


class Grid(NamedTuple):
    """The queries that are found by one bitmap (`grid`), in its order. The row of `columns[k]` for
    a code is `row_of[table_start[k] + code]`, and has `width` words. Query i is `query[i]`, and its
    intervals from `start[i]` to `start[i + 1]` are left to check, unless the grid is exact."""

    columns: Any
    query: Any
    table_start: Any
    row_of: Any
    bits: Any
    width: Any
    exact: Any
    start: Any
    column: Any
    low: Any
    high: Any


class Events(NamedTuple):
    """What is known of a batch. Event e has the codes `code[k]` of `column[k]` for k from
    `start[e]` to `start[e + 1]`, and NULL elsewhere. Text `ranks[e, p]` of pattern column p matched
    the slots from `matched_start[first_text[p] + rank]` on."""

    start: Any
    column: Any
    code: Any
    bits: Any
    ranks: Any
    pattern_column: Any
    first_text: Any
    matched_start: Any
    matched: Any


class Living(NamedTuple):
    """Which queries are alive, a bit for each: by number, in the order of all bitmaps, and in that
    of the grid. All are empty where every query is alive."""

    numbers: Any
    bitmaps: Any
    grid: Any


class Appended(NamedTuple):
    """What the kernel gives out: the position of each number, or nothing where they are the same;
    and the positions that were found elsewhere, those of event e from `offsets[e]` on."""

    position: Any
    offsets: Any
    found: Any


class Scratch(NamedTuple):
    """Room that one thread works in. `codes` is by column and all 0 between events; `stamp` is by
    pattern slot and `seen` by query: when it was last met, by `clock`, which no event repeats."""

    clock: Any
    codes: Any
    stamp: Any
    seen: Any
    stack: Any
    rows: Any
    met: Any
    waiting: Any
    block: Any
    full: Any
