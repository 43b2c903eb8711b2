"""Queries that were placed together, and how a batch of events is encoded for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.jit import warn_before_compiling
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.encoding.text_search import TextSearch
from headgate.matching.keyed.arrays import FALSE, NULL, TRUE, Events
from headgate.matching.keyed.build import NEVER, UNKNOWN, KeyedArrays, build_arrays, key_costs
from headgate.matching.keyed.kernels.keys import choose_keys
from headgate.matching.matches import Numbers
from headgate.matching.protocol import Placement
from headgate.matching.scan import compare_columns, compare_ordinals
from headgate.predicate import Atom, Column, Compare, Constant, Not, Predicate, Truth
from headgate.predicate import Matches as TextMatches
from headgate.schema import Ordinal, Schema
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.atoms import decode_atoms
from headgate.snapshot.arrays.trees import TRUTH_VALUES
from headgate.sql import render_predicate

KIND = "keyed"

_FIRST = np.zeros(1, np.int64)  # the number of the first text, or the end of none


@dataclass(frozen=True, slots=True)
class ColumnPatterns:
    """The patterns on one column: number i of the search is slot `slots[i]`."""

    column: Column
    slots: Numbers
    search: TextSearch


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Encoded queries and the arrays built from them; number n has the position `positions[n]`."""

    encoded: EncodedQueries = field(repr=False)
    positions: Numbers
    built: KeyedArrays = field(repr=False)
    bit_atoms: tuple[Compare | Constant, ...]
    patterns: tuple[ColumnPatterns, ...]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def columns(self) -> list[Column]:
        """The columns that the queries mention, by number."""
        return [regions.column for regions in self.built.book.regions]

    def encode_events(self, columns: EventColumns) -> Events:
        """Return a batch as the kernels read it."""
        codes = self.built.book.codes(columns)
        texts = []
        for patterns in self.patterns:
            column = columns.whole(patterns.column)
            texts.append((column.codes, column.ranked or []))
        bits = self._evaluate_bits(columns)
        return Events(*codes, bits, *self._search_texts(len(columns), texts))

    def encode_one(self, ordinals: Mapping[str, Ordinal]) -> Events:
        """Return one event as the kernels read it, from the ordinals of its values by name."""
        codes = self.built.book.codes_of_one(ordinals)
        bits = [[self._evaluate_bit(atom, ordinals) for atom in self.bit_atoms]]
        texts = []
        for patterns in self.patterns:
            text = ordinals.get(patterns.column.name)
            texts.append((_FIRST, [] if text is None else [text]))
        return Events(*codes, np.array(bits, np.uint8), *self._search_texts(1, texts))

    def _evaluate_bits(self, columns: EventColumns) -> npt.NDArray[np.uint8]:
        """Return the truth of comparisons and constants, by event and slot."""
        bits = np.zeros((len(columns), len(self.bit_atoms)), np.uint8)
        for slot, atom in enumerate(self.bit_atoms):
            if isinstance(atom, Constant):
                bits[:, slot] = TRUTH_VALUES.index(atom.value)
                continue
            left, right = columns.whole(atom.left), columns.whole(atom.right)
            # FALSE where a side is NULL, so that NULL is written over it
            truth = compare_columns(atom, left, right).astype(np.uint8)
            for side in (left, right):
                if side.valid is not None:
                    truth[~side.valid] = NULL
            bits[:, slot] = truth
        return bits

    def _evaluate_bit(self, atom: Compare | Constant, ordinals: Mapping[str, Ordinal]) -> int:
        """Return the truth of a comparison or constant for one event."""
        if isinstance(atom, Constant):
            return TRUTH_VALUES.index(atom.value)
        left, right = ordinals.get(atom.left.name), ordinals.get(atom.right.name)
        if left is None or right is None:
            return NULL
        return TRUE if compare_ordinals(atom, left, right) else FALSE

    def _search_texts(
        self, rows: int, texts: Sequence[tuple[Numbers, list[Any]]]
    ) -> tuple[Any, ...]:
        """Return which slots the distinct texts of each column match: the last fields of `Events`.

        `texts` has for each column with patterns the rank of each row's text, and the texts. Those
        of all columns are numbered one column after the other.
        """
        if not texts:
            nothing = np.empty(0, np.int64)
            return np.empty((rows, 0), np.int64), nothing, nothing, _FIRST, nothing
        # (events, pattern columns): the rank of the event's text among those of the column
        ranks = np.zeros((rows, len(self.patterns)), np.int64)
        numbers = {column: number for number, column in enumerate(self.columns)}
        first_text, starts, matched = [], [np.zeros(1, np.int64)], [np.empty(0, np.int64)]
        text_count = hit_count = 0
        for place, (patterns, (codes, distinct)) in enumerate(
            zip(self.patterns, texts, strict=True)
        ):
            ranks[:, place] = codes
            # `ends` count from 0 in each column, `starts` through all of them
            ends, hits = patterns.search.match(distinct)
            first_text.append(text_count)
            starts.append(ends[1:] + hit_count)
            matched.append(patterns.slots[hits])
            text_count, hit_count = text_count + len(ends) - 1, hit_count + len(hits)
        return (
            ranks,
            np.array([numbers[patterns.column] for patterns in self.patterns], np.int64),
            np.array(first_text, np.int64),
            np.concatenate(starts),
            np.concatenate(matched),
        )

    def locate(self, number: int, schema: Schema) -> Placement:
        """Return where a query was placed, in words."""
        if number in self.built.grid.query:
            others, figures = len(self.built.grid.query) - 1, self.built.figures
            how = (
                f"in a bitmap with {others:,} others, evaluated for every event: that is estimated "
                f"at {figures.grid_ns / 1000:.2g} µs an event, and at "
                f"{figures.keys_ns / 1000:.2g} by keys"
            )
            return Placement(KIND, how)
        # the key is not kept, but chosen again, from the same program and costs
        trees = self.encoded.trees
        begin, end = trees.offsets[number : number + 2]
        program = trees.program[begin:end].copy()
        _, atoms, targets, weight = choose_keys(
            np.array([0, len(program)]), program, key_costs(self.encoded, schema)
        )
        if weight[0] == NEVER:
            return Placement(KIND, "evaluated for no event, because it cannot match")
        if weight[0] == UNKNOWN:
            return Placement(KIND, "evaluated for every event, because no condition leads to it")
        # an atom may stand in a program twice, and is named once
        literals = sorted(set(zip(atoms.tolist(), targets.tolist(), strict=True)))
        numbers = np.array([atom for atom, _ in literals], np.int64)
        key_atoms = decode_atoms(self.encoded.atoms, schema, numbers)
        keys = [
            render_predicate(_to_condition(atom, target))
            for atom, (_, target) in zip(key_atoms, literals, strict=True)
        ]
        how = "evaluated for events that meet one of these conditions"
        return Placement(KIND, how, tuple(keys), min(1.0, float(weight[0])))


