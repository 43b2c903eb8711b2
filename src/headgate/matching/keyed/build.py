"""From encoded queries to clusters: each query is filed where it is met least often.

A query can match only if one of the literals of its key holds (`keys.choose_keys`). A literal on
the code of one column is covered by dyadic nodes over the codes; any other is a node of its own.
All queries at a node form a cluster, and an event looks only into the clusters of its own codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.encoding.code_book import CodeBook, Intervals, code_book
from headgate.matching.keyed.arrays import FALSE, NULL, TRUE, Clusters, Conditions, Grid
from headgate.matching.keyed.kernels.entries import key_entries, rows, rows_alone
from headgate.matching.keyed.kernels.grid import asked_about, fill_grid, z_order
from headgate.matching.keyed.kernels.keys import choose_keys, deciding
from headgate.matching.keyed.kernels.records import fill_records, plan_records
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.atoms import COMPARE, CONSTANT, IS_NULL, MATCHES, WITHIN, EncodedAtoms

NEVER, UNKNOWN = 0.0, np.inf
NULLS = 0.5  # how often an attribute is taken to be NULL where a condition asks for it
RARE = 1e-9
PATTERN, COMPARISON = (0.001, 0.5), 0.5  # how often they are taken to be TRUE

# nanoseconds: of a column and a word of the grid, and of a query that a key leads to
COLUMN, WORD, CANDIDATE = 6.0, 0.12, 12.0
GRID_BITS = 16 << 20  # that stay in a core's cache


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """The queries as the kernels read them, by their place in the encoded set."""

    book: CodeBook
    conditions: Conditions
    clusters: Clusters
    grid: Grid
    pattern_slots: npt.NDArray[np.int64]  # the atom that stands for each slot
    bit_atoms: npt.NDArray[np.int64]  # the atom of each column of `bits`
    entries: int
    clusters_filed: int
    bitmap_lines: npt.NDArray[np.int64]  # the records that have a bitmap
    words_of_living: int
    in_bitmaps: int
    estimates: tuple[float, float]  # nanoseconds an event, by the grid and by keys
    never: int
    depth: int  # of the stack that the longest program needs

    @property
    def bytes(self) -> int:
        arrays = [*self.conditions, *self.clusters, *self.grid]
        return sum(one.nbytes for one in arrays if isinstance(one, np.ndarray))


def build(encoded: EncodedQueries, schema: Schema) -> Built:
    """File each query under its key, or in the grid."""
    atoms = encoded.atoms
    book, intervals = code_book(atoms, schema)
    greatest = np.array([one.greatest for one in book.regions], np.int64)
    slot, pattern_slots, bit_atoms = _slots(atoms)
    conditions = _conditions(encoded, intervals, slot)
    cost = costs(encoded, intervals, greatest)
    key_start, key_atom, key_target, weight = choose_keys(
        conditions.offsets, conditions.program, cost
    )
    width = 1 << np.ceil(np.log2(greatest + 1)).astype(np.int64)
    node_base = np.concatenate(([0], np.cumsum(2 * width)))
    bit_base = int(node_base[-1])
    repeated = np.diff(key_start) > 1
    fits = rows_alone(conditions) & ~repeated
    grid, estimates = _grid(conditions, np.flatnonzero(fits), weight, greatest)
    key_start, key_atom, key_target = _without(grid.query, key_start, key_atom, key_target)
    nodes, queries, literals = key_entries(
        key_start,
        key_atom,
        key_target,
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
    order = np.lexsort((queries, ~fits[queries], nodes))
    nodes, queries, literals = nodes[order], queries[order], literals[order]
    heads, first = np.unique(nodes, return_index=True)
    start = np.append(first, len(nodes))
    fit = np.diff(np.concatenate(([0], np.cumsum(fits[queries])))[start])
    key = np.where(repeated[queries] | (key_target[literals] != TRUE), -1, key_atom[literals])
    mask, row, then, column, low, high = rows(conditions, queries, key, fits, repeated)
    plan = plan_records(start, fit, row, column, low, high)
    records, bits, words_of_living = fill_records(
        start, fit, queries, mask, then, row, column, low, high, plan
    )
    line_of = np.full(bit_base + 3 * len(atoms), -1, np.int32)
    line_of[heads] = plan[2][:-1]
    of_literals = line_of[bit_base:].reshape(-1, 3)
    plain, negated = _pattern_lines(atoms, slot, len(pattern_slots), of_literals)
    clusters = Clusters(
        node_base[:-1],
        width,
        _filed(line_of, node_base),
        _null_keyed(line_of, node_base[:-1], width),
        line_of,
        records,
        bits,
        np.flatnonzero(weight == UNKNOWN),
        plain,
        negated,
        np.flatnonzero((atoms.kind == COMPARE) & (of_literals >= 0).any(axis=1)),
        bit_base,
    )
    never = int((weight == NEVER).sum())
    depth = int(np.diff(conditions.offsets).max(initial=1))
    return Built(
        book,
        conditions,
        clusters,
        grid,
        pattern_slots,
        bit_atoms,
        len(nodes),
        len(heads),
        plan[2][:-1][plan[0] > 0],
        words_of_living,
        int(fit[plan[0] > 0].sum()),
        estimates,
        never,
        depth,
    )


def _conditions(
    encoded: EncodedQueries, intervals: Intervals, slot: npt.NDArray[np.int64]
) -> Conditions:
    """The atoms and programs as the kernels read them."""
    atoms, trees = encoded.atoms, encoded.trees
    offsets, program = _own(trees.offsets), _own(trees.program)
    return Conditions(
        _own(atoms.kind),
        _own(atoms.column),
        intervals.start,
        intervals.low,
        intervals.high,
        _own(atoms.negated),
        slot,
        offsets,
        program,
        deciding(offsets, program),
    )


def _pattern_lines(
    atoms: EncodedAtoms,
    slot: npt.NDArray[np.int64],
    slots: int,
    of_literals: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """By slot: the line of what is filed under a match, for LIKE and for NOT LIKE; −1 for none."""
    plain, negated = np.full(slots, -1, np.int32), np.full(slots, -1, np.int32)
    texts = np.flatnonzero(atoms.kind == MATCHES)
    refusing = atoms.negated[texts] == 1
    plain[slot[texts[~refusing]]] = of_literals[texts[~refusing], TRUE]
    negated[slot[texts[refusing]]] = of_literals[texts[refusing], FALSE]
    return plain, negated


def _own(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array that may be written to: for one that may not, Numba would compile all anew."""
    return array if array.flags.writeable else array.copy()


