"""A query with row windows, run in process.

At every moment the answer is the relational one over what counts then: the last rows of a windowed
stream, all rows of another. A row that leaves a window takes its part of the answer with it, which
is not reported; what comes in is:

| query     | `push` gives                                                              |
|-----------|---------------------------------------------------------------------------|
| a join    | the combinations that came with each row when it came                     |
| DISTINCT  | rows that came into the answer and were not in it before the batch        |
| aggregate | the groups that are not what they were before; one that is gone, is gone  |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.errors import UsageError
from headgate.events import EventBatch
from headgate.queries import Output
from headgate.stateful.runtime.memory_use import MemoryUse, measure_window
from headgate.stateful.runtime.output_rows import make_group_rows
from headgate.stateful.runtime.program import StoreJoin
from headgate.stateful.runtime.running_query import RunningQuery
from headgate.stateful.runtime.stream_rows import StreamRows
from headgate.stateful.runtime.weighted_rows import WeightedRows, from_table
from headgate.stateful.runtime.windows import LastRows


class WindowedQuery(RunningQuery):
    """A running query in which rows of some streams count only while few have come after them."""

    def _reset_state(self) -> None:
        super()._reset_state()
        self._last = {n: window.empty() for n, window in self._program.windows.items()}

    def _push_batch(self, stream: str, batch: EventBatch) -> pa.Table:
        rows = len(batch.events)
        changes = self._empty_changes()
        occurrences = self._program.occurrences(stream)
        windowed = any(source in self._last for source in occurrences)
        # A row of a window meets others of its own batch, as long as these have not left theirs.
        step = 1 if self._reports_each_row and windowed and len(occurrences) > 1 else max(rows, 1)
        for start in range(0, rows, step):
            coming = min(step, rows - start)
            # All windows make room before any row is joined, so that none meets a row that left.
            for source in occurrences:
                if source in self._last:
                    window = self._program.windows[source]
                    self._last[source] = window.evict(self._last[source], coming)
            for source in occurrences:
                self._arrive(source, batch.table.slice(start, step), coming, changes)
        return self._report(changes)

    def _arrive(
        self, source: int, table: pa.RecordBatch, rows: int, changes: list[WeightedRows]
    ) -> None:
        program = self._program
        passed = StreamRows(program.query, source, table, rows)
        window = program.windows.get(source)
        # A stream without a window is reduced and kept as in any other query.
        if window is None:
            reduced = {
                number: each.reduce(passed)
                for number, each in enumerate(program.reducers)
                if each.store.source == source
            }
            self._join(source, reduced, changes)
            return
        arrived = window.take_rows(passed)
        for joining in program.joins if self._reports_each_row else ():
            sides = self._list_sides(joining)
            sides[source] = window.as_join_side(arrived, joining.branches, ())
            self._combine(joining, sides, source, changes)
        self._last[source] = window.advance(self._last[source], arrived, passed.passed, rows)

    @property
    def _reports_each_row(self) -> bool:
        """Whether each row reports what it brings; of an aggregate, all of them do together."""
        return self.query.kind != "aggregate"

    def _list_sides(self, joining: StoreJoin) -> dict[int, WeightedRows]:
        sides = super()._list_sides(joining)
        summed = self._program.answer_states[joining.part].summed
        for source, window in self._program.windows.items():
            own = [c for c in summed if c in window.columns]
            sides[source] = window.as_join_side(self._last[source].rows, joining.branches, own)
        return sides

    def _report(self, changes: list[WeightedRows]) -> pa.Table:
        program = self._program
        if not program.remembers_answer:
            return self._to_table(changes, changed=True)
        # Rows that left cannot be subtracted from extremes, so the answer is computed again.
        before, self._answered = self._answered, self._join_all()
        if self.query.distinct:
            (part,) = program.answer_states
            return self._to_table([part.advance(before[0], changes[0])[1]], changed=True)
        if self._mode == "complete":
            return self._to_table(self._answered, changed=False)
        # A group is reported if its row, keys included, was not in the answer before.
        every = self._make_all_groups(self._answered)
        known = set(map(_row_key, self._make_all_groups(before).to_pylist()))
        new = [n for n, row in enumerate(every.to_pylist()) if _row_key(row) not in known]
        return every.take(np.array(new, np.int64)).select(range(len(self.query.outputs)))

    def _make_all_groups(self, parts: list[WeightedRows]) -> pa.Table:
        """Return all groups, with what they are grouped by behind the outputs."""
        by = self._program.answer_states[0].by
        outputs = [Output(f"by {number}", column) for number, column in enumerate(by)]
        query = self._program.query
        query = replace(query, outputs=(*query.outputs, *outputs))
        return make_group_rows(
            query, list(zip(self._program.answer_states, parts, strict=True)), None
        )

    @property
    def stored(self) -> MemoryUse:
        """The memory in use now, that of the last rows included."""
        return super().stored + sum(self._measure_windows(), MemoryUse(0, 0))

    def _measure_windows(self) -> Iterator[MemoryUse]:
        masked = len(self._program.plan.branches) > 1
        for source, window in self._program.windows.items():
            if self._program.plan.branches:
                yield measure_window(window, self._last[source], masked=masked)

    @contextmanager
    def _undo_on_error(self) -> Iterator[None]:
        last = dict(self._last)
        try:
            with super()._undo_on_error():
                yield
        except BaseException:
            self._last = last
            raise

    def _make_header(self) -> pa.Table:
        seen = [last.seen for last in self._last.values()]
        return super()._make_header().append_column("seen", pa.array([seen], pa.list_(pa.int64())))

    def _list_tables(self) -> list[pa.Table]:
        windows = (
            last.rows.table().append_column("number", pa.array(last.numbers))
            for last in self._last.values()
        )
        return [*super()._list_tables(), *windows]

    def _open(self, header: Mapping[str, Any], tables: Sequence[pa.Table]) -> None:
        # The tables of the windows come last, as `_list_tables` writes them.
        others = len(tables) - len(self._last)
        branches = len(self._program.plan.branches)
        last = {}
        every = zip(self._program.windows.items(), tables[others:], header["seen"], strict=True)
        for (source, window), table, seen in every:
            rows = from_table(table, window.columns, branches, ())
            last[source] = LastRows(rows, table.column("number").to_numpy(), seen)
        super()._open(header, tables[:others])
        self._last = last

    def take(self, reduced: Mapping[str, Iterable[bytes]]) -> pa.Table:
        """Refuse: windowed streams have no reductions, since the order of their rows counts."""
        raise UsageError(f"{', '.join(reduced)}: rows of windowed streams are pushed, not reduced")


def _row_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a row as a key that can be looked up; NaN is equal to itself."""
    return tuple(
        "NaN" if isinstance(value, float) and isnan(value) else value for value in row.values()
    )
