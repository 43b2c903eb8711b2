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
from headgate.matching.keyed.arrays import FALSE, NULL, TRUE, Clusters, Conditions, Grid
from headgate.matching.keyed.kernels.entries import fill_rows, find_pure_rows, key_entries
from headgate.matching.keyed.kernels.grid import count_conditions, fill_grid, z_order
from headgate.matching.keyed.kernels.keys import choose_keys, find_deciding
from headgate.matching.keyed.kernels.records import fill_records, plan_records
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
    in_bitmaps: int
    never_true: int
    grid_ns: float  # nanoseconds an event, by the grid and by keys, as estimated
    keys_ns: float


@dataclass(frozen=True, slots=True, eq=False)
class KeyedArrays:
    """The queries as the kernels read them, by their place in the encoded set."""

    book: CodeBook
    conditions: Conditions
    clusters: Clusters
    grid: Grid
    slots: Slots
    bitmap_lines: Integers  # the records that have a bitmap
    living_words: int  # of a bit for each query in these bitmaps
    figures: Figures

    @property
    def stack_depth(self) -> int:
        """How many truth values the longest program may put on the stack."""
        return int(np.diff(self.conditions.offsets).max(initial=1))

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        arrays = [*self.conditions, *self.clusters, *self.grid]
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def build_arrays(encoded: EncodedQueries, schema: Schema) -> KeyedArrays:
    """Place each query under its key, or in the grid."""
    # values as codes, and the conditions in terms of them
    atoms = encoded.atoms
    book, intervals = build_code_book(atoms, schema)
    greatest = np.array([regions.greatest for regions in book.regions], np.int64)
    slots = _assign_slots(atoms)
    conditions = _to_conditions(encoded, intervals, slots)

    # the rarest key of each query; what is only a row of intervals may go to the grid instead
    costs = estimate_costs(encoded, intervals, greatest)
    start, atom, target, weight = choose_keys(conditions.offsets, conditions.program, costs)
    is_repeated = np.diff(start) > 1
    is_pure = find_pure_rows(conditions) & ~is_repeated
    grid, estimates = _build_grid(conditions, np.flatnonzero(is_pure), weight, greatest)
    keys = Keys(start, atom, target).without(grid.query)

    # an entry for each node of each literal, in order of nodes; those fit for a bitmap come first
    width = 1 << np.ceil(np.log2(greatest + 1)).astype(np.int64)
    node_base = np.concatenate(([0], np.cumsum(2 * width)))
    bit_base = int(node_base[-1])
    nodes, queries, literals = key_entries(
        keys.start,
        keys.atom,
        keys.target,
        conditions.kind,
        conditions.column,
        intervals.start,
        intervals.low,
        intervals.high,
        greatest,
        node_base,
        width,
        bit_base,
    )
    order = np.lexsort((queries, ~is_pure[queries], nodes))
    nodes, queries, literals = nodes[order], queries[order], literals[order]
    heads, first = np.unique(nodes, return_index=True)
    cluster_start = np.append(first, len(nodes))
    fit = np.diff(np.concatenate(([0], np.cumsum(is_pure[queries])))[cluster_start])

    # a record for each cluster, with what is left to check of its entries
    is_implied = ~is_repeated[queries] & (keys.target[literals] == TRUE)
    key_atom = np.where(is_implied, keys.atom[literals], -1)
    mask, *rows = fill_rows(conditions, queries, key_atom, is_pure, is_repeated)
    row, then, *row_intervals = rows
    plan = plan_records(cluster_start, fit, row, *row_intervals)
    records, bits, living_words = fill_records(
        cluster_start, fit, queries, mask, then, row, *row_intervals, plan
    )
    columns, _, line, _ = plan
    line_of = np.full(bit_base + 3 * len(atoms), -1, np.int32)
    line_of[heads] = line[:-1]

    literal_lines = line_of[bit_base:].reshape(-1, 3)
    plain_line, negated_line = _pattern_lines(atoms, slots, literal_lines)
    clusters = Clusters(
        node_base=node_base[:-1],
        width=width,
        is_used=_find_used_columns(line_of, node_base),
        null_columns=_find_null_columns(line_of, node_base[:-1], width),
        line_of=line_of,
        records=records,
        bits=bits,
        unkeyed=np.flatnonzero(weight == UNKNOWN),
        plain_line=plain_line,
        negated_line=negated_line,
        compared=np.flatnonzero((atoms.kind == COMPARE) & (literal_lines >= 0).any(axis=1)),
        bit_base=bit_base,
    )
    has_bitmap = columns > 0
    figures = Figures(
        entries=len(nodes),
        clusters=len(heads),
        in_bitmaps=int(fit[has_bitmap].sum()),
        never_true=int((weight == NEVER).sum()),
        grid_ns=estimates[0],
        keys_ns=estimates[1],
    )
    lines = line[:-1][has_bitmap]
    return KeyedArrays(book, conditions, clusters, grid, slots, lines, living_words, figures)


def _to_conditions(encoded: EncodedQueries, intervals: Intervals, slots: Slots) -> Conditions:
    """Return the atoms and programs as the kernels read them."""
    atoms, trees = encoded.atoms, encoded.trees
    offsets, program = _make_writable(trees.offsets), _make_writable(trees.program)
    return Conditions(
        kind=_make_writable(atoms.kind),
        column=_make_writable(atoms.column),
        starts=intervals.start,
        low=intervals.low,
        high=intervals.high,
        negated=_make_writable(atoms.negated),
        slot=slots.of_atom,
        offsets=offsets,
        program=program,
        deciding=find_deciding(offsets, program),
    )


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


def _pattern_lines(
    atoms: EncodedAtoms, slots: Slots, literal_lines: npt.NDArray[np.int32]
) -> tuple[Lines, Lines]:
    """Return by slot the record of queries under a match, for LIKE and NOT LIKE; −1 for none."""
    count = len(slots.pattern_atoms)
    plain, negated = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    texts = np.flatnonzero(atoms.kind == MATCHES)
    is_negated = atoms.negated[texts] == 1
    likes, not_likes = texts[~is_negated], texts[is_negated]
    # where the pattern matches, LIKE is TRUE and NOT LIKE is FALSE
    plain[slots.of_atom[likes]] = literal_lines[likes, TRUE]
    negated[slots.of_atom[not_likes]] = literal_lines[not_likes, FALSE]
    return plain, negated


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


def _find_used_columns(line_of: Lines, node_base: Integers) -> npt.NDArray[np.bool_]:
    """Return, by column, whether any of its nodes has a cluster."""
    clusters_before = np.concatenate(([0], np.cumsum(line_of >= 0)))
    return np.diff(clusters_before[node_base]) > 0


def _find_null_columns(line_of: Lines, base: Integers, width: Integers) -> Integers:
    """Return the columns of which an event without the attribute leads to a cluster."""
    leads = np.zeros(len(base), np.bool_)
    # from the leaf of code 0 up to the root, in all columns at once
    node = width.copy()
    while (node >= 1).any():
        is_node = node >= 1
        leads[is_node] |= line_of[(base + node)[is_node]] >= 0
        node >>= 1
    return np.flatnonzero(leads)


def key_costs(encoded: EncodedQueries, built: KeyedArrays) -> npt.NDArray[np.float64]:
    """Return the costs by which the keys of these queries were chosen."""
    conditions = built.conditions
    intervals = Intervals(conditions.starts, conditions.low, conditions.high)
    greatest = np.array([regions.greatest for regions in built.book.regions], np.int64)
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
