"""A row for a conjunction: guessed from what its columns may still be, and verified."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from headgate.predicate.atoms import MIRROR, Column, Compare, Matches
from headgate.predicate.candidates import list_pattern_examples, values_within_bound
from headgate.predicate.evaluate import evaluate, evaluate_atom
from headgate.predicate.narrowing import Narrowing
from headgate.predicate.tree import Predicate, collect_columns, columns_of
from headgate.schema import (
    EVERYTHING,
    Double,
    Interval,
    Ordinal,
    String,
    Type,
    Value,
    ValueSet,
    successor,
)

MAX_TRIES = 2_000
MAX_CANDIDATES = 12
MAX_TIED_COLUMNS = 100
MAX_DIGITS = 16

_Row = dict[str, Value | None]


def find_row(predicate: Predicate, narrowing: Narrowing) -> _Row | None:
    """A row for which the predicate is TRUE; None when none was found, which proves nothing."""
    row: _Row = {column.key: None for column in collect_columns(predicate)}
    for column in narrowing.required:
        narrowing.sets.setdefault(column, narrowing.domains.get(column, EVERYTHING))
    tied = {column for other in narrowing.conditions for column in columns_of(other)}
    for column, values in narrowing.sets.items():
        if column not in tied:
            row[column.key] = column.type.value(pick_example(values, column.type))
    if len(tied) > MAX_TIED_COLUMNS:
        return None
    order = sorted(tied, key=lambda column: column.key)
    guess = _Guess(narrowing, row)
    return row if guess.assign(order) and evaluate(predicate, row) is True else None


class _Guess:
    """Backtracking over a few candidates for each column that a pattern or comparison ties."""

    def __init__(self, narrowing: Narrowing, row: _Row) -> None:
        self.narrowing = narrowing
        self.row = row
        self.tries = 0

    def assign(self, order: list[Column]) -> bool:
        if not order:
            return True
        column, *rest = order
        for ordinal in self.candidates(column):
            self.tries += 1
            if self.tries > MAX_TRIES:
                return False
            self.row[column.key] = column.type.value(ordinal)
            if self.is_consistent(column) and self.assign(rest):
                return True
            self.row[column.key] = None
        return False

    def is_consistent(self, column: Column) -> bool:
        """No condition on this column is FALSE; what still lacks a value is NULL."""
        return all(
            evaluate_atom(other, self.row) is not False
            for other in self.narrowing.conditions
            if column in columns_of(other)
        )

    def candidates(self, column: Column) -> Iterator[Ordinal]:
        """Examples of patterns, and the ends of what the neighbours that have a value leave."""
        allowed = self.narrowing.sets[column]
        examples: list[str] = []
        for other in self.narrowing.conditions:
            if isinstance(other, Matches) and other.column == column:
                examples.extend(list_pattern_examples(other))
            elif isinstance(other, Compare) and column in columns_of(other):
                allowed = allowed.intersection(self.beside(column, other))
        yield from (example for example in examples if example in allowed)
        yield from islice(_ends(allowed, column.type), MAX_CANDIDATES)

    def beside(self, column: Column, comparison: Compare) -> ValueSet:
        """The values that agree with the other side of a comparison, once that has its value."""
        mine = comparison.left == column
        other = comparison.right if mine else comparison.left
        op = comparison.operator if mine else MIRROR[comparison.operator]
        value = self.row.get(other.key)
        if value is None:
            return EVERYTHING
        return values_within_bound(column, op, other.type.ordinal(value), other)


def pick_example(values: ValueSet, type_: Type) -> Ordinal:
    """A member of a set that is not empty, one that reads well where there is a choice."""
    return next(_ends(values, type_))


def _ends(values: ValueSet, type_: Type) -> Iterator[Ordinal]:
    """The ends of each interval, nearest to zero first where an end is infinite."""
    for interval in values.intervals:
        low, high = interval.low, interval.high
        if low is None and high is None:
            yield from (type_.ordinal("a"), "") if isinstance(type_, String) else (0, 1)
            continue
        if isinstance(type_, Double):
            yield from _round_number(interval, type_)
        if low is not None:
            yield low
            if successor(low) in values:
                yield successor(low)
        if high is not None and not isinstance(high, str):
            yield high - 1
        elif low is None and isinstance(high, str):
            yield ""


def _round_number(interval: Interval, type_: Double) -> Iterator[Ordinal]:
    """A number of few digits in the middle of an interval, or beyond its only end."""
    ends = [float(type_.value(o)) for o in (interval.low, interval.high) if isinstance(o, int)]
    if not all(map(math.isfinite, ends)):
        return
    middle = sum(ends) / 2 if len(ends) == 2 else ends[0] + (1 if interval.high is None else -1)
    rounded = (type_.ordinal(round(middle, digits)) for digits in range(MAX_DIGITS))
    yield from islice((ordinal for ordinal in rounded if ordinal in interval), 1)
