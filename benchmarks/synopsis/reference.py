"""A bounded query, run from its synopses alone: the obvious version, and the oracle of all others.

"Characterizing Memory Requirements …", sections 7 and 8.2. Rows go into buckets as they arrive, and
the answer at any moment is the join of what the buckets keep. It is worked out anew whenever it is
asked for. Sums are exact, whatever the bytes of the bound say.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from headgate.predicate import Column, Row, evaluate
from headgate.predicate.evaluation import evaluate_atom
from headgate.queries import Aggregate, Query
from headgate.schema import Timestamp
from headgate.stateful.analysis.case import find_source, list_filters, list_output_columns
from headgate.stateful.analysis.relational_answer import AnswerRows, NotComputable
from headgate.stateful.analysis.synopses.answer_parts import list_answer_parts
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.cells import NULL_CELL, Cell
from headgate.stateful.analysis.synopses.extremes import (
    NULL,
    Ends,
    References,
    Strictness,
    find_extreme_columns,
    position,
)
from headgate.stateful.analysis.synopses.plan import (
    QueryPart,
    Store,
    build_runnable_plan,
    needs_values,
)
from headgate.stateful.runtime.output_rows import Total, aggregate_total, aggregate_values


@dataclass(slots=True)
class Frontier:
    """The rows of a bucket that have the extremum, one for each way in which none is better."""

    references: References
    highs: bool
    zone: Timestamp
    extremum: Any = None
    rows: list[tuple[Strictness, Row]] = field(default_factory=list)

    def offer(self, row: Row) -> None:
        if not self.references.columns:
            self.rows = self.rows or [((), row)]
            return
        # Section 7.2: MaxRef keeps the row whose least value is greatest, MinRef the mirror image.
        places = {c: position(row.get(c.key), self.zone) for c in self.references.columns}
        least = min(places.values()) if self.highs else max(places.values())
        if self.rows and least != self.extremum:
            better = least > self.extremum if self.highs else least < self.extremum
            # A NULL is no extremum: any value replaces it, and it replaces none.
            if self.extremum[0] != NULL and (least[0] == NULL or not better):
                return
            self.rows.clear()
        self.extremum = least
        # Only columns at the extremum decide; a join is strict if it is for one of them.
        attaining = [self.references.strict[c] for c, place in places.items() if place == least]
        strict = tuple(any(ways) for ways in zip(*attaining, strict=True))
        if any(_is_within(known, strict) for known, _ in self.rows):
            return
        # A row that is strict with fewer partners joins with more: drop those that it makes
        # superfluous.
        self.rows = [(k, r) for k, r in self.rows if not _is_within(strict, k)]
        self.rows.append((strict, row))


def _is_within(one: Strictness, other: Strictness) -> bool:
    return all(not a or b for a, b in zip(one, other, strict=True))


@dataclass(slots=True)
class RepresentativeRow:
    """A row that stands for `count` rows: what is kept of it, and the branches it can be in."""

    row: Row
    mask: int
    count: int = 1
    totals: dict[Column, Total] = field(default_factory=dict)


class CountedRows:
    """Duplicates count: of each bucket the first row, how many there are, and sums."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cells = {column: store.cells(column) for column in store.columns}
        self.buckets: dict[Hashable, RepresentativeRow] = {}

    def add(self, row: Row) -> None:
        # Bit n: the row can take part in branch n. Rows with different masks do not share a
        # bucket.
        mask = sum(
            1 << at
            for at, branch in enumerate(self.store.branches)
            if all(
                evaluate_atom(atom, row) is True
                for atom in branch.list_own_atoms(self.store.source)
            )
            and all(branch.cell(column, row) is not None for column in self.store.columns)
        )
        if not mask:
            return
        key = mask, tuple(self._cell(column, row) for column in self.store.columns)
        bucket = self.buckets.get(key)
        if bucket is None:
            kept = {column.key: row.get(column.key) for column in self.store.columns}
            bucket = self.buckets[key] = RepresentativeRow(kept, mask, 0)
            bucket.totals = {column: Total() for column in self.store.aggregated}
        bucket.count += 1
        for column, total in bucket.totals.items():
            total.add(row.get(column.key))

    def _cell(self, column: Column, row: Row) -> Cell:
        value = row.get(column.key)
        if value is None:
            return NULL_CELL
        cell = self.cells[column].cell(column.type.ordinal(value))
        assert cell is not None
        return cell

    def kept(self) -> Iterable[RepresentativeRow]:
        return self.buckets.values()

    def count_stored(self) -> int:
        store = self.store
        totals = len(store.summed) + len(store.counted)
        return len(self.buckets) * (len(store.columns) + 1 + (store.masks > 1) + totals)


