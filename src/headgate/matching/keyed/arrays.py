"""The named groups of arrays that the kernels read.

Truth values are numbered as in `snapshot.arrays.trees`: FALSE 0, TRUE 1, NULL 2. Nodes are numbers
in one row: those of column c begin at `node_base[c]`, in the order of a heap over the codes from 0
to `width[c]`, a power of two; those of literals that are no codes begin at `bit_base`. A query's
number is its place in the encoded set, its position that in the index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

FALSE, TRUE, NULL = 0, 1, 2


class Conditions(NamedTuple):
    """The atoms, and the program of each query over them.

    Atom a is TRUE for the codes `low[i]` … `high[i]` of its column, for i from `starts[a]` to
    `starts[a + 1]`. Query q has the program from `offsets[q]` to `offsets[q + 1]`.
    """

    # by atom: uint8, int32; where its intervals begin, int64, with the end of the last behind
    kind: Any
    column: Any
    starts: Any
    # by interval: int32, both ends included
    low: Any
    high: Any
    # by atom: uint8, int64
    negated: Any
    slot: Any  # of a comparison or constant its column in `bits`; of a pattern its stamp
    # by query: int64, with the end of the last behind; by entry of a program: int32, bool
    offsets: Any
    program: Any
    deciding: Any  # by entry of a program: is it not TRUE, the query does not match


class Clusters(NamedTuple):
    """Which queries an event looks at.

    The record of each node's cluster is at `line_of[node]`, −1 if the node has none.
    """

    # by column: int64, int64, bool
    node_base: Any
    width: Any
    is_used: Any  # by column: does any of its nodes have a cluster?
    null_columns: Any  # the columns of which an absent value leads to a cluster
    # by node: int32; then all records, int32, and the words of all their bitmaps, uint64
    line_of: Any
    records: Any
    bits: Any
    unkeyed: Any  # queries that every event looks at
    plain_line: Any  # by pattern slot: the record for LIKE, where it matches
    negated_line: Any  # the same for NOT LIKE
    compared: Any  # the atoms of comparisons that have a cluster
    bit_base: Any


class Grid(NamedTuple):
    """The queries in one bitmap (`kernels.grid`), in its order.

    The row of `columns[k]` for a code is `row_of[table_start[k] + code]`, and has `width` words.
    Query i has the number `query[i]`, and its intervals from `start[i]` to `start[i + 1]` are left
    to check, unless the grid is exact.
    """

    # by column of the grid, and by query in its order: int32
    columns: Any
    query: Any
    # by column of the grid: int64; by column and code: int32
    table_start: Any
    row_of: Any
    bits: Any
    width: Any
    # whether every code has a bucket of its own, so that nothing is left to check
    exact: Any
    start: Any
    column: Any
    low: Any
    high: Any


class Events(NamedTuple):
    """The codes, comparisons and pattern matches of a batch of events.

    Event e has the codes `code[k]` of `column[k]` for k from `start[e]` to `start[e + 1]`, and NULL
    elsewhere. `bits[e]` are the truths of comparisons and constants. Text `ranks[e, p]` of pattern
    column p matches the slots from `matched_start[first_text[p] + rank]` on.
    """

    # by event: int64, with the end of the last behind; by code of an event: int32
    start: Any
    column: Any
    code: Any
    bits: Any
    # (events, pattern columns): int64, the rank of the event's text in its column
    ranks: Any
    pattern_column: Any
    first_text: Any
    # by text, those of one column after the other; then the slots that each matches
    matched_start: Any
    matched: Any


class Living(NamedTuple):
    """Which queries are alive, as bits; all arrays are empty if every query is."""

    numbers: Any  # by number
    bitmaps: Any  # in the order of all bitmaps
    grid: Any  # in the order of the grid


class Appended(NamedTuple):
    """How the kernel completes its output.

    `position` has the position of each number, and is empty if they are the same. `matches` are the
    positions that other parts found, those of event e from `offsets[e]` on.
    """

    position: Any
    offsets: Any
    matches: Any


class Scratch(NamedTuple):
    """The working memory of one thread.

    `codes` is by column and all 0 between events. `stamp` is by pattern slot and `seen` by query:
    when it was last met, by `clock`, which no event repeats.
    """

    # (1,): int64, a count of events; by column: int32
    clock: Any
    codes: Any
    stamp: Any
    seen: Any
    stack: Any
    # where the rows of a bitmap begin that are ANDed; records that the event leads to
    rows: Any
    met: Any
    # (queue, 2): record and head of entries whose rows are being loaded
    waiting: Any
    # a block of ANDed words, and the places of those that are not 0
    block: Any
    full: Any
