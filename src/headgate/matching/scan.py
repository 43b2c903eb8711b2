"""The reference index: every query on every event, one array at a time.

Each distinct atom is evaluated once per block of events, and AND, OR, NOT combine arrays of truth
values. It is the oracle for every other index, so it is written straight from the definition of
three-valued logic; and it is a fair baseline, because all the work is in NumPy.

`ScanFallback` is a scan inside another index, for queries whose OR has too many parts for that one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.events import EventBatch
from headgate.events.columns import CodedColumn, Mask, encode_column
from headgate.matching.base import BaseIndex
from headgate.matching.matches import Matches, RowMatches, to_events
from headgate.matching.protocol import Placement
from headgate.predicate import (
    And,
    Atom,
    Compare,
    Constant,
    IsNull,
    Not,
    Or,
    Predicate,
    Truth,
    Within,
    collect_columns,
    iter_atoms,
)
from headgate.predicate import (
    Matches as TextMatches,
)
from headgate.predicate.comparison import OPERATOR_TESTS, compare_values, zone_of
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.queries import Query
from headgate.schema import DecimalType, Integer, Ordinal, Stream, String, Type

MAX_CACHED_BYTES = 64 << 20
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 256, 32_768


class ScanIndex(BaseIndex):
    """An index that evaluates every query on every event.

    Guarantee: event i matches a query exactly when `evaluate(query.where, row i)` is TRUE.
    Memory: the queries, the matches of a chunk, and the truth values of atoms that queries share:
    about 64 MiB, or 256 bytes an atom where more than 260,000 are shared.

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.sql import parse_where
    >>> from headgate.queries import Source
    >>> s = Stream("s", (Attribute("a", INT),))
    >>> big = Query("big", (Source(s, "s"),), parse_where("a > 10", s))
    >>> index = ScanIndex.build(s, [big])
    >>> index.match([{"a": 11}, {"a": 3}, {"a": None}]).ids().to_pylist()
    [['big'], [], []]
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._wheres: dict[str, tuple[int, Predicate]] = {}  # with positions
        self._atoms: dict[Atom, Atom] = {}
        self._uses: Counter[int] = Counter()  # by the identity of the one object for each atom
        self._columns: Counter[str] = Counter()

    def _add(self, query: Query, position: int) -> None:
        where = intern_atoms(query.where, self._atoms)
        self._wheres[query.id] = position, where
        # atoms are counted by identity, which is cheaper than to hash their values
        self._uses.update(map(id, iter_atoms(where)))
        self._columns.update(column.name for column in collect_columns(where))

    def _discard(self, query_id: str, position: int) -> None:
        del position
        _, where = self._wheres.pop(query_id)
        self._uses.subtract(map(id, iter_atoms(where)))
        self._columns.subtract(column.name for column in collect_columns(where))

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        # what is held now: queries may come and go while the matches are consumed
        with self._lock:
            used = [
                attribute.name for attribute in self.stream if self._columns[attribute.name] > 0
            ]
            live = list(self._wheres.values())
            shared = {atom for atom, uses in self._uses.items() if uses > 1}
        batch = self._read(events, used)
        coded = {
            name: encode_column(batch.table.column(name), self.stream[name].type) for name in used
        }
        yield from to_events(
            batch, _match_blocks(live, shared, coded, len(batch.events)), self._ids
        )

    def locate(self, query_id: str) -> Placement:
        self._position_of(query_id)
        return Placement("scan", "evaluated for every event")

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "scan",
            "queries": len(self),
            "positions": len(self._ids),
            "distinct_atoms": sum(uses > 0 for uses in self._uses.values()),
            "attributes": sum(uses > 0 for uses in self._columns.values()),
        }