class ExtremeRows:
    """Duplicates do not count: of each bucket the rows at its ends, or the first one."""

    def __init__(self, store: Store, zone: Timestamp) -> None:
        self.store = store
        self.zone = zone
        self.buckets: dict[Hashable, tuple[Ends | None, list[Row]]] = {}

    def add(self, row: Row) -> None:
        (branch,) = self.store.branches
        if not all(
            evaluate_atom(atom, row) is True for atom in branch.list_own_atoms(self.store.source)
        ):
            return
        cells = {column: branch.cell(column, row) for column in self.store.columns}
        known = {column: cell for column, cell in cells.items() if cell is not None}
        if len(known) < len(cells):
            return
        key = tuple(known.values())
        if key not in self.buckets:
            self.buckets[key] = find_extreme_columns(self.store, known), []
        kept = {column.key: row.get(column.key) for column in self.store.kept}
        ends, rows = self.buckets[key]
        if ends is not None:
            chosen = self._choose([*rows, kept], ends, self.store.unequal_columns)
            self.buckets[key] = ends, [row for n, row in enumerate([*rows, kept]) if n in chosen]

    def _choose(
        self, rows: Sequence[Row | None], ends: Ends, unequal: Sequence[Column]
    ) -> set[int]:
        """Return the numbers of the best rows, and of those that stand in for refused ones."""
        sides = [(ends.highs, True), (ends.lows, False)]
        used = [Frontier(side, highs, self.zone) for side, highs in sides if side.columns]
        used = used or [Frontier(ends.highs, True, self.zone)]
        for frontier in used:
            for row in rows:
                if row is not None:
                    frontier.offer(row)
        # Rows are told apart by identity: equal ones may be in it twice.
        winners = {id(row) for frontier in used for _, row in frontier.rows}
        best = [number for number, row in enumerate(rows) if id(row) in winners]
        chosen = set(best)
        for at, column in enumerate(unequal):
            others = [*unequal[:at], *unequal[at + 1 :]]
            for number in best:
                refused = (rows[number] or {})[column.key]
                left = [r if r and r[column.key] != refused else None for r in rows]
                if any(left):
                    chosen |= self._choose(left, ends, others)
        return chosen

    def kept(self) -> Iterable[RepresentativeRow]:
        for _, rows in self.buckets.values():
            for row in rows:
                yield RepresentativeRow(row, 1)

    def count_stored(self) -> int:
        return sum(1 for _ in self.kept()) * max(len(self.store.kept), 1)


