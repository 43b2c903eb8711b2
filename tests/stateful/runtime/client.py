"""Somebody who knows of a query only what its run tells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from headgate.queries import Query
from headgate.stateful.runtime.running_query import Mode
from tests.stateful.runtime.oracles import Key, RelationalAnswer, to_answer


def values_of(table: pa.Table) -> list[Key]:
    """The rows of a table; names do not matter."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


class Client:
    """Somebody who has only what a run gave: rows, or the last state of each group."""

    def __init__(self, query: Query, *, mode: Mode, expand: bool) -> None:
        self.query = query
        self.mode = mode
        self.expand = expand
        self.has: dict[Key, Any] = {}

    def receive(self, table: pa.Table) -> None:
        new = self.read(table)
        if self.query.kind == "aggregate":
            self.has = dict(new) if self.mode == "complete" else {**self.has, **new}
            return
        if self.query.distinct:
            assert not new.keys() & self.has.keys(), "a row was given twice"
            assert all(times == 1 for times in new.values())
        self.has = dict(Counter(self.has) + Counter(new))

    def read(self, table: pa.Table) -> RelationalAnswer:
        """A table as an answer, by its multiplicities."""
        given = values_of(table)
        if self.query.kind == "aggregate" or self.query.distinct or self.expand:
            return to_answer(self.query, given)
        times: Counter[Key] = Counter()
        for *row, multiplicity in given:
            assert multiplicity > 0
            (key,) = to_answer(self.query, [row])
            times[key] += multiplicity
        return times
