"""The reference index: every query on every event, one array at a time.

Each distinct atom is _evaluate once per block of events, and AND, OR, NOT combine arrays of truth
values. It is the oracle for every other index, so it is written straight from the definition of
three-valued logic; and it is a fair baseline, because all the work is in NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

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
from headgate.queries import Query
from headgate.schema import DecimalType, Integer, Stream, Type

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
            used = [one.name for one in self.stream if self._columns[one.name] > 0]
            live = list(self._wheres.values())
            shared = {atom for atom, uses in self._uses.items() if uses > 1}
        batch = self._read(events, used)
        coded = {name: _encode_column(batch, name, self.stream[name].type) for name in used}
        yield from to_events(
            batch, _match_blocks(live, shared, coded, len(batch.events)), self._ids
        )

    def locate(self, query_id: str) -> Placement:
        self._position_of(query_id)
        return Placement("scan", "looked at for every event")

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


def _encode_column(batch: EventBatch, name: str, type_: Type) -> CodedColumn:
    return encode_column(batch.table.column(name), type_)


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
            null = np.full(self.rows, False) if column.valid is None else ~column.valid
            return ~null if atom.negated else null
        inside = (
            column.test_membership(atom.values) if isinstance(atom, Within) else _text(atom, column)
        )
        return inside if column.valid is None else inside & column.valid


def _text(atom: TextMatches, column: CodedColumn) -> Mask:
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
    if _same_codes(left, right):
        result: Mask = holds(left.codes, right.codes)
    else:
        zone = zone_of(left.type, right.type)
        result = np.fromiter(
            (
                a is not None and b is not None and holds(compare_values(a, b, zone), 0)
                for a, b in zip(left.values, right.values, strict=True)
            ),
            dtype=np.bool_,
            count=len(left.codes),
        )
    for column in (left, right):
        if column.valid is not None:
            result = result & column.valid
    return result


def _same_codes(left: CodedColumn, right: CodedColumn) -> bool:
    """Return whether the codes of both columns have one order."""
    if left.ranked is not None or right.ranked is not None:
        return False
    whole = isinstance(left.type, Integer) and isinstance(right.type, Integer)
    scaled = isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType)
    if scaled:
        assert isinstance(left.type, DecimalType)
        assert isinstance(right.type, DecimalType)
        return left.type.scale == right.type.scale
    return whole or type(left.type) is type(right.type)