def build_segment(encoded: EncodedQueries, positions: Numbers, schema: Schema) -> Segment:
    """Place queries, which have the given positions."""
    warn_before_compiling(__package__)
    return complete_segment(encoded, positions, build_arrays(encoded, schema), schema)


def complete_segment(
    encoded: EncodedQueries, positions: Numbers, built: KeyedArrays, schema: Schema
) -> Segment:
    """Return queries that are placed, with what cannot be kept as arrays."""
    bit_atoms = decode_atoms(encoded.atoms, schema, built.slots.bit_atoms)
    pattern_atoms = decode_atoms(encoded.atoms, schema, built.slots.pattern_atoms)
    return Segment(
        encoded,
        positions,
        built,
        tuple(atom for atom in bit_atoms if isinstance(atom, Compare | Constant)),
        _group_patterns([atom for atom in pattern_atoms if isinstance(atom, TextMatches)]),
    )


def _group_patterns(atoms: list[TextMatches]) -> tuple[ColumnPatterns, ...]:
    """Return the patterns, by slot, as one search for each column."""
    slots: dict[Column, list[int]] = {}
    for slot, atom in enumerate(atoms):
        slots.setdefault(atom.column, []).append(slot)
    return tuple(
        ColumnPatterns(
            column, np.array(numbers, np.int64), TextSearch([atoms[n].pattern for n in numbers])
        )
        for column, numbers in slots.items()
    )


def _to_condition(atom: Atom, target: int) -> Predicate:
    """Return the condition that an atom has a truth value."""
    if target == TRUE:
        return atom
    return Not(atom) if target == FALSE else Truth(atom, frozenset({None}))
