"""The columns of a batch as codes, each encoded once, however many segments use it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.columns import CodedColumn, encode_column, encode_present, read_plain_numbers
from headgate.events.typed_tables import TypedTable, read_typed_batch
from headgate.predicate import Column

Rows = npt.NDArray[np.int64]


class EventColumns:
    """The values of some rows, by column: of a batch all, of a table those from row `first` on."""

    def __init__(self, source: TypedTable | pa.RecordBatch, rows: int, *, first: int = 0) -> None:
        self._source = source
        self.first = first
        self._rows = rows
        self._whole: dict[str, CodedColumn] = {}
        self._present: dict[str, tuple[Rows, CodedColumn]] = {}

    @cached_property
    def table(self) -> TypedTable:
        """The table with the places of its columns, which only some indexes want to know."""
        source = self._source
        return source if isinstance(source, TypedTable) else read_typed_batch(source, self._rows)

    def __len__(self) -> int:
        """Return the number of events."""
        return self._rows

    def whole(self, column: Column) -> CodedColumn:
        """Return a column with its NULLs."""
        encoded = self._whole.get(column.name)
        if encoded is None:
            encoded = self._whole[column.name] = encode_column(self._array(column), column.type)
        return encoded

    def present(self, column: Column) -> tuple[Rows, CodedColumn]:
        """Return the rows in which a column is not NULL, and its values there."""
        encoded = self._present.get(column.name)
        if encoded is None:
            encoded = self._present[column.name] = encode_present(self._array(column), column.type)
        return encoded

    def plain(self, column: Column) -> npt.NDArray[Any] | None:
        """Return the values of a column if all are there and are their own ordinals; else None."""
        return read_plain_numbers(self._array(column))

    def _array(self, column: Column) -> Any:
        """Return a column of the batch; one that it was read without is NULL."""
        source = self._source
        if isinstance(source, TypedTable):
            return source.column(column.name, column.type, self.first, self._rows)
        if source.schema.get_field_index(column.name) < 0:
            return pa.array([None] * self._rows, column.type.arrow)
        return source.column(column.name)
