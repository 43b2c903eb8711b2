"""Rows of a stream that conditions are tried on, one after the other."""

from __future__ import annotations

import pyarrow as pa

from headgate.events.columns import CodedColumn, Mask, encode_column
from headgate.matching.scan import Evaluation
from headgate.predicate import Predicate, collect_columns
from headgate.schema import Stream


class FilterableTable:
    """A table with some attributes of a stream; each column is encoded once, when it is needed."""

    def __init__(self, table: pa.Table, stream: Stream) -> None:
        self.table = table
        self.stream = stream
        self._coded: dict[str, CodedColumn] = {}

    def compute_mask(self, where: Predicate) -> Mask:
        """The rows for which a condition is TRUE."""
        coded = {column.name: self._encode_column(column.name) for column in collect_columns(where)}
        return Evaluation(coded, self.table.num_rows, set()).true(where)

    def _encode_column(self, name: str) -> CodedColumn:
        if name not in self._coded:
            attribute = self.stream[name]
            array = self.table.column(attribute.name).combine_chunks()
            self._coded[name] = encode_column(array, attribute.type)
        return self._coded[name]
