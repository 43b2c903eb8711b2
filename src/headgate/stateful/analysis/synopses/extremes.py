"""Which rows of a bucket stand for all of them where duplicates do not count.

"Characterizing Memory Requirements …", section 7.2: of the attributes that must lie above others
(MaxRef of a bucket, Definition 7.3) the row in which the least of them is greatest, and of those
that must lie below others (MinRef) the row in which the greatest is least. Deviation: with `<` and
`<=` side by side, rows with the same extremum can differ in what they join with, so of these one is
kept for each way in which no other is better. And where a column must differ from others (`<>`),
a row may be refused for its value: then the best of those with other values stands in.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from math import comb
from typing import Any

import numpy as np

from headgate.predicate import Column, Within
from headgate.schema import Timestamp
from headgate.stateful.analysis.case import build_case
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.cells import NULL_CELL, Cell
from headgate.stateful.analysis.synopses.plan import Store, find_extremum_argument
from headgate.stateful.analysis.theory.checker import find_live_joins
from headgate.stateful.analysis.theory.closure import Booleans, compute_closure

Strictness = tuple[bool, ...]


def count_stand_ins(rows: int, unequal: int) -> int:
    """Return how many rows are kept where so many are best, and may be refused for their values.

    Of each best row, for each column that must differ, the best with another value; and so on.

    >>> count_stand_ins(1, 0), count_stand_ins(1, 1), count_stand_ins(1, 2)
    (1, 2, 5)
    """
    return rows if not unequal else rows * (1 + unequal * count_stand_ins(rows, unequal - 1))


@dataclass(frozen=True, slots=True)
class References:
    """Attributes at one end of live joins; of each, with which partners the join is strict."""

    strict: Mapping[Column, Strictness]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self.strict)

    @property
    def max_rows(self) -> int:
        """How many rows with the same extremum may be needed: none is better than another."""
        by_partner = zip(*self.strict.values(), strict=True)
        mixed = sum(len(set(strictness)) > 1 for strictness in by_partner)
        return comb(mixed, mixed // 2) if self.strict else 0


@dataclass(frozen=True, slots=True)
class Ends:
    """MaxRef and MinRef of a bucket, or of all buckets together."""

    highs: References
    lows: References

    @property
    def key(self) -> Hashable:
        """Equal for equal ends."""
        return tuple(self.highs.strict.items()), tuple(self.lows.strict.items())

    @property
    def max_rows(self) -> int:
        """How many rows of a bucket are kept."""
        return max(self.highs.max_rows + self.lows.max_rows, 1)


def find_extreme_columns(store: Store, cells: Mapping[Column, Cell] | None = None) -> Ends | None:
    """Return MaxRef and MinRef of a bucket; None where no row of it can take part.

    Without cells, they hold all that is in those of any bucket.
    """
    (branch,) = store.branches
    bucket = _restrict_branch(branch, cells or {})
    if bucket is None:
        return None
    highs = _find_references(bucket, store, highs=True)
    lows = _find_references(bucket, store, highs=False)
    # MIN or MAX adds its own argument to MinRef or MaxRef (Theorem 8.6, C3).
    extremum, argument = store.part.extremum, find_extremum_argument(store.part, branch)
    if extremum is not None and argument is not None and _is_open(store, argument, cells or {}):
        if extremum.function == "MAX":
            highs = _add_column(highs, argument)
        else:
            lows = _add_column(lows, argument)
    return Ends(highs, lows)


def _is_open(store: Store, argument: Column, cells: Mapping[Column, Cell]) -> bool:
    """Return whether a bucket does not know the value that MIN or MAX is taken of."""
    if argument not in store.kept:
        return False
    if argument in cells:
        return cells[argument][0] == "gap"
    return argument == store.extremum_column or store.cells(argument).gaps > 0


def _add_column(references: References, column: Column) -> References:
    """Add a column that must be greatest, or least, for its own sake."""
    partners = len(next(iter(references.strict.values()), ()))
    return References({column: (False,) * partners, **references.strict})


def _restrict_branch(branch: Branch, cells: Mapping[Column, Cell]) -> Branch | None:
    """Return the branch, restricted to a bucket: P and P_b."""
    inside = tuple(
        Within(column, branch.cells(column).span(cell))
        for column, cell in cells.items()
        if cell != NULL_CELL and column in branch.case.columns
    )
    atoms = (*branch.atoms, *inside)
    case = build_case(branch.query, atoms)
    known = None if case is None else compute_closure(case.query)
    if case is None or known is None or not known.satisfiable:
        return None
    return replace(branch, case=case, known=known)


def _find_references(branch: Branch, store: Store, *, highs: bool) -> References:
    """Return the kept attributes of the stream at one end of live joins."""
    # live[x, y]: x <= y is nonredundant in some gap. Transposed, rows are the greater sides.
    live: Booleans = np.any(find_live_joins(branch.case.query, branch.known), axis=2)
    below = branch.known.below
    joined, strict = (live.T, below.T) if highs else (live, below)
    numbers = {c: branch.case.columns.index(c) for c in store.columns if c in branch.case.columns}
    # Variables of other streams that a kept column joins with; strictness is in their order.
    partners = np.flatnonzero(np.any(joined[list(numbers.values())], axis=0)).tolist()
    return References(
        {
            column: tuple(bool(strict[number, partner]) for partner in partners)
            for column, number in numbers.items()
            if joined[number].any()
        }
    )


NULL = -1


def position(value: Any, zone: Timestamp) -> tuple[int, Any]:
    """Return a key under which the values of one line are ordered, whatever their types."""
    if value is None:
        return NULL, 0
    if isinstance(value, datetime):
        return 0, zone.ordinal(value)
    if isinstance(value, date):
        return 0, zone.midnight(value)
    if isinstance(value, float) and math.isnan(value):
        return 1, 0
    return 0, value
