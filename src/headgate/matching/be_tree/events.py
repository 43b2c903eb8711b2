"""A batch of events as the tree reads it: values, points, keys, rows of the bitmap, and what is
given: the predicates that are no sets of values of one attribute, evaluated for the whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.domain import key_of, point_of
from headgate.matching.be_tree.kernels.match import Events
from headgate.matching.be_tree.predicates import PredicatePool
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.encoding.kernels import group_by_row
from headgate.matching.encoding.text_search import TextSearch
from headgate.matching.scan import compared
from headgate.predicate import Atom, Column, Compare, IsNull, Matches

Numbers = npt.NDArray[np.int64]
Pairs = tuple[Numbers, Numbers]  # rows, and the numbers of predicates that are TRUE there


class EventReader:
    """Reads batches for one pool of predicates, as long as its `generation` stays."""

    def __init__(self, pool: PredicatePool) -> None:
        self._pool = pool
        self.generation = pool.generation
        self._nulls = pool.numbered(lambda atom: isinstance(atom, IsNull))
        self._compared = pool.numbered(lambda atom: isinstance(atom, Compare))
        self._patterns = _by_column(pool.numbered(lambda atom: isinstance(atom, Matches)))

    def read(self, columns: EventColumns) -> Events:
        pool = self._pool
        rows, sizes = [np.empty(0, np.int64)], []
        read: tuple[Any, ...]
        ranked = False  # are there values that are not their own points and keys?
        fields: list[list[Numbers]] = [[np.empty(0, np.int64)] for _ in range(4)]
        for number, column in enumerate(pool.columns):
            here, coded = columns.present(column)
            rows.append(here)
            sizes.append(len(here))
            block = pool.blocks.get(number)
            code: Any = np.zeros(len(here), np.int64)
            if block is not None:
                code = block.regions.codes(coded)
            if coded.ranked is None:
                read = (coded.codes, coded.codes, coded.codes, code)
            else:
                ranked = True
                value = pool.labelled(number, coded.ranked)
                point = np.array([point_of(one) for one in coded.ranked], np.int64)
                key = np.array([key_of(one) for one in coded.ranked], np.int64)
                read = (*(_taken(one, coded.codes) for one in (value, point, key)), code)
            for field, values in zip(fields, read, strict=True):
                field.append(values)
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        start, column_of, order = group_by_row(
            len(columns), np.concatenate(rows), owners, np.arange(len(owners), dtype=np.int32)
        )
        value, code = (np.concatenate(field)[order] for field in (fields[0], fields[3]))
        point, key = value, value
        if ranked:
            point, key = (np.concatenate(field)[order] for field in fields[1:3])
        return Events(start, column_of, value, point, key, code, *self._given(columns))

    @property
    def gives(self) -> bool:
        """Are there predicates that are evaluated for a whole batch?"""
        return bool(self._nulls or self._compared or self._patterns)

    def _given(self, columns: EventColumns) -> Pairs:
        """Where each event's given predicates begin, and which they are."""
        pairs = list(self._true_ones(columns))
        rows = np.concatenate([np.empty(0, np.int64), *(one for one, _ in pairs)])
        numbers = np.concatenate([np.empty(0, np.int64), *(one for _, one in pairs)])
        order = np.argsort(rows, kind="stable")
        start = np.zeros(len(columns) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(columns)), out=start[1:])
        return start, numbers[order]

    def _true_ones(self, columns: EventColumns) -> Iterator[Pairs]:
        for number, atom in self._nulls:
            here, _ = columns.present(_column(atom))
            absent = np.ones(len(columns), np.bool_)
            absent[here] = False
            yield _all(np.flatnonzero(absent), number)
        for number, atom in self._compared:
            assert isinstance(atom, Compare)
            truth = compared(atom, columns.whole(atom.left), columns.whole(atom.right))
            yield _all(np.flatnonzero(truth), number)
        for column, numbers, refusing, search in self._patterns:
            here, coded = columns.present(column)
            starts, matched = search.matched(coded.ranked or [])
            for rank in range(len(starts) - 1):
                truth = refusing.copy()
                truth[matched[starts[rank] : starts[rank + 1]]] ^= True
                holds, rows = numbers[truth], here[coded.codes == rank]
                yield np.repeat(rows, len(holds)), np.tile(holds, len(rows))


def _all(rows: Numbers, number: int) -> Pairs:
    return rows, np.full(len(rows), number, np.int64)


def _taken(known: Numbers, places: Numbers) -> Numbers:
    return known[places] if len(known) else np.zeros(len(places), np.int64)


def _column(atom: Any) -> Column:
    column: Column = atom.column
    return column


def _by_column(
    patterns: list[tuple[int, Atom]],
) -> list[tuple[Column, Numbers, npt.NDArray[np.bool_], TextSearch]]:
    """The patterns on each column: their numbers, which of them refuse, and a search for all."""
    groups: dict[Column, list[tuple[int, Matches]]] = {}
    for number, atom in patterns:
        assert isinstance(atom, Matches)
        groups.setdefault(atom.column, []).append((number, atom))
    return [
        (
            column,
            np.array([number for number, _ in mine], np.int64),
            np.array([atom.negated for _, atom in mine], np.bool_),
            TextSearch([atom.pattern for _, atom in mine]),
        )
        for column, mine in groups.items()
    ]
