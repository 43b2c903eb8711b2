"""Place encoded queries in clusters and in the grid: each where events meet it least often.

A query can match only if one of the literals of its key holds (`kernels.keys`). A literal on the
code of one column is covered by dyadic nodes over the codes; any other is a node of its own. All
queries at a node form a cluster, and an event looks only into the clusters of its own codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.encoding.code_book import CodeBook, Intervals, build_code_book
from headgate.matching.keyed.arrays import (
    FALSE,
    NULL,
    TRUE,
    Clusters,
    Conditions,
    Grid,
    Programs,
)
from headgate.matching.keyed.kernels.clusters import fill_clusters, make_brief, plan_clusters
from headgate.matching.keyed.kernels.entries import key_entries
from headgate.matching.keyed.kernels.grid import count_conditions, fill_grid, z_order
from headgate.matching.keyed.kernels.keys import choose_keys, find_deciding
from headgate.matching.keyed.kernels.programs import compile_programs
from headgate.matching.keyed.kernels.rows import classify_atoms, mark_rows
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.atoms import COMPARE, CONSTANT, IS_NULL, MATCHES, WITHIN, EncodedAtoms

NEVER, UNKNOWN = 0.0, np.inf

# how often things are taken to hold, as far as the queries do not tell
NULL_SHARE = 0.5  # an attribute is NULL where a condition asks for that
MIN_SHARE = 1e-9
PATTERN_SHARES = 0.001, 0.5  # a pattern matches: at least, at most
COMPARISON_SHARE = 0.5  # a comparison of two attributes is TRUE

# nanoseconds: of a column of the grid, a word of each, and a word of all; of a query that a key
# leads to
GRID_COLUMN_NS, GRID_WORD_NS, GRID_RESULT_NS, CANDIDATE_NS = 6.0, 0.12, 0.6, 12.0
MAX_GRID_BITS = 16 << 20  # that stay in a core's cache

Integers = npt.NDArray[np.int64]
Lines = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Where the truth of each atom is kept that is no interval of codes."""

    of_atom: Integers
    pattern_atoms: Integers  # the atom that stands for each pattern slot
    bit_atoms: Integers  # the atom of each column of `Events.bits`


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The literals that lead to each query: those from `start[q]` to `start[q + 1]`."""

    start: Integers
    atom: Lines
    target: npt.NDArray[np.uint8]

    def without(self, queries: npt.NDArray[np.int32]) -> Keys:
        """Return the keys without those of some queries."""
        # the bounds stay one for each query; those left out have no literals
        lengths = np.diff(self.start)
        is_kept = np.ones(len(lengths), np.bool_)
        is_kept[queries] = False
        literals = np.repeat(is_kept, lengths)
        start = np.concatenate(([0], np.cumsum(np.where(is_kept, lengths, 0))))
        return Keys(start, self.atom[literals], self.target[literals])


@dataclass(frozen=True, slots=True)
class Figures:
    """What `describe` says about placed queries."""

    entries: int
    clusters: int
    bitmaps: int
    in_bitmaps: int
    never_true: int
    grid_ns: float  # nanoseconds an event, by the grid and by keys, as estimated
    keys_ns: float


@dataclass(frozen=True, slots=True, eq=False)
class KeyedArrays:
    """The queries as the kernels read them, by their place in the encoded set."""

    book: CodeBook
    programs: Programs
    clusters: Clusters
    grid: Grid
    slots: Slots
    living_words: int  # of a bit for each query in a bitmap
    most_cells: int  # of a program
    figures: Figures

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        arrays = [*self.programs, *self.clusters, *self.grid]
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Which conditions are written as rows (`kernels.rows`)."""

    # by atom: uint8, int32
    form: npt.NDArray[np.uint8]
    size: Lines
    # by entry of a program, and by query
    in_row: Mask
    is_pure: Mask
    is_fit: Mask


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The queries at each node, one cluster after the other: those from `start[c]` on at `head[c]`.

    The first `fit[c]` of a cluster may be in a bitmap. A query is left without the condition
    `key_atom`, which holds wherever it is met; −1 if there is none.
    """

    head: Integers
    start: Integers
    fit: Integers
    query: Lines
    key_atom: Lines


def build_arrays(encoded: EncodedQueries, schema: Schema) -> KeyedArrays:
    """Place each query under its key, or in the grid."""
    # values as codes, and the conditions in terms of them
    atoms = encoded.atoms
    book, intervals = build_code_book(atoms, schema)
    greatest = np.array([regions.greatest for regions in book.regions], np.int64)
    slots = _assign_slots(atoms)
    conditions = _to_conditions(encoded, intervals, slots)
    rows = _find_rows(conditions, len(greatest))

    # the rarest key of each query; what is only a row of intervals may go to the grid instead
    costs = estimate_costs(encoded, intervals, greatest)
    start, atom, target, weight = choose_keys(conditions.offsets, conditions.program, costs)
    is_repeated = np.diff(start) > 1
    is_plain = rows.is_pure & ~is_repeated
    grid, estimates = _build_grid(conditions, np.flatnonzero(is_plain), weight, greatest)
    keys = Keys(start, atom, target).without(grid.query)

    # the queries at each node, and programs for what is more than a row
    width = 1 << np.ceil(np.log2(greatest + 1)).astype(np.int64)
    node_base = np.concatenate(([0], np.cumsum(2 * width)))
    entries = _place_queries(keys, conditions, rows, greatest, node_base, width)
    with_program = np.flatnonzero(~rows.is_pure & (weight != NEVER))
    program_entry, *programs, most_cells = compile_programs(
        with_program,
        weight[with_program] != UNKNOWN,
        conditions.offsets,
        conditions.program,
        rows.in_row,
        conditions.kind,
        conditions.column,
        conditions.starts,
        conditions.low,
        conditions.high,
        conditions.negated,
        conditions.slot,
        greatest,
    )
    entry = np.full(len(encoded), -1, np.int32)
    entry[with_program] = program_entry

    # a description for each cluster, and what it describes
    plan, *parts, living_words = _lay_out(entries, conditions, rows, entry, is_repeated, greatest)
    unkeyed = np.flatnonzero(weight == UNKNOWN)
    nodes = _mark_nodes(entries.head, node_base, width)
    literals = _find_literal_clusters(atoms, slots, entries.head, int(node_base[-1]))
    # in the order of the fields
    clusters = Clusters._make(
        (
            node_base[:-1],
            width,
            *nodes,
            *parts,
            unkeyed,
            entry[unkeyed],
            *literals,
            len(encoded),
        )
    )
    has_bitmap = plan[:, 0] >= 0
    figures = Figures(
        entries=len(entries.query),
        clusters=len(entries.head),
        bitmaps=int(has_bitmap.sum()),
        in_bitmaps=int(entries.fit[has_bitmap].sum()),
        never_true=int((weight == NEVER).sum()),
        grid_ns=estimates[0],
        keys_ns=estimates[1],
    )
    return KeyedArrays(
        book, Programs(*programs), clusters, grid, slots, living_words, most_cells, figures
    )


def _to_conditions(encoded: EncodedQueries, intervals: Intervals, slots: Slots) -> Conditions:
    """Return the atoms and programs as the kernels read them."""
    atoms, trees = encoded.atoms, encoded.trees
    return Conditions(
        kind=_make_writable(atoms.kind),
        column=_make_writable(atoms.column),
        starts=intervals.start,
        low=intervals.low,
        high=intervals.high,
        negated=_make_writable(atoms.negated),
        slot=slots.of_atom,
        offsets=_make_writable(trees.offsets),
        program=_make_writable(trees.program),
    )


def _find_rows(conditions: Conditions, columns: int) -> Rows:
    """Return which conditions are written as rows, and which queries are nothing else."""
    offsets, program = conditions.offsets, conditions.program
    form, size = classify_atoms(
        conditions.kind, conditions.column, conditions.starts, conditions.low, conditions.high
    )
    deciding = find_deciding(offsets, program)
    marks = mark_rows(offsets, program, deciding, form, conditions.column, columns)
    return Rows(form, size, *marks)


def _place_queries(
    keys: Keys,
    conditions: Conditions,
    rows: Rows,
    greatest: Integers,
    node_base: Integers,
    width: Integers,
) -> Entries:
    """Return an entry for each node of each literal, in order of nodes."""
    nodes, queries, literals = key_entries(
        keys.start,
        keys.atom,
        keys.target,
        conditions.kind,
        conditions.column,
        conditions.starts,
        conditions.low,
        conditions.high,
        greatest,
        node_base,
        width,
        int(node_base[-1]),
    )
    # those fit for a bitmap come first; the sort is stable, and queries ascend already
    is_repeated = np.diff(keys.start) > 1
    fits = rows.is_fit[queries]
    order = np.argsort(2 * nodes + ~fits, kind="stable")
    nodes, queries, literals = nodes[order], queries[order], literals[order]
    is_first = np.concatenate(([True], nodes[1:] != nodes[:-1]))[: len(nodes)]
    start = np.append(np.flatnonzero(is_first), len(nodes))
    fit = np.diff(np.concatenate(([0], np.cumsum(fits[order])))[start])
    is_implied = ~is_repeated[queries] & (keys.target[literals] == TRUE)
    key_atom = np.where(is_implied, keys.atom[literals], np.int32(-1))
    return Entries(nodes[start[:-1]], start, fit, queries, key_atom)


def _lay_out(
    entries: Entries,
    conditions: Conditions,
    rows: Rows,
    entry: Lines,
    is_repeated: Mask,
    greatest: Integers,
) -> tuple[Any, ...]:
    """Return the plan of all clusters, what `fill_clusters` makes of it, and the living words."""
    placed = entries.start, entries.fit, entries.query, entries.key_atom
    queries = conditions.offsets, conditions.program, rows.in_row
    intervals = conditions.starts, conditions.low, conditions.high, greatest
    brief = make_brief(conditions.column, conditions.starts, conditions.low, conditions.high)
    code_base = np.concatenate(([0], np.cumsum(greatest + 1)))
    plan = plan_clusters(*placed, entry, *queries, rows.size, brief, *intervals, code_base)
    filled = fill_clusters(
        plan, *placed, entry, is_repeated, *queries, rows.form, brief, *intervals, code_base
    )
    return plan, *filled


def _mark_nodes(
    heads: Integers, node_base: Integers, width: Integers
) -> tuple[npt.NDArray[np.uint64], Integers, npt.NDArray[np.uint64], Lines]:
    """Return which levels, absent columns and nodes lead to clusters, as in `Clusters`."""
    heads = heads[heads < node_base[-1]]
    column = np.searchsorted(node_base, heads, side="right") - 1
    node = heads - node_base[column]
    # node 1 is the root, and nodes from `width` on are leaves
    _, exponent = np.frexp(node)
    _, leaf_exponent = np.frexp(width)
    level = (leaf_exponent[column] - exponent).astype(np.uint64)
    levels = np.zeros(len(width), np.uint64)
    np.bitwise_or.at(levels, column, np.uint64(1) << level)
    # the path of code 0 has the first node of each level
    leads = np.zeros(len(width), np.bool_)
    leads[column[node == width[column] >> level.astype(np.int64)]] = True
    marked = np.zeros((int(node_base[-1]) // 64 + 1) * 64, np.bool_)
    marked[heads] = True
    counts = marked.reshape(-1, 64).sum(axis=1)
    before = (np.cumsum(counts) - counts).astype(np.int32)
    is_cluster = np.packbits(marked, bitorder="little").view(np.uint64)
    return levels, np.flatnonzero(leads), is_cluster, before


def _find_literal_clusters(
    atoms: EncodedAtoms, slots: Slots, heads: Integers, bit_base: int
) -> tuple[Lines, Integers, Lines]:
    """Return the clusters of patterns and of comparisons, as in `Clusters`."""
    clusters = np.flatnonzero(heads >= bit_base)
    atom, truth = np.divmod(heads[clusters] - bit_base, 3)
    slot = slots.of_atom[atom]
    is_pattern = atoms.kind[atom] == MATCHES
    is_negated = atoms.negated[atom] == 1
    # where the pattern matches, LIKE is TRUE and NOT LIKE is FALSE
    of_pattern = np.full((len(slots.pattern_atoms), 2), -1, np.int32)
    for side, value in enumerate((TRUE, FALSE)):
        here = is_pattern & (is_negated == bool(side)) & (truth == value)
        of_pattern[slot[here], side] = clusters[here]
    compared, place = np.unique(slot[~is_pattern], return_inverse=True)
    of_truth = np.full((len(compared), 3), -1, np.int32)
    of_truth[place, truth[~is_pattern]] = clusters[~is_pattern]
    return of_pattern, compared, of_truth


def _make_writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that may be written to: for others Numba would compile all kernels again."""
    return array if array.flags.writeable else array.copy()


