"""A small change of an event that flips a query's answer, searched for within a budget.

One attribute is tried before two, so a change of two attributes is minimal: neither of its halves
flips the answer by itself. The values tried are the nearest one in each region between the
constants of the query, the values next to those of a compared attribute, examples of its patterns,
and NULL; each change is verified by evaluating the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from headgate.predicate import (
    Atom,
    Column,
    Compare,
    Matches,
    Operator,
    Row,
    Within,
    collect_columns,
    columns_of,
    evaluate,
    iter_atoms,
)
from headgate.predicate.narrowing import list_pattern_examples, values_within_bound
from headgate.queries import Query, find_attribute
from headgate.schema import Attribute, Interval, Ordinal, String, Value
from headgate.schema.values import precedes

MAX_ATOM_EVALUATIONS = (
    500_000  # atoms that may be evaluated, so that a long query is tried less often
)
MIN_TRIES = 20
OPERATORS: tuple[Operator, ...] = ("<", "=", ">")


@dataclass(frozen=True, slots=True)
class Flip:
    """New values for at most two attributes, and whether the query matches with them."""

    changes: Mapping[str, tuple[Value | None, Value | None]]
    matches: bool

    def as_json(self) -> dict[str, Any]:
        changes = {key: {"from": old, "to": new} for key, (old, new) in self.changes.items()}
        return {"changes": changes, "matches": self.matches}


def find_flip(query: Query, row: Row) -> Flip | None:
    """Return a change of one attribute, or else of two, that flips the answer, if any."""
    return _FlipSearch(query, dict(row)).find()


class _Exhausted(Exception):
    """The search has reached its budget."""


class _FlipSearch:
    def __init__(self, query: Query, row: dict[str, Value | None]) -> None:
        self.query = query
        self.row = row
        self.columns = collect_columns(query.where)
        self.attributes = {c: find_attribute(query, c) for c in self.columns}
        self.matched = evaluate(query.where, row) is True
        # The atoms that read each column; `size` is how many atoms one evaluation costs.
        self.mentions: dict[Column, list[Atom]] = {column: [] for column in self.columns}
        size = 0
        for atom in iter_atoms(query.where):
            size += 1
            for column in columns_of(atom):
                self.mentions[column].append(atom)
        self.tries_left = max(MIN_TRIES, MAX_ATOM_EVALUATIONS // max(size, 1))

    def find(self) -> Flip | None:
        try:
            return self.find_single() or self.find_double()
        except _Exhausted:
            return None

    def find_single(self) -> Flip | None:
        """Return a change of one attribute, preferably not to NULL."""
        # The first change to NULL that flips, in case no other value does.
        to_null: dict[str, Value | None] = {}
        for column in self.columns:
            for value in self.list_candidates(column, self.row):
                if self.flips({column.key: value}):
                    if value is not None:
                        return self.make_flip({column.key: value})
                    to_null = to_null or {column.key: value}
        return self.make_flip(to_null) if to_null else None

    def find_double(self) -> Flip | None:
        """Return a change of two attributes; the second is chosen given the first."""
        # Candidates for the second depend on the first, to which it may be compared.
        for first, second in combinations(self.columns, 2):
            for one in self.list_candidates(first, self.row):
                for two in self.list_candidates(second, {**self.row, first.key: one}):
                    changes = {first.key: one, second.key: two}
                    if self.flips(changes):
                        return self.make_flip(changes)
        return None

    def flips(self, changes: dict[str, Value | None]) -> bool:
        self.tries_left -= 1
        if self.tries_left < 0:
            raise _Exhausted
        return (evaluate(self.query.where, {**self.row, **changes}) is True) != self.matched

    def make_flip(self, changes: dict[str, Value | None]) -> Flip:
        moved = {key: (self.row.get(key), value) for key, value in changes.items()}
        return Flip(moved, not self.matched)

    def list_candidates(self, column: Column, row: Row) -> list[Value | None]:
        """Return the values worth trying for a column, none twice, NULL last."""
        attribute = self.attributes[column]
        current = row.get(column.key)
        # A set of ordinals that keeps its order: the nearest candidates stay first.
        at = None if current is None else column.type.ordinal(current)
        ordinals = dict.fromkeys(
            ordinal
            for ordinal in self.list_ordinals(column, row, at)
            if ordinal in attribute.domain and ordinal != at
        )
        values: list[Value | None] = [column.type.value(ordinal) for ordinal in ordinals]
        return [*values, None] if attribute.nullable and current is not None else values

    def list_ordinals(self, column: Column, row: Row, at: Ordinal | None) -> Iterator[Ordinal]:
        cuts = self.list_cuts(column)
        yield from _find_nearest_by_region(cuts, self.attributes[column], at)
        for cut in cuts:  # at the ends of a region a compared attribute has most freedom
            yield cut
            if isinstance(cut, int):
                yield cut - 1
        for atom in self.mentions[column]:
            if isinstance(atom, Compare):
                yield from self.list_near_comparison(column, atom, row, at)
            elif isinstance(atom, Matches):
                yield from list_pattern_examples(atom)

    def list_cuts(self, column: Column) -> list[Any]:
        within = [atom for atom in self.mentions[column] if isinstance(atom, Within)]
        cuts = {cut for atom in within for cut in atom.values.cuts}
        return sorted(cuts | set(self.attributes[column].domain.cuts))

    def list_near_comparison(
        self, column: Column, atom: Compare, row: Row, at: Ordinal | None
    ) -> Iterator[Ordinal]:
        """Yield the nearest values below, at and above that of the other side of a comparison."""
        other = atom.right if atom.left == column else atom.left
        value = row.get(other.key)
        if value is None:
            return
        bound = other.type.ordinal(value)
        for op in OPERATORS:
            for interval in values_within_bound(column, op, bound, other).intervals:
                yield from _find_nearest(interval, self.attributes[column], at)


def _find_nearest_by_region(
    cuts: list[Any], attribute: Attribute, at: Ordinal | None
) -> list[Ordinal]:
    """Return the nearest value in each region between two cuts, the nearest first."""
    ends = [None, *cuts, None]
    regions = [Interval(low, high) for low, high in pairwise(ends)]
    nearest = [value for region in regions for value in _find_nearest(region, attribute, at)]
    return sorted(nearest, key=lambda value: _measure_distance(value, at))


def _measure_distance(value: Ordinal, at: Ordinal | None) -> int:
    """Return how far two ordinals are apart; texts are all equally far."""
    return abs(value - at) if isinstance(value, int) and isinstance(at, int) else 0


def _find_nearest(
    interval: Interval, attribute: Attribute, at: Ordinal | None
) -> Iterator[Ordinal]:
    """Yield the member of an interval that is nearest to a value, if one can be named."""
    low, high = interval.low, interval.high
    # The value itself, else the end of the interval that is nearer to it; `high` is exclusive, and
    # a text has no predecessor to name.
    if at is not None and at in interval:
        yield at
    elif low is not None and (at is None or precedes(at, low)):
        yield low
    elif high is not None and not isinstance(high, str):
        yield high - 1
    elif isinstance(attribute.type, String):
        yield low if isinstance(low, str) else ""
    elif low is None and high is None:
        yield 0