def _match_blocks(
    live: list[tuple[int, Predicate]],
    shared: set[int],
    coded: Mapping[str, CodedColumn],
    rows: int,
) -> Iterator[RowMatches]:
    """Return the matches of one block of rows after the other."""
    # so many rows that the truths of all shared atoms fit into the cache
    size = min(MAX_BLOCK_ROWS, max(MIN_BLOCK_ROWS, MAX_CACHED_BYTES // (len(shared) + 1)))
    positions = np.array([position for position, _ in live], np.int64)
    for start in range(0, rows, size):
        block = slice(start, min(start + size, rows))
        evaluation = Evaluation(
            {name: column[block] for name, column in coded.items()}, block.stop - start, shared
        )
        # Query by query: the rows that each accepts. `from_pairs` gets them as pairs of row and
        # position, in the order of the queries.
        matching_rows = [np.flatnonzero(evaluation.true(where)) for _, where in live]
        yield RowMatches.from_pairs(
            start,
            block.stop - start,
            np.concatenate([np.empty(0, np.int64), *matching_rows]),
            np.repeat(positions, [len(rows) for rows in matching_rows]),
        )


def intern_atoms(predicate: Predicate, known: dict[Atom, Atom]) -> Predicate:
    """Return an equal predicate, in which equal atoms are one object, across queries."""
    if isinstance(predicate, And):
        return And(tuple(intern_atoms(part, known) for part in predicate.parts))
    if isinstance(predicate, Or):
        return Or(tuple(intern_atoms(part, known) for part in predicate.parts))
    if isinstance(predicate, Not):
        return Not(intern_atoms(predicate.part, known))
    if isinstance(predicate, Truth):
        return Truth(intern_atoms(predicate.part, known), predicate.accepted)
    return known.setdefault(predicate, predicate)


class Evaluation:
    """The truth of predicates over a block of rows: where TRUE, where FALSE; NULL is neither."""

    def __init__(self, columns: Mapping[str, CodedColumn], rows: int, shared: set[int]) -> None:
        self.columns = columns
        self.rows = rows
        self.shared = shared
        self.known: dict[int, Mask] = {}

    def true(self, predicate: Predicate) -> Mask:
        """Return the rows in which a predicate is TRUE."""
        if isinstance(predicate, And):
            return self.all(predicate.parts)
        if isinstance(predicate, Or):
            return reduce(np.logical_or, (self.true(part) for part in predicate.parts))
        if isinstance(predicate, Not):
            return self.false(predicate.part)
        if isinstance(predicate, Truth):
            return self.test(predicate)
        return self.atom(predicate)

    def false(self, predicate: Predicate) -> Mask:
        """Return the rows in which a predicate is FALSE."""
        if isinstance(predicate, And):
            return reduce(np.logical_or, (self.false(part) for part in predicate.parts))
        if isinstance(predicate, Or):
            return reduce(np.logical_and, (self.false(part) for part in predicate.parts))
        if isinstance(predicate, Not):
            return self.true(predicate.part)
        if isinstance(predicate, Truth):
            return ~self.test(predicate)
        # Over NULL, every atom but IS NULL is neither TRUE nor FALSE.
        return self.known_values(predicate) & ~self.atom(predicate)

    def all(self, parts: tuple[Predicate, ...]) -> Mask:
        """Return the AND of the parts; evaluation stops once no row satisfies it."""
        result = self.true(parts[0])
        for part in parts[1:]:
            if not result.any():
                return result
            result = result & self.true(part)
        return result

    def test(self, test: Truth) -> Mask:
        """Return the rows in which `predicate IS [NOT] TRUE`, or the like, holds."""
        # three truth values: TRUE, FALSE, and NULL where it is neither
        true, false = self.true(test.part), self.false(test.part)
        result = np.zeros(self.rows, dtype=np.bool_)
        if True in test.accepted:
            result |= true
        if False in test.accepted:
            result |= false
        if None in test.accepted:
            result |= ~(true | false)
        return result

    def atom(self, atom: Atom) -> Mask:
        """Return the rows in which an atom is TRUE; cached if other queries share it."""
        known = self.known.get(id(atom))
        if known is None:
            known = self._evaluate(atom)
            if id(atom) in self.shared:
                self.known[id(atom)] = known
        return known

    def known_values(self, atom: Atom) -> Mask:
        """Return the rows in which an atom is not NULL."""
        if isinstance(atom, Constant):
            return np.full(self.rows, atom.value is not None)
        if isinstance(atom, IsNull):
            return np.full(self.rows, True)
        sides = (atom.left, atom.right) if isinstance(atom, Compare) else (atom.column,)
        masks = [self.columns[side.name].valid for side in sides]
        present = [mask for mask in masks if mask is not None]
        return reduce(np.logical_and, present, np.full(self.rows, True))

    def _evaluate(self, atom: Atom) -> Mask:
        if isinstance(atom, Constant):
            return np.full(self.rows, atom.value is True)
        if isinstance(atom, Compare):
            return compare_columns(
                atom, self.columns[atom.left.name], self.columns[atom.right.name]
            )
        column = self.columns[atom.column.name]
        if isinstance(atom, IsNull):
            # IS NULL is never NULL itself, so there is nothing to mask
            null = np.full(self.rows, False) if column.valid is None else ~column.valid
            return ~null if atom.negated else null
        inside = (
            column.test_membership(atom.values)
            if isinstance(atom, Within)
            else _match_texts(atom, column)
        )
        return inside if column.valid is None else inside & column.valid


def _match_texts(atom: TextMatches, column: CodedColumn) -> Mask:
    """Try a pattern once on each distinct text of the batch."""
    # answers by code; a NULL row has a code too, and the caller masks it
    distinct = np.unique(column.codes)
    test = atom.pattern.matcher
    answers = np.zeros(len(column.ranked or ()) + 1, dtype=np.bool_)
    if column.ranked:
        answers[distinct] = [test.matches(text) for text in column.decode_ranks(distinct)]
    return np.asarray(answers[column.codes] != atom.negated, dtype=np.bool_)


def compare_columns(atom: Compare, left: CodedColumn, right: CodedColumn) -> Mask:
    """Compare two columns, by their codes if these have one order, else value by value."""
    holds: Any = OPERATOR_TESTS[atom.operator]
    if _have_common_order(left, right):
        result: Mask = holds(left.codes, right.codes)
    else:
        # codes without a common order: values are compared by the definition, row by row
        zone = zone_of(left.type, right.type)
        result = np.fromiter(
            (
                a is not None and b is not None and holds(compare_values(a, b, zone), 0)
                for a, b in zip(left.values, right.values, strict=True)
            ),
            dtype=np.bool_,
            count=len(left.codes),
        )
    # the code of a NULL is arbitrary, so what was compared there does not count
    for column in (left, right):
        if column.valid is not None:
            result = result & column.valid
    return result


def compare_ordinals(atom: Compare, left: Ordinal, right: Ordinal) -> bool:
    """Compare two values, neither of which is NULL, as `compare_columns` does."""
    left_type, right_type = atom.left.type, atom.right.type
    holds: Any = OPERATOR_TESTS[atom.operator]
    both_texts = isinstance(left_type, String) and isinstance(right_type, String)
    if both_texts or _have_ordinals_in_common(left_type, right_type):
        return bool(holds(left, right))
    values = left_type.value(left), right_type.value(right)
    return bool(holds(compare_values(*values, zone_of(left_type, right_type)), 0))


def _have_common_order(left: CodedColumn, right: CodedColumn) -> bool:
    """Return whether the codes of both columns have one order; ranks are those of one column."""
    if left.ranked is not None or right.ranked is not None:
        return False
    return _have_ordinals_in_common(left.type, right.type)


def _have_ordinals_in_common(left: Type, right: Type) -> bool:
    """Return whether the ordinals of both types, which are numbers, have one order."""
    if isinstance(left, DecimalType) and isinstance(right, DecimalType):
        # the ordinals are unscaled integers
        return left.scale == right.scale
    whole = isinstance(left, Integer) and isinstance(right, Integer)
    return whole or type(left) is type(right)


class ScanFallback:
    """A scan whose queries have the positions of another index."""

    def __init__(self, stream: Stream) -> None:
        self._scan = ScanIndex(stream)
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def insert(self, query: Query, position: int) -> None:
        self._positions[query.id] = position
        self._scan.insert(query)

    def remove(self, query_id: str) -> None:
        del self._positions[query_id]
        self._scan.remove(query_id)

    def add_matches(
        self, pieces: Iterator[RowMatches], batch: EventBatch, limit: int
    ) -> Iterator[RowMatches]:
        """Return the matches of the other index, with those of the scan that are below a limit."""
        return (self._merge(piece, batch, limit) for piece in pieces) if len(self) else pieces

    def _merge(self, piece: RowMatches, batch: EventBatch, limit: int) -> RowMatches:
        scanned = self._scan.match(batch.table.slice(piece.row, piece.end - piece.row))
        # from the scan's own positions to those of the other index; −1 for a removed query
        position_of = np.array(
            [self._positions.get(query_id, -1) for query_id in scanned.known_ids], np.int64
        )
        positions = position_of[scanned.positions]
        is_wanted = (positions >= 0) & (positions < limit)
        rows = np.arange(len(scanned))
        scanned_rows = np.repeat(rows, np.diff(scanned.offsets))
        return RowMatches.from_pairs(
            piece.row,
            len(rows),
            np.concatenate((np.repeat(rows, np.diff(piece.offsets)), scanned_rows[is_wanted])),
            np.concatenate((piece.positions, positions[is_wanted])),
        )


def try_conjunctions(query: Query, *, absorb: bool = True) -> tuple[Conjunction, ...] | None:
    """Return the query as an OR of conjunctions (`to_conjunctions`); None if there are too many."""
    try:
        return to_conjunctions(query.where, absorb=absorb)
    except ExpansionTooLarge:
        return None