def _assign_slots(atoms: EncodedAtoms) -> Slots:
    """Give patterns on the same column one slot, negated or not, and comparisons one each."""
    of_atom = np.zeros(len(atoms), np.int64)
    texts = np.flatnonzero(atoms.kind == MATCHES)
    # (atoms, 2): the column, and the number of the pattern
    pairs = np.stack([atoms.column[texts].astype(np.int64), atoms.start[texts]], axis=1)
    _, first, numbers = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    of_atom[texts] = numbers.reshape(-1)
    bit_atoms = np.flatnonzero((atoms.kind == COMPARE) | (atoms.kind == CONSTANT))
    of_atom[bit_atoms] = np.arange(len(bit_atoms))
    return Slots(of_atom, texts[first], bit_atoms)


def _build_grid(
    conditions: Conditions,
    numbers: Integers,
    weight: npt.NDArray[np.float64],
    greatest: Integers,
) -> tuple[Grid, tuple[float, float]]:
    """Return the grid of some queries, empty if keys are faster, and both estimates."""
    counts = count_conditions(conditions, numbers, len(greatest))
    columns = np.flatnonzero(counts)
    columns = columns[np.argsort(-counts[columns], kind="stable")].astype(np.int32)
    # a row of words for each column, against each query as often as its key holds
    by_grid = estimate_grid(len(columns), len(numbers))
    by_keys = CANDIDATE_NS * weight[numbers].sum()
    if by_grid > by_keys or not len(columns):
        columns, numbers = columns[:0], numbers[:0]
    # as many buckets as stay in the cache; Z-order by the three columns with most conditions
    buckets = int(np.clip(MAX_GRID_BITS / (1 + len(numbers) * len(columns)), 32, 1024))
    numbers = numbers[z_order(conditions, numbers, columns[:3], greatest)].astype(np.int32)
    arrays = fill_grid(conditions, numbers, columns, greatest, buckets)
    return Grid(columns, numbers, *arrays), (float(by_grid), float(by_keys))


