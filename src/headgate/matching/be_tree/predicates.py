"""The distinct predicates of a tree: numbered, counted, and dropped when no expression has them.

"Analysis and optimization for Boolean expression indexing", section 6.1. Numbers below `end` are in
the bitmap, those of one column side by side; what came later is numbered behind, and evaluated
when it is needed. Now and then all are numbered again (`renumber`), which is the paper's merging
of both sets, and its compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.bitmap import Block, add_columns, build_bitmap, build_block
from headgate.matching.be_tree.kernels.pools import (
    CUTTABLE,
    EQUALITY,
    EXACT,
    FIRST_PREDICATE,
    NONE,
    PRECOMPUTED,
    PredicateArrays,
)
from headgate.matching.be_tree.options import BeTreeOptions
from headgate.matching.be_tree.values import (
    MAX_POINT,
    MIN_POINT,
    Labels,
    fits_in_64_bits,
    to_key,
    to_point,
)
from headgate.predicate import Atom, Column, Compare, IsNull, Within, columns_of
from headgate.schema import ValueSet

WORD_BITS = 64
MIN_NEW_PREDICATES, MAX_NEW_SHARE = 256, 0.25  # outside the bitmap before it is made again
MAX_BITMAP_BYTES = 64 << 20

Numbers = npt.NDArray[np.int64]
NewRow = tuple[int, int, int, int, int, int, int]  # column, first, last, least, most, key, flags


class PredicatePool:
    """The predicates of one tree, by number.

    Guarantee: predicates that hold for the same rows of a column have one number as long as an
    expression uses them.
    """

    def __init__(self, options: BeTreeOptions) -> None:
        self._options = options
        self.columns: list[Column] = []
        self._column_numbers: dict[str, int] = {}
        self._numbers: dict[object, int] = {}
        # The numbers of atoms by their address, which is quicker than by value: many queries share
        # an atom. They are kept alive, so that no other atom gets the address.
        self._known: dict[int, int] = {}
        self._alive: dict[int, Atom] = {}
        self.atoms: list[Atom | None] = [None] * FIRST_PREDICATE  # by number
        self.uses: npt.NDArray[np.int32] = np.zeros(FIRST_PREDICATE, np.int32)
        first, last, low, high, least, most, key = np.zeros((7, FIRST_PREDICATE), np.int64)
        self.arrays = PredicateArrays(
            np.full(FIRST_PREDICATE, NONE, np.int32),
            *(first, last, low, high, least, most, key),
            np.zeros(FIRST_PREDICATE, np.uint8),
        )
        self._intervals = 0
        self._fresh: list[NewRow] = []  # predicates that `flush` writes into the arrays
        self._fresh_intervals: list[tuple[int, int]] = []
        self._labels: dict[int, Labels] = {}  # of the columns whose ordinals do not fit
        self.blocks: dict[int, Block] = {}  # of the columns in the bitmap
        self.bits = build_bitmap({}, 0, FIRST_PREDICATE)
        self._settled = FIRST_PREDICATE  # numbers when all were numbered last
        self.released = 0  # uses that ended since predicates without any were last counted
        self.generation = 0  # changes when the precomputed predicates do

    def __len__(self) -> int:
        """Return how many numbers are in use, or were since all were numbered last."""
        return len(self.atoms)

    @property
    def live_count(self) -> int:
        """How many predicates some expression uses."""
        return int((self.uses[: len(self)] > 0).sum())

    def number(self, atom: Atom) -> int:
        """Return the number of a predicate; a new one if no expression has it yet."""
        number = self._known.get(id(atom))
        if number is None:
            number = self._number(atom)
            # atoms that are gone stay alive here, so now and then all are forgotten
            if len(self._known) > 2 * len(self.atoms):
                self._known.clear()
                self._alive.clear()
            self._known[id(atom)], self._alive[id(atom)] = number, atom
        return number

    def _number(self, atom: Atom) -> int:
        key: object = atom
        if isinstance(atom, Within):
            key = (atom.column.name, atom.values.cuts, atom.values.starts_inside)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.atoms)
            self.atoms.append(atom)
            self._fresh.append(self._describe(atom))
        return number

    def _describe(self, atom: Atom) -> NewRow:
        """Return what the arrays hold of a predicate, and note its intervals."""
        first = self._intervals + len(self._fresh_intervals)
        if not isinstance(atom, Within):
            self.generation += 1
            column = NONE if isinstance(atom, Compare) else self._number_column(columns_of(atom)[0])
            column = column if isinstance(atom, IsNull) else NONE
            return (column, first, first, 0, 0, 0, PRECOMPUTED)
        column = self._number_column(atom.column)
        exact = fits_in_64_bits(atom.column.type)
        values = atom.values
        if exact:
            self._fresh_intervals += to_closed_intervals(values)
        else:
            # a place for each; `_write_labels` fills them in once labels are known
            self._fresh_intervals += [(0, 0)] * len(values.intervals)
        last = self._intervals + len(self._fresh_intervals)
        least, most = find_hull(values)
        flags, key = CUTTABLE | (EXACT if exact else 0), 0
        intervals = values.intervals
        if len(intervals) == 1 and intervals[0].is_point:
            flags |= EQUALITY
            key = to_key(intervals[0].low)
        return (column, first, last, least, most, key, flags)

    def _number_column(self, column: Column) -> int:
        number = self._column_numbers.get(column.name)
        if number is None:
            number = self._column_numbers[column.name] = len(self.columns)
            self.columns.append(column)
            if not fits_in_64_bits(column.type):
                self._labels[number] = Labels()
        return number

    def column_number(self, column: Column) -> int:
        """Return the number of a column, or NONE where no predicate mentions it."""
        return self._column_numbers.get(column.name, NONE)

    def flush(self) -> Numbers:
        """Write what is new into the arrays, and return the new numbers."""
        count, fresh = len(self.atoms), len(self._fresh)
        new = np.arange(count - fresh, count)
        if not fresh:
            return new
        # (7, new): a row for each array; and (2, new intervals)
        rows = np.array(self._fresh, np.int64).T
        low_high = np.array(self._fresh_intervals, np.int64).reshape(-1, 2).T
        start, end = self._intervals, self._intervals + low_high.shape[1]
        arrays = self.arrays._asdict()
        for name, row in zip(
            ("column", "first", "last", "least", "most", "key", "flags"), rows, strict=True
        ):
            arrays[name] = grow_array(arrays[name], count)
            arrays[name][count - fresh : count] = row
        for name, row in zip(("low", "high"), low_high, strict=True):
            arrays[name] = grow_array(arrays[name], end)
            arrays[name][start:end] = row
        self.arrays = PredicateArrays(**arrays)
        self.uses = grow_array(self.uses, count)
        self._intervals = end
        self._fresh, self._fresh_intervals = [], []
        self._label_new(new)
        return new

    def prepare(self) -> Numbers | None:
        """Prepare to evaluate; return the new number of each predicate, or None if none changed."""
        self.flush()
        evaluation, new = self._options.evaluation, len(self) - self._settled
        # counting predicates without uses takes a pass over all, so it is done seldom
        orphans = 0
        if self.released > max(2 * MIN_NEW_PREDICATES, len(self) // 2):
            orphans, self.released = len(self) - FIRST_PREDICATE - self.live_count, 0
        changed = None
        if (
            (evaluation == "bitmap" and new)
            or (
                evaluation == "hybrid"
                and new > max(MIN_NEW_PREDICATES, MAX_NEW_SHARE * self._settled)
            )
            or orphans > len(self) // 2
        ):
            changed = self.renumber()
        self.bits = add_columns(self.bits, len(self.columns))
        return changed

    def renumber(self) -> Numbers:
        """Give new numbers to the predicates, by column, without those that no expression has.

        Makes the bitmap, and returns the new number of each old one, NONE for those dropped.
        """
        self.flush()
        count = len(self)
        alive = np.flatnonzero(self.uses[:count] > 0)
        is_precomputed = (self.arrays.flags[alive] & PRECOMPUTED) > 0
        group = np.where(is_precomputed, NONE, self.arrays.column[alive])
        with_bitmap = self._options.evaluation in ("bitmap", "hybrid")
        blocks = dict(self._choose_blocks(alive)) if with_bitmap else {}
        # Columns of the bitmap come first, each from a word's first bit on; then all others.
        home = np.full(len(self.columns) + 1, len(self.columns) + 1)  # the last entry is for NONE
        home[sorted(blocks)] = np.arange(len(blocks))
        order = alive[np.argsort(home[group], kind="stable")]
        sizes = np.array([len(blocks[c].predicates) for c in sorted(blocks)], np.int64)
        aligned = -(-sizes // WORD_BITS) * WORD_BITS
        starts = FIRST_PREDICATE + np.concatenate(([0], np.cumsum(aligned)))
        inside = int(sizes.sum())
        place = np.repeat(starts[:-1] - (np.cumsum(sizes) - sizes), sizes) + np.arange(inside)
        new = np.full(count, NONE, np.int64)
        new[:FIRST_PREDICATE] = np.arange(FIRST_PREDICATE)
        new[order] = np.concatenate((place, starts[-1] + np.arange(len(order) - inside)))
        self._move(new, int(starts[-1]) + len(order) - inside)
        self.blocks = {c: blocks[c].renumber(new) for c in blocks}
        self.bits = build_bitmap(self.blocks, len(self.columns), int(starts[-1]))
        if len(order) < count - FIRST_PREDICATE:
            self._labels = {column: Labels() for column in self._labels}
            self._label_new(np.flatnonzero(self.uses > 0))
        self._settled = len(self)
        self.generation += 1
        return new

    def _choose_blocks(self, alive: Numbers) -> Iterator[tuple[int, Block]]:
        """Yield the columns whose predicates go into the bitmap: the smallest that fit into it."""
        # what is evaluated beforehand has no regions, and is in no block
        sets = alive[(self.arrays.flags[alive] & PRECOMPUTED) == 0]
        order = sets[np.argsort(self.arrays.column[sets], kind="stable")]
        bounds = np.searchsorted(self.arrays.column[order], np.arange(len(self.columns) + 1))
        candidates = []
        for c, column in enumerate(self.columns):
            numbers = order[bounds[c] : bounds[c + 1]]
            if len(numbers):
                atoms = [self.atoms[n] for n in numbers.tolist()]
                candidates.append((c, build_block(column, numbers, atoms, self.arrays)))
        # the smallest blocks first: so most columns fit
        left = MAX_BITMAP_BYTES
        for c, block in sorted(candidates, key=lambda candidate: candidate[1].bytes):
            left -= block.bytes
            if left < 0:
                return
            yield c, block

    def _move(self, new: Numbers, count: int) -> None:
        """Give each predicate its new number; there are `count`, and some are in no expression."""
        surviving = np.flatnonzero(new != NONE)
        to = new[surviving]
        arrays = self.arrays._asdict()
        # `low` and `high` are by interval, and stay where they are
        for name in ("column", "first", "last", "least", "most", "key", "flags"):
            moved = np.zeros(count, arrays[name].dtype)
            moved[to] = arrays[name][surviving]
            arrays[name] = moved
        self.arrays = PredicateArrays(**arrays)
        uses = np.zeros(count, np.int32)
        uses[to] = self.uses[surviving]
        self.uses = uses
        atoms: list[Atom | None] = [None] * count
        for old, number in zip(surviving.tolist(), to.tolist(), strict=True):
            atoms[number] = self.atoms[old]
        self.atoms = atoms
        known = new.tolist()
        self._numbers = {k: known[n] for k, n in self._numbers.items() if known[n] != NONE}
        self._known = {k: known[n] for k, n in self._known.items() if known[n] != NONE}
        self._alive = {k: self._alive[k] for k in self._known}

    def _write_labels(self, number: int) -> None:
        """Write the intervals of a predicate whose ordinals do not fit into 64 bits."""
        labels = self._labels[int(self.arrays.column[number])]
        first = int(self.arrays.first[number])
        for i, interval in enumerate(self.values(number).intervals):
            self.arrays.low[first + i] = (
                MIN_POINT if interval.low is None else labels.label(interval.low)
            )
            self.arrays.high[first + i] = (
                MAX_POINT if interval.high is None else labels.label(interval.high) - 1
            )

    def _label_new(self, numbers: Numbers) -> None:
        """Label the constants of new predicates, and all of a column where that moves others."""
        ranked = [n for n in numbers.tolist() if int(self.arrays.column[n]) in self._labels]
        # columns whose labels had no room left between two neighbours
        moved = set()
        for number in ranked:
            if not self.arrays.flags[number] & PRECOMPUTED:
                column = int(self.arrays.column[number])
                for cut in self.values(number).cuts:
                    if self._labels[column].add(cut):
                        moved.add(column)
        again = [n for column in moved for n in self._numbers_on(column)]
        for number in (*ranked, *again):
            if not self.arrays.flags[number] & PRECOMPUTED:
                self._write_labels(number)

    def _numbers_on(self, column: int) -> list[int]:
        numbers: list[int] = np.flatnonzero(self.arrays.column[: len(self)] == column).tolist()
        return [number for number in numbers if self.atoms[number] is not None]

    def values(self, number: int) -> ValueSet:
        """Return the values that a predicate accepts."""
        atom = self.atoms[number]
        assert isinstance(atom, Within)
        return atom.values

    def label_ordinals(self, column: int, ordinals: list[Any]) -> Numbers:
        """Return the labels of ordinals that do not fit into 64 bits."""
        labels = self._labels[column]
        return np.array([labels.label(ordinal) for ordinal in ordinals], np.int64)

    def find_atoms(self, accepted: Callable[[Atom], bool]) -> list[tuple[int, Atom]]:
        """Return the predicates that a function accepts, with their numbers."""
        return [
            (n, atom) for n, atom in enumerate(self.atoms) if atom is not None and accepted(atom)
        ]


def to_closed_intervals(values: ValueSet) -> list[tuple[int, int]]:
    """Return the intervals of ordinals that fit into 64 bits, both ends included.

    >>> to_closed_intervals(ValueSet((3, 6, 9), False)) == [(3, 5), (9, MAX_POINT)]
    True
    """
    ends = [MIN_POINT, *values.cuts] if values.starts_inside else list(values.cuts)
    if len(ends) % 2:
        ends.append(MAX_POINT + 1)
    return [(low, high - 1) for low, high in zip(ends[::2], ends[1::2], strict=True)]


def find_hull(values: ValueSet) -> tuple[int, int]:
    """Return the points of the least and of the greatest value."""
    low, high = values.intervals[0].low, values.intervals[-1].high
    most = MAX_POINT
    if high is not None:
        most = to_point(high) if isinstance(high, str) else to_point(high - 1)
    return MIN_POINT if low is None else to_point(low), most


def grow_array(array: Any, length: int) -> Any:
    """Return the array, or a copy with room for at least so many items; what is new is 0."""
    if len(array) >= length:
        return array
    shape = (max(length, 2 * len(array)), *array.shape[1:])
    larger = np.zeros(shape, array.dtype)
    larger[: len(array)] = array
    return larger
