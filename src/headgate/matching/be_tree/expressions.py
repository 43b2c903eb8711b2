"""The expressions of a tree: the conjunctions of each query, numbered, with their predicates.

What comes and goes is kept in lists until the tree is brought up to date.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.matching.be_tree.kernels.leaves import copy_live_predicates, sort_predicates
from headgate.matching.be_tree.kernels.pools import (
    NONE,
    PREDICATES_PER_STEP,
    TRUE_PREDICATE,
    ExpressionArrays,
    pad_count,
)
from headgate.matching.be_tree.predicates import PredicatePool, grow_array
from headgate.predicate.normal_form import Conjunction
from headgate.snapshot.arrays.selection import expand_ranges

MIN_GARBAGE = 1024  # predicates of expressions that are gone, before the others move together

Numbers = npt.NDArray[np.int64]


class ExpressionPool:
    """The expressions of queries, by number; the numbers of those that are gone are reused."""

    def __init__(self, predicates: PredicatePool) -> None:
        self._predicates = predicates
        self.arrays = ExpressionArrays(
            start=np.zeros(0, np.int64),
            count=np.zeros(0, np.int32),
            position=np.zeros(0, np.int32),
            is_alternative=np.zeros(0, np.uint8),
            leaf=np.zeros(0, np.int32),
            predicate=np.zeros(0, np.int32),
        )
        self.used = 0  # numbers given out, to live expressions or not
        self.positions = 0  # one more than the greatest position of a query
        self._by_position: dict[int, list[int]] = {}
        self._free: list[int] = []
        self._stored = 0  # entries of `arrays.predicate` in use
        self._garbage = 0  # of these, entries of expressions that are gone
        self._new_rows: list[tuple[int, int, int, bool]] = []  # number, size, position, alternative
        self._new_predicates: list[int] = []
        self._dropped: list[int] = []

    def add(self, position: int, parts: tuple[Conjunction, ...]) -> None:
        """Give numbers to the expressions of a query; `write_new` writes them into the arrays."""
        self.positions = position + 1
        numbers = []
        for part in parts:
            number = self._free.pop() if self._free else self.used
            self.used = max(self.used, number + 1)
            numbers.append(number)
            # filled up to whole steps, as the kernels read them
            listed = [self._predicates.number(atom) for atom in part]
            self._new_rows.append((number, len(listed), position, len(parts) > 1))
            self._new_predicates += listed
            self._new_predicates += [TRUE_PREDICATE] * (-len(listed) % PREDICATES_PER_STEP)
        self._by_position[position] = numbers

    def drop(self, position: int) -> None:
        """Note that the expressions of a query must leave the tree."""
        self._dropped += self._by_position.pop(position)

    def write_new(self) -> Numbers:
        """Write what was added into the arrays, and return the numbers of the new expressions."""
        rows = np.array(self._new_rows, np.int64).reshape(-1, 4)
        listed = np.array(self._new_predicates, np.int32)
        self._new_rows, self._new_predicates = [], []
        numbers, sizes = rows[:, 0], rows[:, 1]
        start, count, position, is_alternative, leaf = (
            grow_array(array, self.used) for array in self.arrays[:5]
        )
        predicate = grow_array(self.arrays.predicate, self._stored + len(listed))
        self.arrays = ExpressionArrays(start, count, position, is_alternative, leaf, predicate)
        predicate[self._stored : self._stored + len(listed)] = listed
        # where each row begins, behind those of all expressions before it
        padded = -(-sizes // PREDICATES_PER_STEP) * PREDICATES_PER_STEP
        start[numbers] = self._stored + np.cumsum(padded) - padded
        count[numbers], position[numbers] = sizes, rows[:, 2]
        is_alternative[numbers], leaf[numbers] = rows[:, 3], NONE
        self._stored += len(listed)
        self._count_uses(numbers, 1)
        sort_predicates(self.arrays, self._predicates.arrays, numbers)
        return numbers

    @property
    def has_new(self) -> bool:
        """Whether something was added since `write_new`."""
        return bool(self._new_rows)

    @property
    def dropped(self) -> Numbers:
        """The expressions that must leave the tree."""
        return np.array(self._dropped, np.int64)

    def free_dropped(self) -> None:
        """Give the numbers of dropped expressions back, once these have left the tree."""
        dropped = self.dropped
        self._count_uses(dropped, -1)
        self._garbage += int(pad_count(self.arrays.count[dropped]).sum())
        self._free += self._dropped
        self._dropped = []
        # most of what is stored belongs to no expression
        if self._garbage > self._stored // 2 + MIN_GARBAGE:
            predicate = np.zeros(len(self.arrays.predicate), np.int32)
            self._stored = copy_live_predicates(self.arrays, self.used, predicate)
            self.arrays = self.arrays._replace(predicate=predicate)
            self._garbage = 0

    def _count_uses(self, numbers: Numbers, change: int) -> None:
        """Add `change` to the uses of each predicate of some expressions."""
        starts = self.arrays.start[numbers]
        places = expand_ranges(starts, starts + self.arrays.count[numbers])
        np.add.at(self._predicates.uses, self.arrays.predicate[places], change)
        self._predicates.released += len(places) if change < 0 else 0

    def numbers_of(self, position: int) -> list[int]:
        """Return the numbers of a query's expressions."""
        return self._by_position[position]

    def has_alternatives(self, position: int) -> bool:
        """Return whether a query is an OR of more than one expression."""
        return len(self._by_position.get(position, ())) > 1

    def count_by_query(self, positions: Numbers) -> Numbers:
        """Return the number of expressions of each query."""
        return np.array([len(self._by_position[p]) for p in positions.tolist()], np.int64)