def key_costs(encoded: EncodedQueries, schema: Schema) -> npt.NDArray[np.float64]:
    """Return the costs by which the keys of these queries were chosen."""
    book, intervals = build_code_book(encoded.atoms, schema)
    greatest = np.array([regions.greatest for regions in book.regions], np.int64)
    return estimate_costs(encoded, intervals, greatest)


def estimate_costs(
    encoded: EncodedQueries, intervals: Intervals, greatest: Integers
) -> npt.NDArray[np.float64]:
    """Estimate how often each atom is FALSE, TRUE and NULL, as far as the queries themselves tell.

    Where many queries mention an attribute, many events are taken to have it; its values are taken
    to be spread evenly over its regions. Patterns in many queries, and short ones, are taken to
    match often.
    """
    atoms, program = encoded.atoms, encoded.trees.program
    # (atoms, 3): by atom and truth value
    cost = np.full((len(atoms), 3), UNKNOWN)
    # by atom: how often programs mention it
    uses = np.bincount(program[program >= 0], minlength=len(atoms))
    column = np.where(atoms.column >= 0, atoms.column, 0)

    # conditions on one value: the share of the column's regions, among events that have it
    mentions = np.bincount(atoms.column[atoms.column >= 0], uses[atoms.column >= 0], len(greatest))
    present = np.clip(mentions / max(1, len(encoded)), MIN_SHARE, 1.0)
    # codes in the intervals before each, so that those of an atom are a difference
    sizes = np.concatenate(([0], np.cumsum(intervals.high - intervals.low + 1)))
    covered = sizes[intervals.start[1:]] - sizes[intervals.start[:-1]]
    share = covered / np.maximum(greatest[column] if len(greatest) else 1, 1)
    often = present[column] if len(greatest) else np.ones(len(atoms))
    within, null = atoms.kind == WITHIN, atoms.kind == IS_NULL
    true, false = np.maximum(share * often, MIN_SHARE), np.maximum((1 - share) * often, MIN_SHARE)
    cost[within, TRUE] = np.where(share > 0, true, NEVER)[within]
    cost[within, FALSE] = np.where(share < 1, false, NEVER)[within]
    cost[within, NULL] = NULL_SHARE
    # IS NULL holds where the attribute is absent, IS NOT NULL where it is there
    positive = null & (atoms.negated == 0)
    cost[null, TRUE] = np.where(positive, NULL_SHARE, often)[null]
    cost[null, FALSE] = np.where(positive, often, NULL_SHARE)[null]
    cost[null, NULL] = NEVER

    # comparisons of two attributes, patterns, and constants
    compare = atoms.kind == COMPARE
    cost[compare, TRUE] = cost[compare, FALSE] = COMPARISON_SHARE
    texts = np.flatnonzero(atoms.kind == MATCHES)
    letters = np.diff(atoms.patterns.text.offsets)[atoms.start[texts]]
    popularity = uses[texts] / max(1, len(encoded))
    # as often as the pattern is used, or by its length: each letter halves it
    matching = np.clip(np.maximum(popularity, 0.5**letters), *PATTERN_SHARES)
    cost[texts, np.where(atoms.negated[texts] == 0, TRUE, FALSE)] = matching
    cost[texts, NULL] = NULL_SHARE
    constant = np.flatnonzero(atoms.kind == CONSTANT)
    # nothing can be placed under a constant's own truth value: every event has it
    cost[constant] = NEVER
    cost[constant, atoms.code[constant]] = UNKNOWN
    return cost


def estimate_grid(columns: int, queries: int) -> float:
    """Return about how many nanoseconds an event takes in a grid."""
    words = queries / 64
    return GRID_COLUMN_NS * columns + words * (GRID_WORD_NS * columns + GRID_RESULT_NS)
