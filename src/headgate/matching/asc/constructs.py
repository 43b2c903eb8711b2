"""Attribute selection constructs: the values of a column, the comparison of two, or text patterns.

A construct gives each event a row of the bitmaps. Values between two neighbouring constants are one
region, as in `encoding.code_book`: the paper's 2m + 1 regions, without those that no query tells
apart from their neighbour, and one for NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headgate.matching.asc.kernels.fill import fill_text_rows
from headgate.matching.encoding.code_book import Regions, build_look_up_table
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.encoding.text_search import TextSearch
from headgate.matching.scan import compare_columns
from headgate.predicate import Column, Compare, Matches, Pattern
from headgate.predicate.atoms import MIRROR, Operator
from headgate.schema import ValueSet
from headgate.snapshot.arrays.operands import NUMBERS, pool_of

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Intervals = list[tuple[int, int]]  # of codes, both ends included

# Codes of two columns: 0 if one is NULL, 1 if the left one is less, 2 equal, 3 greater.
_ACCEPTED_CODES: dict[Operator, Intervals] = {
    "<": [(1, 1)],
    "<=": [(1, 2)],
    "=": [(2, 2)],
    "<>": [(1, 1), (3, 3)],
    ">=": [(2, 3)],
    ">": [(3, 3)],
}


class ValueConstruct:
    """The values of a column; region 0 is NULL, 1 what lies below the least cut.

    `rows[r]` is the row of region r in the bitmaps.
    """

    def __init__(self, column: Column, rows: Codes) -> None:
        self.column = column
        self.rows = rows
        numbers = pool_of(column.type) == NUMBERS
        self.cuts: npt.NDArray[Any] = np.empty(0, np.int64 if numbers else np.object_)
        self._regions: Regions | None = None
        self._read = 0  # values since the cuts last changed

    @property
    def name(self) -> str:
        return self.column.name

    def split(self, sets: Sequence[ValueSet], new_row: Callable[[int], int]) -> None:
        """Cut regions where membership in sets changes; `new_row(old)` makes a copy of a row."""
        needed = {cut for values in sets for cut in values.cuts}
        cuts = np.array(sorted(needed), self.cuts.dtype)
        # a cut that is known splits nothing
        places = self._count_below(cuts)
        known = np.zeros(len(cuts), np.bool_)
        inside = places > 0
        known[inside] = self.cuts[places[inside] - 1] == cuts[inside]
        fresh, places = cuts[~known], places[~known]
        if not len(fresh):
            return
        # a cut behind p others lies in region p + 1, whose upper part becomes a new region
        rows = [new_row(int(self.rows[place + 1])) for place in places.tolist()]
        self.rows = np.insert(self.rows, places + 2, rows)
        self.cuts = np.insert(self.cuts, places, fresh)
        self._regions, self._read = None, 0

    def _count_below(self, ordinals: npt.NDArray[Any]) -> Numbers:
        """Return how many cuts are not above each ordinal."""
        return np.searchsorted(self.cuts, ordinals, side="right")

    def find_regions(self, sets: Sequence[ValueSet]) -> list[Intervals]:
        """Return the regions of each set of values, all of whose cuts are known."""
        flat = np.array([cut for values in sets for cut in values.cuts], self.cuts.dtype)
        # the n-th cut begins region n + 1; a set is the regions between two of its cuts
        places, regions = iter((self._count_below(flat) + 1).tolist()), []
        for values in sets:
            ends = [1] if values.starts_inside else []
            ends += islice(places, len(values.cuts))
            if len(ends) % 2:
                # the set has no end: up to the last region
                ends.append(len(self.rows))
            pairs = zip(ends[::2], ends[1::2], strict=True)
            regions.append([(low, high - 1) for low, high in pairs])
        return regions

    def read_rows(self, columns: EventColumns) -> Codes:
        """Return the row of each event of a batch."""
        regions = self._choose_regions(len(columns))
        # a table gives rows at once, and without NULLs numbers are read as they lie
        plain = columns.plain(self.column) if regions.table is not None else None
        if plain is not None:
            return regions.codes_of_numbers(plain)
        present, coded = columns.present(self.column)
        present_rows = regions.codes(coded)
        if regions.table is None:
            present_rows = self.rows[present_rows]
        if len(present) == len(columns):
            return present_rows
        # region 0 is NULL
        rows = np.full(len(columns), self.rows[0], np.int32)
        rows[present] = present_rows
        return rows

    def _choose_regions(self, values: int) -> Regions:
        """Return how values become codes.

        A table of all integers, which then gives the rows at once, is made only if the cuts have
        stayed for as many values as it has entries.
        """
        numbers, before = self.cuts.dtype == np.int64, self._read
        self._read += values
        if self._regions is None:
            cuts: Any = self.cuts if numbers else self.cuts.tolist()
            self._regions = Regions(self.column, cuts, None)
        # as many as `build_look_up_table` would make; it makes none if they are very many
        entries = int(self.cuts[-1]) - int(self.cuts[0]) + 2 if numbers and len(self.cuts) else 0
        if entries and self._regions.table is None and before <= entries < self._read:
            codes = build_look_up_table(self.cuts)
            if codes is not None:
                self._regions = Regions(self.column, self.cuts, self.rows[codes])
        return self._regions


@dataclass(frozen=True, slots=True, eq=False)
class PairConstruct:
    """The comparison of two columns of a row."""

    left: Column
    right: Column
    rows: Codes

    @property
    def name(self) -> str:
        return f"{self.left.name} : {self.right.name}"

    def read_rows(self, columns: EventColumns) -> Codes:
        """Return the row of each event of a batch."""
        left, right = columns.whole(self.left), columns.whole(self.right)
        less = compare_columns(Compare(self.left, "<", self.right), left, right)
        equal = compare_columns(Compare(self.left, "=", self.right), left, right)
        # what is neither less nor equal is greater, unless a side is NULL
        codes = np.where(less, 1, np.where(equal, 2, 3))
        for side in (left, right):
            if side.valid is not None:
                codes[~side.valid] = 0
        return self.rows[codes]


def order_sides(atom: Compare) -> tuple[Column, Column, Intervals]:
    """Return the columns of a comparison in the order of their names, and the codes it accepts."""
    if atom.left.name <= atom.right.name:
        return atom.left, atom.right, _ACCEPTED_CODES[atom.operator]
    return atom.right, atom.left, _ACCEPTED_CODES[MIRROR[atom.operator]]


Bits = npt.NDArray[np.uint64]


class _Uses(NamedTuple):
    """Pattern p is used by `slots[start[p]:start[p + 1]]`, and refused by some of these."""

    start: Any
    slots: Any
    refuses: Any


class _Texts(NamedTuple):
    """Text t matches the patterns `numbers[start[t]:start[t + 1]]`."""

    start: Any
    numbers: Any


class _Prepared(NamedTuple):
    """What is known of the patterns of a construct, ready to evaluate a batch."""

    search: TextSearch
    uses: _Uses
    needed: npt.NDArray[np.int64]  # by slot: the patterns that must match
    using: Bits  # the slots with a pattern, matching or not
    needing: Bits  # the slots with a pattern that must match


@dataclass(slots=True, eq=False)
class TextConstruct:
    """The patterns on a column, by slot; it has no regions, and makes a row for each text."""

    column: Column
    patterns: dict[int, list[Matches]] = field(default_factory=dict)
    _prepared: _Prepared | None = None

    @property
    def name(self) -> str:
        return f"{self.column.name} LIKE"

    def add(self, slot: int, atom: Matches) -> None:
        self.patterns.setdefault(slot, []).append(atom)
        self._prepared = None

    def drop(self, slot: int) -> None:
        if self.patterns.pop(slot, None) is not None:
            self._prepared = None

    def count_needing(self) -> int:
        """Return how many slots need a pattern to match."""
        return sum(any(not atom.negated for atom in atoms) for atoms in self.patterns.values())

    def count_texts(self, columns: EventColumns) -> int:
        """Return how many distinct texts a batch has."""
        return len(columns.present(self.column)[1].ranked or ())

    def read_rows(self, columns: EventColumns, bits: Bits, first: int, alive: Bits) -> Codes:
        """Write a row for NULL and each text, from `first` on; return the row of each event."""
        prepared = self._prepare(len(alive))
        present, coded = columns.present(self.column)
        # a NULL satisfies no pattern, so the slots with one are ruled out
        bits[first, : len(alive)] = alive & ~prepared.using
        # before any pattern has matched: slots that need no match
        silent = alive & ~prepared.needing
        texts = _Texts(*prepared.search.match(coded.ranked or []))
        uses, needed = prepared.uses, prepared.needed
        fill_text_rows(bits, first + 1, len(alive), silent, needed, texts, uses)
        rows = np.full(len(columns), first, np.int32)
        # texts are numbered by rank, and their rows follow that of NULL
        rows[present] = coded.codes + (first + 1)
        return rows

    def _prepare(self, words: int) -> _Prepared:
        if self._prepared is None or len(self._prepared.using) != words:
            # by pattern: the slots that use it, and whether they refuse it
            users: dict[Pattern, list[tuple[int, bool]]] = {}
            needed = np.zeros(64 * words, np.int64)
            using = np.zeros(64 * words, np.bool_)
            for slot, atoms in self.patterns.items():
                using[slot] = True
                needed[slot] = sum(not atom.negated for atom in atoms)
                for atom in atoms:
                    users.setdefault(atom.pattern, []).append((slot, atom.negated))
            flat = [use for uses in users.values() for use in uses]
            self._prepared = _Prepared(
                TextSearch(list(users)),
                _Uses(
                    np.cumsum([0, *map(len, users.values())], dtype=np.int64),
                    np.array([slot for slot, _ in flat], np.int64),
                    np.array([refuses for _, refuses in flat], np.bool_),
                ),
                needed,
                np.packbits(using, bitorder="little").view(np.uint64),
                np.packbits(needed > 0, bitorder="little").view(np.uint64),
            )
        return self._prepared
