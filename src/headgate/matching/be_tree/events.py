"""Read a batch of events into arrays: values, points, keys, and rows of the bitmap.

Predicates that are no sets of values of one attribute are evaluated here, for the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.kernels.match import EventArrays
from headgate.matching.be_tree.predicates import PredicatePool
from headgate.matching.be_tree.values import to_key, to_point
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.encoding.kernels import group_by_row
from headgate.matching.encoding.text_search import TextSearch
from headgate.matching.scan import compare_columns
from headgate.predicate import Atom, Column, Compare, IsNull, Matches, columns_of

Numbers = npt.NDArray[np.int64]
Pairs = tuple[Numbers, Numbers]  # rows, and the numbers of predicates that are TRUE there


class EventReader:
    """A reader of batches for one pool of predicates, as long as its `generation` stays."""

    def __init__(self, pool: PredicatePool) -> None:
        self._pool = pool
        self.generation = pool.generation
        self._nulls = pool.find_atoms(lambda atom: isinstance(atom, IsNull))
        self._compared = pool.find_atoms(lambda atom: isinstance(atom, Compare))
        self._patterns = _group_patterns(pool.find_atoms(lambda atom: isinstance(atom, Matches)))

    def read(self, columns: EventColumns) -> EventArrays:
        """Return the attributes of all events, event by event."""
        pool = self._pool
        rows, sizes = [np.empty(0, np.int64)], []
        read: tuple[Any, ...]
        ranked = False  # are there values that are not their own points and keys?
        # values, points, keys and codes, each a list of arrays, column by column
        fields: list[list[Numbers]] = [[np.empty(0, np.int64)] for _ in range(4)]
        for number, column in enumerate(pool.columns):
            present, coded = columns.present(column)
            rows.append(present)
            sizes.append(len(present))
            block = pool.blocks.get(number)
            code: Any = np.zeros(len(present), np.int64)
            if block is not None:
                code = block.regions.codes(coded)
            if coded.ranked is None:
                # a number that fits is its own value, point and key
                read = (coded.codes, coded.codes, coded.codes, code)
            else:
                ranked = True
                value = pool.label_ordinals(number, coded.ranked)
                point = np.array([to_point(ordinal) for ordinal in coded.ranked], np.int64)
                key = np.array([to_key(ordinal) for ordinal in coded.ranked], np.int64)
                read = (*(_look_up(known, coded.codes) for known in (value, point, key)), code)
            for field, values in zip(fields, read, strict=True):
                field.append(values)
        # From columns to events: `order` says where each item of an event stands in the columns.
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        start, column_of, order = group_by_row(
            len(columns), np.concatenate(rows), owners, np.arange(len(owners), dtype=np.int32)
        )
        value, code = (np.concatenate(field)[order] for field in (fields[0], fields[3]))
        point, key = value, value
        if ranked:
            point, key = (np.concatenate(field)[order] for field in fields[1:3])
        return EventArrays(start, column_of, value, point, key, code, *self._precompute(columns))

    @property
    def precomputes(self) -> bool:
        """Whether there are predicates that are evaluated for a whole batch."""
        return bool(self._nulls or self._compared or self._patterns)

    def _precompute(self, columns: EventColumns) -> Pairs:
        """Return where the precomputed predicates that are TRUE for each event begin, and which."""
        pairs = list(self._evaluate(columns))
        rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in pairs)])
        numbers = np.concatenate([np.empty(0, np.int64), *(numbers for _, numbers in pairs)])
        # from pairs in any order to those of one event after the other
        order = np.argsort(rows, kind="stable")
        start = np.zeros(len(columns) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(columns)), out=start[1:])
        return start, numbers[order]

    def _evaluate(self, columns: EventColumns) -> Iterator[Pairs]:
        """Yield the rows where predicates are TRUE: IS NULL, comparisons of columns, patterns."""
        for number, atom in self._nulls:
            present, _ = columns.present(columns_of(atom)[0])
            # IS NULL is TRUE where the column has no value
            absent = np.ones(len(columns), np.bool_)
            absent[present] = False
            yield _pair_with(np.flatnonzero(absent), number)
        for number, atom in self._compared:
            assert isinstance(atom, Compare)
            truth = compare_columns(atom, columns.whole(atom.left), columns.whole(atom.right))
            yield _pair_with(np.flatnonzero(truth), number)
        for column, numbers, refusing, search in self._patterns:
            present, coded = columns.present(column)
            starts, matched = search.match(coded.ranked or [])
            # Each distinct text is searched once; NOT LIKE is TRUE where its pattern is absent.
            for rank in range(len(starts) - 1):
                truth = refusing.copy()
                truth[matched[starts[rank] : starts[rank + 1]]] ^= True
                holds, rows = numbers[truth], present[coded.codes == rank]
                yield np.repeat(rows, len(holds)), np.tile(holds, len(rows))


def _pair_with(rows: Numbers, number: int) -> Pairs:
    return rows, np.full(len(rows), number, np.int64)


def _look_up(known: Numbers, places: Numbers) -> Numbers:
    return known[places] if len(known) else np.zeros(len(places), np.int64)


def _group_patterns(
    patterns: list[tuple[int, Atom]],
) -> list[tuple[Column, Numbers, npt.NDArray[np.bool_], TextSearch]]:
    """Return the patterns on each column: their numbers, which of them refuse, and a search."""
    groups: dict[Column, list[tuple[int, Matches]]] = {}
    for number, atom in patterns:
        assert isinstance(atom, Matches)
        groups.setdefault(atom.column, []).append((number, atom))
    return [
        (
            column,
            np.array([number for number, _ in numbered], np.int64),
            np.array([atom.negated for _, atom in numbered], np.bool_),
            TextSearch([atom.pattern for _, atom in numbered]),
        )
        for column, numbered in groups.items()
    ]