def _grid(
    conditions: Conditions,
    numbers: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    greatest: npt.NDArray[np.int64],
) -> tuple[Grid, tuple[float, float]]:
    """The grid of those queries, or an empty one where keys are faster; what was estimated."""
    counts = asked_about(conditions, numbers, len(greatest))
    columns = np.flatnonzero(counts)
    columns = columns[np.argsort(-counts[columns], kind="stable")].astype(np.int32)
    words = len(numbers) / 64
    by_grid = COLUMN * len(columns) + WORD * words * len(columns)
    by_keys = CANDIDATE * weight[numbers].sum()
    if by_grid > by_keys or not len(columns):
        columns, numbers = columns[:0], numbers[:0]
    buckets = int(np.clip(GRID_BITS / (1 + len(numbers) * len(columns)), 32, 1024))
    numbers = numbers[z_order(conditions, numbers, columns[:3], greatest)].astype(np.int32)
    filled = fill_grid(conditions, numbers, columns, greatest, buckets)
    return Grid(columns, numbers, *filled), (float(by_grid), float(by_keys))


def _without(
    taken: npt.NDArray[np.int32],
    start: npt.NDArray[np.int64],
    atom: npt.NDArray[np.int32],
    target: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """The keys without those of the queries that are found otherwise."""
    lengths = np.diff(start)
    kept = np.ones(len(lengths), np.bool_)
    kept[taken] = False
    literals = np.repeat(kept, lengths)
    starts = np.concatenate(([0], np.cumsum(np.where(kept, lengths, 0))))
    return starts, atom[literals], target[literals]


def _filed(
    line_of: npt.NDArray[np.int32], node_base: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """By column: is any query filed under it?"""
    filed = np.concatenate(([0], np.cumsum(line_of >= 0)))
    return np.diff(filed[node_base]) > 0


def _null_keyed(
    line_of: npt.NDArray[np.int32], base: npt.NDArray[np.int64], width: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The columns of which something is filed where an event without the attribute finds it."""
    found = np.zeros(len(base), np.bool_)
    node = width.copy()
    while (node >= 1).any():
        live = node >= 1
        found[live] |= line_of[(base + node)[live]] >= 0
        node >>= 1
    return np.flatnonzero(found)


def _slots(
    atoms: EncodedAtoms,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Patterns on the same column share a slot, negated or not; comparisons have one each."""
    slot = np.zeros(len(atoms), np.int64)
    texts = np.flatnonzero(atoms.kind == MATCHES)
    pairs = np.stack([atoms.column[texts].astype(np.int64), atoms.start[texts]], axis=1)
    _, standing, numbers = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    slot[texts] = numbers.reshape(-1)
    bit_atoms = np.flatnonzero((atoms.kind == COMPARE) | (atoms.kind == CONSTANT))
    slot[bit_atoms] = np.arange(len(bit_atoms))
    return slot, texts[standing], bit_atoms


def key_costs(encoded: EncodedQueries, built: Built) -> npt.NDArray[np.float64]:
    """The costs by which the keys of these queries were chosen."""
    conditions = built.conditions
    intervals = Intervals(conditions.starts, conditions.low, conditions.high)
    greatest = np.array([one.greatest for one in built.book.regions], np.int64)
    return costs(encoded, intervals, greatest)


def costs(
    encoded: EncodedQueries, intervals: Intervals, greatest: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """How often each atom is FALSE, TRUE and NULL, as far as the queries themselves tell.

    Where many queries ask about an attribute, many events are taken to have it; its values are
    taken to be spread evenly over its regions. Patterns that many queries ask for, and short ones,
    are taken to match often.
    """
    atoms, program = encoded.atoms, encoded.trees.program
    cost = np.full((len(atoms), 3), UNKNOWN)
    uses = np.bincount(program[program >= 0], minlength=len(atoms))
    about = np.where(atoms.column >= 0, atoms.column, 0)
    asked = np.bincount(atoms.column[atoms.column >= 0], uses[atoms.column >= 0], len(greatest))
    present = np.clip(asked / max(1, len(encoded)), RARE, 1.0)
    sizes = np.concatenate(([0], np.cumsum(intervals.high - intervals.low + 1)))
    covered = sizes[intervals.start[1:]] - sizes[intervals.start[:-1]]
    share = covered / np.maximum(greatest[about] if len(greatest) else 1, 1)
    often = present[about] if len(greatest) else np.ones(len(atoms))
    within, null = atoms.kind == WITHIN, atoms.kind == IS_NULL
    cost[within, TRUE] = np.where(share > 0, np.maximum(share * often, RARE), NEVER)[within]
    cost[within, FALSE] = np.where(share < 1, np.maximum((1 - share) * often, RARE), NEVER)[within]
    cost[within, NULL] = NULLS
    positive = null & (atoms.negated == 0)
    cost[null, TRUE] = np.where(positive, NULLS, often)[null]
    cost[null, FALSE] = np.where(positive, often, NULLS)[null]
    cost[null, NULL] = NEVER
    compare = atoms.kind == COMPARE
    cost[compare, TRUE] = cost[compare, FALSE] = COMPARISON
    texts = np.flatnonzero(atoms.kind == MATCHES)
    letters = np.diff(atoms.patterns.text.offsets)[atoms.start[texts]]
    asked_for = uses[texts] / max(1, len(encoded))
    matched = np.clip(np.maximum(asked_for, 0.5**letters), *PATTERN)
    cost[texts, np.where(atoms.negated[texts] == 0, TRUE, FALSE)] = matched
    cost[texts, NULL] = NULLS
    constant = np.flatnonzero(atoms.kind == CONSTANT)
    cost[constant] = NEVER
    cost[constant, atoms.code[constant]] = UNKNOWN
    return cost