class ReferenceQuery:
    """A query that the analysis finds bounded, run on rows that are pushed one by one."""

    def __init__(self, query: Query) -> None:
        self.plan = build_runnable_plan(query)
        self.query = query = self.plan.query
        self._zone = self.plan.zone
        self._windows = {
            number: deque[RepresentativeRow | None](maxlen=source.rows)
            for number, source in enumerate(query.sources)
            if source.rows is not None
        }
        self._filters = [list_filters(query, number) for number in range(len(query.sources))]
        self._stored = [
            [
                CountedRows(store) if not part.distinct else ExtremeRows(store, self._zone)
                for store in of
            ]
            for part, of in self.plan.stores
        ]

    def push(self, stream: str, row: Row) -> None:
        """Add a row to a stream."""
        for number, source in enumerate(self.query.sources):
            if source.stream.name.lower() != stream.lower():
                continue
            prefix = f"{source.alias}." if len(self.query.sources) > 1 else ""
            named = {prefix + name: value for name, value in row.items()}
            taken = all(evaluate(part, named) is True for part in self._filters[number])
            if number in self._windows:
                self._windows[number].append(self._last(number, named) if taken else None)
            elif taken:
                for stored in self._stored:
                    for each in stored:
                        if each.store.source == number:
                            each.add(named)

    def answer(self) -> AnswerRows:
        """Return the relational answer over all rows so far, as `compute_answer` does."""
        if self.query.kind != "aggregate":
            rows: Counter[Hashable] = Counter()
            outputs = list_output_columns(self.query)
            for row, times in self._iter_joined(0):
                rows[_ordinals(outputs, _row(row))] += times
            return dict.fromkeys(rows, 1) if self.query.distinct else rows
        return self._groups()

    def count_stored(self) -> int:
        """Return how many values are stored now, those of the answer included."""
        windows = 0
        for number, rows in self._windows.items() if self.plan.branches else ():
            each = len(self.plan.list_window_columns(number)) + self._is_masked
            passed = sum(kept is not None for kept in rows)
            windows += passed * each + len(rows) * self.plan.is_flagged(number)
        return (
            windows
            + sum(
                each.count_stored()
                for stored in self._stored
                for each in stored
                if each.store.is_kept or len(self.query.sources) == 1
            )
            + self._count_answer()
        )

    @property
    def _is_masked(self) -> bool:
        return len(self.plan.branches) > 1

    def _count_answer(self) -> int:
        is_streamed = self.query.kind != "aggregate" and not self.query.distinct
        if is_streamed or (len(self.query.sources) == 1 and not self._windows):
            return 0
        return sum(
            part.values
            * len({_ordinals(part.columns, _row(row)) for row, _ in self._iter_joined(at)})
            for at, part in enumerate(list_answer_parts(self.plan))
        )

    def _last(self, number: int, named: Row) -> RepresentativeRow | None:
        mask = sum(
            1 << at
            for at, branch in enumerate(self.plan.branches)
            if all(evaluate_atom(atom, named) is True for atom in branch.list_own_atoms(number))
        )
        if not mask:
            return None
        return RepresentativeRow(
            {c.key: named.get(c.key) for c in self.plan.list_window_columns(number)}, mask
        )

    def _iter_joined(self, part: int) -> Iterator[tuple[tuple[RepresentativeRow, ...], int]]:
        """Yield all combinations of kept rows that join, and how many rows each stands for."""
        stored = self._stored[part] if self._stored else []
        masks = range(len(self.plan.branches))
        is_distinct = bool(self._stored) and self.plan.stores[part][0].distinct
        # Stores of a distinct part belong to one branch, so branches are joined one at a time;
        # where duplicates count, a combination is tried against all of them, and counted once.
        for only in [(n,) for n in masks] if is_distinct else [tuple(masks)]:
            choices = []
            for number in range(len(self.query.sources)):
                if number in self._windows:
                    choices.append([kept for kept in self._windows[number] if kept is not None])
                else:
                    mine = [s for s in stored if s.store.source == number]
                    if is_distinct:
                        branch = self.plan.branches[only[0]]
                        mine = [s for s in mine if s.store.branches == (branch,)]
                    choices.append([kept for s in mine for kept in s.kept()])
                    if is_distinct and not branch.uses(number):
                        choices[-1] = [RepresentativeRow({}, 1)]
            for choice in product(*choices):
                if any(self._is_joined(choice, n, is_distinct=is_distinct) for n in only):
                    filled = self._fill_in(choice, self.plan.branches[only[0]])
                    yield filled, prod(kept.count for kept in choice)

    def _fill_in(
        self, choice: tuple[RepresentativeRow, ...], branch: Branch
    ) -> tuple[RepresentativeRow, ...]:
        """Give occurrences that a branch leaves out the rows that stand for them."""
        aliases = [source.alias for source in self.query.sources]
        filled = list(choice)
        for alias, other in branch.stand_ins.items():
            row = choice[aliases.index(other)].row
            renamed = {f"{alias}.{key.partition('.')[2]}": value for key, value in row.items()}
            filled[aliases.index(alias)] = RepresentativeRow(renamed, 1)
        return tuple(filled)

    def _is_joined(
        self, choice: tuple[RepresentativeRow, ...], number: int, *, is_distinct: bool
    ) -> bool:
        for at, kept in enumerate(choice):
            # Rows of a store for one branch have a mask of one bit; those of a window have one for
            # each.
            bit = 0 if is_distinct and at not in self._windows else number
            if not kept.mask >> bit & 1:
                return False
        row = _row(choice)
        return all(evaluate_atom(tie, row) is True for tie in self.plan.branches[number].ties)

    def _groups(self) -> AnswerRows:
        # Group -> aggregate -> result; the parts of a query fill in their aggregates one after
        # another.
        groups: dict[Hashable, dict[Aggregate, Hashable]] = {}
        by = list_output_columns(self.query)
        if not by:
            groups[()] = {}
        for number, (part, _) in enumerate(self.plan.stores):
            members: dict[Hashable, list[tuple[tuple[RepresentativeRow, ...], int]]] = (
                {} if by else {(): []}
            )
            for choice, times in self._iter_joined(number):
                members.setdefault(_ordinals(by, _row(choice)), []).append((choice, times))
            for group, joined in members.items():
                results = groups.setdefault(group, {})
                for aggregate in part.aggregates:
                    results[aggregate] = self._aggregate(part, aggregate, joined)
        listed = [o.expression for o in self.query.outputs if isinstance(o.expression, Aggregate)]
        return {group: tuple(results[a] for a in listed) for group, results in groups.items()}

    def _aggregate(
        self,
        part: QueryPart,
        aggregate: Aggregate,
        joined: list[tuple[tuple[RepresentativeRow, ...], int]],
    ) -> Hashable:
        """Return an aggregate over joined rows: by a total where it has one, else by its values."""
        column = aggregate.argument
        if aggregate.declared is not None:
            raise NotComputable(f"{aggregate.function} is declared, not defined")
        if column is None:
            return sum(times for _, times in joined)
        if part.distinct or needs_values(self.query, aggregate):
            values: Counter[Any] = Counter()
            for choice, times in joined:
                value = _row(choice).get(column.key)
                if value is not None:
                    values[column.type.ordinal(value)] += times
            return aggregate_values(aggregate, column, values)
        source = find_source(self.query, column)
        total = Total()
        for choice, times in joined:
            mine = choice[source]
            if column in mine.totals:
                # `times` counts this row's duplicates as well, but its total has summed them
                # already.
                merge_total(total, mine.totals[column], times // mine.count)
            else:
                total.add(mine.row.get(column.key), times)
        return aggregate_total(aggregate, total)


def merge_total(total: Total, other: Total, times: int) -> None:
    """Add another total to a total, so many times."""
    total.finite += other.finite * times
    total.count += other.count * times
    if other.special is not None:
        total.special = (total.special or 0.0) + other.special


def _row(choice: tuple[RepresentativeRow, ...]) -> Mapping[str, Any]:
    return {key: value for kept in choice for key, value in kept.row.items()}


def _ordinals(by: Iterable[Column], row: Mapping[str, Any]) -> tuple[Hashable, ...]:
    values = ((column, row.get(column.key)) for column in by)
    return tuple(None if value is None else column.type.ordinal(value) for column, value in values)
