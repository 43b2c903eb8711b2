"""A query with row windows, run in process.

At every moment the answer is the relational one over what counts then: the last rows of a windowed
stream, all rows of another. A row that leaves a window takes its part of the answer with it, which
is not told; what comes in is:

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
from headgate.stateful.runtime.memory_use import Stored, of_window
from headgate.stateful.runtime.output_rows import group_rows
from headgate.stateful.runtime.program import Joining
from headgate.stateful.runtime.running_query import Run
from headgate.stateful.runtime.stream_rows import StreamRows
from headgate.stateful.runtime.weighted_rows import Weighted, from_table
from headgate.stateful.runtime.windows import LastRows


class WindowedRun(Run):
    """A run in which the rows of some streams count only as long as few have come after them."""

    def _begin(self) -> None:
        super()._begin()
        self._last = {n: window.nothing() for n, window in self._program.windows.items()}

    def _pushed(self, stream: str, batch: EventBatch) -> pa.Table:
        rows = len(batch.events)
        changes = self._nothing_new()
        occurrences = self._program.occurrences(stream)
        windowed = any(source in self._last for source in occurrences)
        # a row of a window meets others of its own batch, as long as these have not left theirs
        step = 1 if self._tells_rows and windowed and len(occurrences) > 1 else max(rows, 1)
        for start in range(0, rows, step):
            coming = min(step, rows - start)
            for source in occurrences:
                if source in self._last:
                    window = self._program.windows[source]
                    self._last[source] = window.making_room(self._last[source], coming)
            for source in occurrences:
                self._arrive(source, batch.table.slice(start, step), coming, changes)
        return self._told(changes)

    def _arrive(
        self, source: int, table: pa.RecordBatch, rows: int, changes: list[Weighted]
    ) -> None:
        program = self._program
        passed = StreamRows(program.query, source, table, rows)
        window = program.windows.get(source)
        if window is None:
            reduced = {
                number: each.reduced(passed)
                for number, each in enumerate(program.bucketings)
                if each.store.source == source
            }
            self._join(source, reduced, changes)
            return
        arrived = window.arriving(passed)
        for joining in program.joinings if self._tells_rows else ():
            sides = self._sides(joining)
            sides[source] = window.side(arrived, joining.branches, ())
            self._combine(joining, sides, source, changes)
        self._last[source] = window.advanced(self._last[source], arrived, passed.passed, rows)

    @property
    def _tells_rows(self) -> bool:
        """Of an aggregate, what all rows give together is told."""
        return self.query.kind != "aggregate"

    def _sides(self, joining: Joining) -> dict[int, Weighted]:
        found = super()._sides(joining)
        summed = self._program.remembered[joining.part].summed
        for source, window in self._program.windows.items():
            own = [c for c in summed if c in window.columns]
            found[source] = window.side(self._last[source].rows, joining.branches, own)
        return found

    def _told(self, changes: list[Weighted]) -> pa.Table:
        program = self._program
        if not program.remembers_answer:
            return self._given(changes, changed=True)
        before, self._answered = self._answered, self._whole()
        if self.query.distinct:
            (part,) = program.remembered
            return self._given([part.advanced(before[0], changes[0])[1]], changed=True)
        if self._mode == "complete":
            return self._given(self._answered, changed=False)
        every = self._groups(self._answered)
        known = set(map(_row, self._groups(before).to_pylist()))
        new = [n for n, row in enumerate(every.to_pylist()) if _row(row) not in known]
        return every.take(np.array(new, np.int64)).select(range(len(self.query.outputs)))

    def _groups(self, parts: list[Weighted]) -> pa.Table:
        """All groups, with what they are grouped by behind what is put out."""
        by = self._program.remembered[0].by
        outputs = [Output(f"by {number}", column) for number, column in enumerate(by)]
        query = self._program.query
        query = replace(query, outputs=(*query.outputs, *outputs))
        return group_rows(query, list(zip(self._program.remembered, parts, strict=True)), None)

    @property
    def stored(self) -> Stored:
        """What is stored now, the last rows included."""
        return super().stored + sum(self._of_windows(), Stored(0, 0))

    def _of_windows(self) -> Iterator[Stored]:
        masked = len(self._program.plan.branches) > 1
        for source, window in self._program.windows.items():
            if self._program.plan.branches:
                yield of_window(window, self._last[source], masked=masked)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        last = dict(self._last)
        try:
            with super()._all_or_nothing():
                yield
        except BaseException:
            self._last = last
            raise

    def _header(self) -> pa.Table:
        seen = [last.seen for last in self._last.values()]
        return super()._header().append_column("seen", pa.array([seen], pa.list_(pa.int64())))

    def _tables(self) -> list[pa.Table]:
        windows = (
            last.rows.table().append_column("number", pa.array(last.numbers))
            for last in self._last.values()
        )
        return [*super()._tables(), *windows]

    def _open(self, header: Mapping[str, Any], tables: Sequence[pa.Table]) -> None:
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
        """There are no reductions of windowed streams, since the order of their rows counts."""
        raise UsageError(f"{', '.join(reduced)}: rows of windowed streams are pushed, not reduced")


def _row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row that can be looked up; NaN is equal to itself."""
    return tuple(
        "NaN" if isinstance(value, float) and isnan(value) else value for value in row.values()
    )
