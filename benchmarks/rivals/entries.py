"""Queries as conjunctions over codes: what every rival starts from.

A query with OR has an entry for each of its conjunctions, and any other has one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.kernels.entries import has_repeated_column
from headgate.matching.encoding.code_book import CodeBook, Codes, build_code_book
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.atoms import WITHIN
from headgate.snapshot.arrays.selection import expand_ranges
from headgate.snapshot.arrays.trees import AND

Numbers = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Entries(NamedTuple):
    """Entry e is the AND of the predicates `atom[start[e]:start[e + 1]]`, one for each attribute.

    Predicate a is TRUE where the code of `column[a]` is in `low[i]` … `high[i]`, for an i from
    `interval[a]` to `interval[a + 1]`. The codes of column c run from 1 to `greatest[c]`, with 0
    for NULL, and code x of it is number `base[c] + x` of all values.
    """

    start: Numbers
    atom: Codes
    column: Codes
    interval: Numbers
    low: Codes
    high: Codes
    greatest: Numbers
    base: Numbers

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def values(self) -> int:
        return int(self.base[-1])

    @property
    def hull(self) -> tuple[Codes, Codes]:
        """The least and the greatest code of each predicate (Table I, in codes)."""
        return self.low[self.interval[:-1]], self.high[self.interval[1:] - 1]

    @property
    def is_hull(self) -> Mask:
        """Does the predicate accept all codes from its least to its greatest?"""
        return np.asarray(np.diff(self.interval) == 1)

    def list_intervals(self, chosen: Mask) -> tuple[Numbers, Codes]:
        """Return the intervals of the predicates that are chosen, by entry and predicate.

        Entry e has those from `start[e]` to `start[e + 1]`: column, low and high.
        """
        atom = self.atom[chosen]
        counts = np.where(chosen, np.diff(self.interval)[self.atom], 0)
        start = np.concatenate(([0], np.cumsum(counts)))[self.start]
        places = expand_ranges(self.interval[atom], self.interval[atom + 1])
        column = np.repeat(self.column[atom], np.diff(self.interval)[atom])
        return start, np.stack([column, self.low[places], self.high[places]], axis=1)

    @property
    def narrow(self) -> Mask:
        """Which predicates of entries accept less than what lies between their ends?"""
        return ~self.is_hull[self.atom]

    @property
    def predicate_counts(self) -> Numbers:
        """How many predicates there are on each column."""
        return np.bincount(self.column[self.atom], minlength=len(self.greatest))

    @property
    def width(self) -> Numbers:
        """How many codes each predicate accepts."""
        sizes = np.concatenate(([0], np.cumsum(self.high - self.low + 1, dtype=np.int64)))
        return np.diff(sizes[self.interval])

    def present(self) -> Shares:
        """Return how often an event is taken to have each attribute: as often as queries use it."""
        return np.minimum(self.predicate_counts / max(1, len(self)), 1.0)

    def likelihood(self) -> Shares:
        """Return how often each predicate is taken to be TRUE: its values are taken to be even."""
        return self.present()[self.column] * self.width / self.greatest[self.column]


def are_conjunctions(encoded: EncodedQueries) -> bool:
    """Return whether each query is an AND of sets of values, of different columns."""
    atoms, trees = encoded.atoms, encoded.trees
    empty = (atoms.start == atoms.end) & (atoms.starts_inside == 0)
    if not (atoms.kind == WITHIN).all() or empty.any():
        return False
    start, atom = _predicates(encoded)
    sizes = np.diff(start)
    ends = trees.program[trees.offsets[1:] - 1]
    is_single = (np.diff(trees.offsets) == 1) & (sizes == 1)
    is_and = (np.diff(trees.offsets) == sizes + 1) & (ends == AND - 2 * sizes)
    return bool((is_single | is_and).all()) and not has_repeated_column(
        start, atom, np.array(atoms.column), int(atoms.column.max(initial=0)) + 1
    )


def make_entries(encoded: EncodedQueries, schema: Schema) -> tuple[CodeBook, Entries]:
    """Return an entry for each of the queries, which `are_conjunctions`."""
    book, intervals = build_code_book(encoded.atoms, schema)
    greatest = np.array([regions.greatest for regions in book.regions], np.int64)
    return book, Entries(
        *_predicates(encoded),
        np.array(encoded.atoms.column),
        intervals.start,
        intervals.low,
        intervals.high,
        greatest,
        np.concatenate(([0], np.cumsum(greatest + 1))),
    )


def _predicates(encoded: EncodedQueries) -> tuple[Numbers, Codes]:
    offsets, program = encoded.trees.offsets, encoded.trees.program
    predicates = program >= 0
    return np.concatenate(([0], np.cumsum(predicates)))[offsets], program[predicates]
