"""A batch of rows of one occurrence of a stream, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headgate.events.columns import CodedColumn, Mask, encode_column
from headgate.matching.scan import Evaluation
from headgate.predicate import Column, Predicate, collect_columns
from headgate.queries import Query
from headgate.stateful.analysis.case import list_filters
from headgate.stateful.runtime.grouping import Numbers


class StreamRows:
    """A batch of rows of one occurrence that have passed the conditions on it alone.

    Columns are encoded when they are first needed.
    """

    def __init__(self, query: Query, source: int, table: pa.RecordBatch, rows: int) -> None:
        self.table = table
        self._coded: dict[str, CodedColumn] = {}
        wheres = list_filters(query, source)
        passed = np.ones(rows, np.bool_)
        for where in wheres:
            passed &= self.evaluate(where, rows)
        self.passed = np.flatnonzero(passed)
        """The places of the rows in the batch."""
        self.rows = len(self.passed)
        # Columns that the conditions needed keep their codes; they are not encoded again.
        if self.rows < rows:
            self.table = table.take(self.passed)
            self._coded = {name: select_rows(c, self.passed) for name, c in self._coded.items()}

    def evaluate(self, where: Predicate, rows: int | None = None) -> Mask:
        """Return where a condition on this occurrence alone is TRUE."""
        coded = {column.name: self.encode(column) for column in collect_columns(where)}
        return Evaluation(coded, self.rows if rows is None else rows, set()).true(where)

    def encode(self, column: Column) -> CodedColumn:
        """Return a column as codes; each column is encoded once."""
        if column.name not in self._coded:
            self._coded[column.name] = encode_column(self.array(column), column.type)
        return self._coded[column.name]

    def array(self, column: Column) -> pa.Array[Any]:
        """Return a column of the rows that have passed."""
        return self.table.column(column.name)


def select_rows(column: CodedColumn, rows: Numbers) -> CodedColumn:
    """Return some rows of an encoded column."""
    valid = None if column.valid is None else column.valid[rows]
    return CodedColumn(column.type, column.codes[rows], valid, column.ranked)
