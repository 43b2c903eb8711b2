"""The distinct predicates of a tree: numbered, counted, and given up when nobody has them any more.

"Analysis and optimization for Boolean expression indexing", section 6.1. Numbers below `end` are in
the bitmap, those of one column side by side; what came later is numbered behind, and evaluated
when it is asked for. Now and then all are numbered anew (`renumber`), which is the paper's merging
of both sets, and its compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.bitmap import Block, block_of, filled, with_columns
from headgate.matching.be_tree.domain import LEAST, MOST, is_exact, key_of, point_of
from headgate.matching.be_tree.kernels.pools import (
    ALWAYS_TRUE,
    CUTTABLE,
    EQUALITY,
    EXACT,
    GIVEN,
    NONE,
    Predicates,
)
from headgate.matching.be_tree.labels import Labels
from headgate.matching.be_tree.options import BeTreeOptions
from headgate.predicate import Atom, Column, Compare, IsNull, Within
from headgate.schema import ValueSet

WORD = 64
FEWEST_NEW, SHARE_NEW = 256, 0.25  # predicates before the bitmap is made anew
BITMAP_BYTES = 64 << 20

Numbers = npt.NDArray[np.int64]
Fresh = tuple[int, int, int, int, int, int, int]  # column, first, last, least, most, key, flags


class PredicatePool:
    """Numbers the predicates of one tree.

    Guarantee: predicates that hold for the same rows of a column have one number as long as an
    expression uses them.
    """

    def __init__(self, options: BeTreeOptions) -> None:
        self._options = options
        self.columns: list[Column] = []
        self._column_numbers: dict[str, int] = {}
        self._numbers: dict[object, int] = {}
        self._known: dict[int, int] = {}  # by the address of an atom, which is kept alive
        self._alive: dict[int, Atom] = {}
        self.atoms: list[Atom | None] = [None] * ALWAYS_TRUE  # by number
        self.uses: npt.NDArray[np.int32] = np.zeros(ALWAYS_TRUE, np.int32)
        first, last, low, high, least, most, key = np.zeros((7, ALWAYS_TRUE), np.int64)
        self.arrays = Predicates(
            np.full(ALWAYS_TRUE, NONE, np.int32),
            *(first, last, low, high, least, most, key),
            np.zeros(ALWAYS_TRUE, np.uint8),
        )
        self._intervals = 0
        self._fresh: list[Fresh] = []
        self._fresh_intervals: list[tuple[int, int]] = []
        self._labels: dict[int, Labels] = {}  # of the columns whose ordinals do not fit
        self.blocks: dict[int, Block] = {}  # of the columns in the bitmap
        self.bits = filled({}, 0, ALWAYS_TRUE)
        self._settled = ALWAYS_TRUE  # numbers when all were numbered last
        self.released = 0  # uses that ended since somebody looked for predicates without any
        self.generation = 0  # changes when the predicates that are given do

    def __len__(self) -> int:
        """The numbers that are in use, or were since all were numbered last."""
        return len(self.atoms)

    @property
    def live(self) -> int:
        """The predicates that some expression uses."""
        return int((self.uses[: len(self)] > 0).sum())

    def number(self, atom: Atom) -> int:
        """The number of a predicate; a new one if nobody has it yet."""
        number = self._known.get(id(atom))
        if number is None:
            number = self._number(atom)
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
            self._fresh.append(self._row(atom))
        return number

    def _row(self, atom: Atom) -> Fresh:
        first = self._intervals + len(self._fresh_intervals)
        if not isinstance(atom, Within):
            self.generation += 1
            column = NONE if isinstance(atom, Compare) else self._column(_only_column(atom))
            if isinstance(atom, IsNull):
                return (column, first, first, 0, 0, 0, GIVEN)
            return (NONE, first, first, 0, 0, 0, GIVEN)
        column = self._column(atom.column)
        exact = is_exact(atom.column.type)
        values = atom.values
        if exact:
            self._fresh_intervals += closed(values)
        else:
            self._fresh_intervals += [(0, 0)] * len(values.intervals)
        last = self._intervals + len(self._fresh_intervals)
        least, most = hull(values)
        flags, key = CUTTABLE, 0
        intervals = values.intervals
        if len(intervals) == 1 and intervals[0].is_point:
            flags |= EQUALITY | (EXACT if exact else 0)
            key = key_of(intervals[0].low)
        return (column, first, last, least, most, key, flags)

    def _column(self, column: Column) -> int:
        number = self._column_numbers.get(column.name)
        if number is None:
            number = self._column_numbers[column.name] = len(self.columns)
            self.columns.append(column)
            if not is_exact(column.type):
                self._labels[number] = Labels()
        return number

    def column_number(self, column: Column) -> int:
        """The number of a column, or NONE where no predicate mentions it."""
        return self._column_numbers.get(column.name, NONE)

    def flush(self) -> Numbers:
        """Write what is new into the arrays; gives the new numbers."""
        count, fresh = len(self.atoms), len(self._fresh)
        new = np.arange(count - fresh, count)
        if not fresh:
            return new
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
        self.arrays = Predicates(**arrays)
        self.uses = grow_array(self.uses, count)
        self._intervals = end
        self._fresh, self._fresh_intervals = [], []
        self._label_new(new)
        return new

    def ready(self) -> Numbers | None:
        """Get ready to evaluate; gives the new number of each old one where they have changed."""
        self.flush()
        evaluation, new = self._options.evaluation, len(self) - self._settled
        orphans = 0
        if self.released > max(2 * FEWEST_NEW, len(self) // 2):
            orphans, self.released = len(self) - ALWAYS_TRUE - self.live, 0
        changed = None
        if (
            (evaluation == "bitmap" and new)
            or (evaluation == "hybrid" and new > max(FEWEST_NEW, SHARE_NEW * self._settled))
            or orphans > len(self) // 2
        ):
            changed = self.renumber()
        self.bits = with_columns(self.bits, len(self.columns))
        return changed

    def renumber(self) -> Numbers:
        """Number the predicates anew, by column, without those that nobody has; make the bitmap.

        Gives the new number of each old one, NONE for those that are given up.
        """
        self.flush()
        count = len(self)
        alive = np.flatnonzero(self.uses[:count] > 0)
        given = (self.arrays.flags[alive] & GIVEN) > 0
        group = np.where(given, NONE, self.arrays.column[alive])
        with_bitmap = self._options.evaluation in ("bitmap", "hybrid")
        blocks = dict(self._blocks(alive)) if with_bitmap else {}
        home = np.full(len(self.columns) + 1, len(self.columns) + 1)  # the last entry is for NONE
        home[sorted(blocks)] = np.arange(len(blocks))
        order = alive[np.argsort(home[group], kind="stable")]
        sizes = np.array([len(blocks[c].predicates) for c in sorted(blocks)], np.int64)
        aligned = -(-sizes // WORD) * WORD
        starts = ALWAYS_TRUE + np.concatenate(([0], np.cumsum(aligned)))
        inside = int(sizes.sum())
        place = np.repeat(starts[:-1] - (np.cumsum(sizes) - sizes), sizes) + np.arange(inside)
        new = np.full(count, NONE, np.int64)
        new[:ALWAYS_TRUE] = np.arange(ALWAYS_TRUE)
        new[order] = np.concatenate((place, starts[-1] + np.arange(len(order) - inside)))
        self._move(new, int(starts[-1]) + len(order) - inside)
        self.blocks = {c: blocks[c].moved(new) for c in blocks}
        self.bits = filled(self.blocks, len(self.columns), int(starts[-1]))
        if len(order) < count - ALWAYS_TRUE:
            self._labels = {column: Labels() for column in self._labels}
            self._label_new(np.flatnonzero(self.uses > 0))
        self._settled = len(self)
        self.generation += 1
        return new

    def _blocks(self, alive: Numbers) -> Iterator[tuple[int, Block]]:
        """The columns whose predicates go into the bitmap: the smallest, while there is room."""
        sets = alive[(self.arrays.flags[alive] & GIVEN) == 0]
        order = sets[np.argsort(self.arrays.column[sets], kind="stable")]
        bounds = np.searchsorted(self.arrays.column[order], np.arange(len(self.columns) + 1))
        found = []
        for c, column in enumerate(self.columns):
            mine = order[bounds[c] : bounds[c + 1]]
            if len(mine):
                atoms = [self.atoms[n] for n in mine.tolist()]
                found.append((c, block_of(column, mine, atoms, self.arrays)))
        left = BITMAP_BYTES
        for c, block in sorted(found, key=lambda one: one[1].bytes):
            left -= block.bytes
            if left < 0:
                return
            yield c, block

    def _move(self, new: Numbers, count: int) -> None:
        """Give each predicate its new number; there are `count`, and some belong to nobody."""
        kept = np.flatnonzero(new != NONE)
        to = new[kept]
        arrays = self.arrays._asdict()
        for name in ("column", "first", "last", "least", "most", "key", "flags"):
            moved = np.zeros(count, arrays[name].dtype)
            moved[to] = arrays[name][kept]
            arrays[name] = moved
        self.arrays = Predicates(**arrays)
        uses = np.zeros(count, np.int32)
        uses[to] = self.uses[kept]
        self.uses = uses
        atoms: list[Atom | None] = [None] * count
        for old, number in zip(kept.tolist(), to.tolist(), strict=True):
            atoms[number] = self.atoms[old]
        self.atoms = atoms
        known = new.tolist()
        self._numbers = {k: known[n] for k, n in self._numbers.items() if known[n] != NONE}
        self._known = {k: known[n] for k, n in self._known.items() if known[n] != NONE}
        self._alive = {k: self._alive[k] for k in self._known}

    def _label(self, number: int) -> None:
        """Write the intervals of a predicate whose ordinals do not fit into 64 bits."""
        labels = self._labels[int(self.arrays.column[number])]
        first = int(self.arrays.first[number])
        for i, one in enumerate(self.values(number).intervals):
            self.arrays.low[first + i] = LEAST if one.low is None else labels.of(one.low)
            self.arrays.high[first + i] = MOST if one.high is None else labels.of(one.high) - 1

    def _label_new(self, numbers: Numbers) -> None:
        """Label the constants of new predicates, and all of a column where that moves others."""
        ranked = [n for n in numbers.tolist() if int(self.arrays.column[n]) in self._labels]
        moved = set()
        for number in ranked:
            if not self.arrays.flags[number] & GIVEN:
                column = int(self.arrays.column[number])
                for cut in self.values(number).cuts:
                    if self._labels[column].add(cut):
                        moved.add(column)
        again = [n for column in moved for n in self._on(column)]
        for number in (*ranked, *again):
            if not self.arrays.flags[number] & GIVEN:
                self._label(number)

    def _on(self, column: int) -> list[int]:
        found: list[int] = np.flatnonzero(self.arrays.column[: len(self)] == column).tolist()
        return [number for number in found if self.atoms[number] is not None]

    def values(self, number: int) -> ValueSet:
        """What a predicate accepts."""
        atom = self.atoms[number]
        assert isinstance(atom, Within)
        return atom.values

    def labelled(self, column: int, ordinals: list[Any]) -> Numbers:
        """Ordinals that do not fit into 64 bits, as predicates are evaluated."""
        labels = self._labels[column]
        return np.array([labels.of(ordinal) for ordinal in ordinals], np.int64)

    def numbered(self, accepted: Callable[[Atom], bool]) -> list[tuple[int, Atom]]:
        """The predicates of some kind, with their numbers."""
        return [
            (n, atom) for n, atom in enumerate(self.atoms) if atom is not None and accepted(atom)
        ]


def _only_column(atom: Any) -> Column:
    column: Column = atom.column
    return column


def closed(values: ValueSet) -> list[tuple[int, int]]:
    """The intervals of ordinals that fit into 64 bits, both ends included.

    >>> closed(ValueSet((3, 6, 9), False)) == [(3, 5), (9, MOST)]
    True
    """
    ends = [LEAST, *values.cuts] if values.starts_inside else list(values.cuts)
    if len(ends) % 2:
        ends.append(MOST + 1)
    return [(low, high - 1) for low, high in zip(ends[::2], ends[1::2], strict=True)]


def hull(values: ValueSet) -> tuple[int, int]:
    """The points of the least and of the greatest value."""
    low, high = values.intervals[0].low, values.intervals[-1].high
    most = MOST
    if high is not None:
        most = point_of(high) if isinstance(high, str) else point_of(high - 1)
    return LEAST if low is None else point_of(low), most


def grow_array(array: Any, length: int) -> Any:
    """The array, or a copy with room for at least so many; what is new is 0."""
    if len(array) >= length:
        return array
    shape = (max(length, 2 * len(array)), *array.shape[1:])
    larger = np.zeros(shape, array.dtype)
    larger[: len(array)] = array
    return larger
