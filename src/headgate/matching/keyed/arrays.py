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
    """The atoms, and the program of each query over them, from which all else is built.

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


class Programs(NamedTuple):
    """How conditions that are no plain rows are decided (`kernels.programs`): all int32."""

    tests: Any
    lists: Any


class Clusters(NamedTuple):
    """Which queries an event looks at.

    Clusters are numbered like the nodes that have one: those of columns first, in their order, then
    those of patterns and comparisons. `kernels.clusters` says how they are laid out.
    """

    # by column: int64, int64, uint64
    node_base: Any
    width: Any
    levels: Any  # bit t is set if a node t levels above the leaves has a cluster
    null_columns: Any  # the columns of which an absent value leads to a cluster
    # by 64 nodes: uint64, whether each has a cluster; int32, how many have one before
    is_cluster: Any
    clusters_before: Any
    # by cluster: int64, WORDS each; then what they describe: uint64, int32, uint8, int32, int32
    descriptions: Any
    bits: Any
    columns: Any
    tables: Any
    members: Any
    rows: Any
    # queries that every event looks at, and where their programs begin
    unkeyed: Any
    unkeyed_entry: Any
    # (pattern slots, 2): int32, the cluster for LIKE and for NOT LIKE where it matches, −1 for none
    of_pattern: Any
    # the places in `Events.bits` of comparisons that have a cluster; (comparisons, 3): int32, the
    # cluster for each truth value, −1 for none
    compared: Any
    of_truth: Any
    queries: Any  # how many there are


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
    cells: Any  # of the program that is running
    # where the rows of a bitmap begin that are ANDed; the clusters that an event leads to
    rows: Any
    met: Any
    # a block of ANDed words of the grid, and the places of those that are not 0
    block: Any
    full: Any
