"""Queries that were filed together, and how events are matched against them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.jit import warn_before_compiling
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.encoding.text_search import TextSearch
from headgate.matching.keyed.arrays import Appended, Events, Living, Scratch
from headgate.matching.keyed.build import Built, build
from headgate.matching.keyed.kernels.grid import BLOCK, TOGETHER
from headgate.matching.keyed.kernels.match import match, most_met
from headgate.matching.keyed.kernels.records import living_words
from headgate.matching.scan import compared
from headgate.predicate import Column, Compare, Constant
from headgate.predicate import Matches as TextMatches
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.atoms import atoms_from
from headgate.snapshot.arrays.trees import TRUTH_VALUES

OUTPUT = 1 << 21  # matches that a thread collects, unless a single event may have more
WAITING = 1024  # entries that are being loaded

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ColumnPatterns:
    """The patterns on one column: number i of the search is slot `slots[i]`."""

    column: Column
    slots: Numbers
    search: TextSearch


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Query n of the encoded ones has the position `positions[n]`."""

    encoded: EncodedQueries = field(repr=False)
    positions: Numbers
    built: Built = field(repr=False)
    bit_atoms: tuple[Compare | Constant, ...]
    patterns: tuple[ColumnPatterns, ...]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def columns(self) -> list[Column]:
        return [regions.column for regions in self.built.book.regions]

    def events(self, columns: EventColumns) -> Events:
        """A batch as the kernels read it."""
        codes = self.built.book.codes(columns)
        return Events(*codes, self._bits(columns), *self._texts(columns))

    def _bits(self, columns: EventColumns) -> npt.NDArray[np.uint8]:
        """The truth of comparisons and constants."""
        bits = np.zeros((len(columns), len(self.bit_atoms)), np.uint8)
        for slot, atom in enumerate(self.bit_atoms):
            if isinstance(atom, Constant):
                bits[:, slot] = TRUTH_VALUES.index(atom.value)
                continue
            left, right = columns.whole(atom.left), columns.whole(atom.right)
            truth = compared(atom, left, right).astype(np.uint8)
            for side in (left, right):
                if side.valid is not None:
                    truth[~side.valid] = 2
            bits[:, slot] = truth
        return bits

    def _texts(self, columns: EventColumns) -> tuple[Any, ...]:
        """Which slots the distinct texts of each column matched."""
        ranks = np.zeros((len(columns), len(self.patterns)), np.int64)
        numbers = {column: number for number, column in enumerate(self.columns)}
        first_text, starts, matched = [], [np.zeros(1, np.int64)], [np.empty(0, np.int64)]
        texts = found = 0
        for place, patterns in enumerate(self.patterns):
            column = columns.whole(patterns.column)
            ranks[:, place] = column.codes
            ends, hits = patterns.search.matched(column.ranked or [])
            first_text.append(texts)
            starts.append(ends[1:] + found)
            matched.append(patterns.slots[hits])
            texts, found = texts + len(ends) - 1, found + len(hits)
        return (
            ranks,
            np.array([numbers[patterns.column] for patterns in self.patterns], np.int64),
            np.array(first_text, np.int64),
            np.concatenate(starts),
            np.concatenate(matched),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A segment without the queries that were removed."""

    segment: Segment
    living: npt.NDArray[np.bool_]  # by number
    bits: Living
    position: Numbers  # by number; empty where numbers are positions

    @classmethod
    def of(cls, segment: Segment, living: npt.NDArray[np.bool_] | None = None) -> Part:
        """The part of a segment that is alive, by number; all of it if not said otherwise."""
        alive = np.ones(len(segment), np.bool_) if living is None else living
        same = np.array_equal(segment.positions, np.arange(len(segment)))
        position = segment.positions[:0] if same else segment.positions
        return cls(segment, alive, _bits(segment.built, alive), position)

    @property
    def dead(self) -> int:
        return len(self.living) - int(self.living.sum())

    def without(self, gone: Numbers) -> Part:
        """The part without the queries at some positions, as far as it has them."""
        living = self.living.copy()
        living[self.numbers(gone)] = False
        return Part.of(self.segment, living)

    def numbers(self, positions: Numbers) -> Numbers:
        """The numbers of the living queries at some positions, as far as they are here."""
        return np.flatnonzero(np.isin(self.segment.positions, positions) & self.living)

    def matched(
        self, events: Events, row: int, stop: int, room: Room, others: tuple[Numbers, Numbers]
    ) -> tuple[Numbers, Numbers]:
        """The matches of rows from `row` on, at most up to `stop`: their offsets and positions.

        To the positions of each event, which are in no particular order, those that others found
        are added. Fewer rows are matched where there is no room for more, but at least one.
        """
        built = self.segment.built
        most = int(np.diff(others[0]).max(initial=0))
        out = np.empty(max(OUTPUT, len(self.segment) + most), np.int64)  # mapped when written to
        end = match(
            built.conditions,
            built.clusters,
            built.grid,
            events,
            row,
            stop,
            room.scratch,
            self.bits,
            Appended(self.position, *others),
            out,
            room.offsets,
        )
        offsets = room.offsets[: end - row + 1].copy()
        return offsets, out[: offsets[-1]]


class Room:
    """Where one thread works on one segment."""

    def __init__(self, segment: Segment, rows: int) -> None:
        built = segment.built
        self.offsets = np.empty(rows + 1, np.int64)
        self.scratch = Scratch(
            clock=np.zeros(1, np.int64),
            codes=np.zeros(len(built.book.regions), np.int32),
            stamp=np.zeros(len(built.pattern_slots), np.int64),
            seen=np.zeros(len(segment), np.int64),
            stack=np.empty(built.depth + 1, np.int64),
            rows=np.empty(len(built.book.regions) + TOGETHER, np.int64),
            met=np.empty(most_met(built.clusters), np.int64),
            waiting=np.empty((WAITING, 2), np.int64),
            block=np.empty(BLOCK, np.uint64),
            full=np.empty(BLOCK, np.int64),
        )


def segment_of(encoded: EncodedQueries, positions: Numbers, schema: Schema) -> Segment:
    """File queries, which have the given positions."""
    warn_before_compiling(__package__)
    built = build(encoded, schema)
    bit_atoms = atoms_from(encoded.atoms, schema, built.bit_atoms)
    pattern_atoms = atoms_from(encoded.atoms, schema, built.pattern_slots)
    return Segment(
        encoded,
        positions,
        built,
        tuple(atom for atom in bit_atoms if isinstance(atom, Compare | Constant)),
        _by_column([atom for atom in pattern_atoms if isinstance(atom, TextMatches)]),
    )


def _by_column(atoms: list[TextMatches]) -> tuple[ColumnPatterns, ...]:
    slots: dict[Column, list[int]] = {}
    for slot, atom in enumerate(atoms):
        slots.setdefault(atom.column, []).append(slot)
    return tuple(
        ColumnPatterns(
            column, np.array(numbers, np.int64), TextSearch([atoms[n].pattern for n in numbers])
        )
        for column, numbers in slots.items()
    )


def _bits(built: Built, living: npt.NDArray[np.bool_]) -> Living:
    if living.all():
        nothing = np.empty(0, np.uint64)
        return Living(nothing, nothing, nothing)
    numbers = _packed(living)
    arrays = (built.clusters.records, built.bitmap_lines, built.words_of_living, numbers)
    return Living(numbers, living_words(*arrays), _packed(living[built.grid.query]))


def _packed(bits: npt.NDArray[np.bool_]) -> Bits:
    padded = np.zeros((len(bits) // 64 + 1) * 64, np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view(np.uint64)
