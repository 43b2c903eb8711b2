"""The columns of a batch as codes, each encoded once, however many segments use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.columns import CodedColumn, encode_column, encode_present, read_plain_numbers
from headgate.events.typed_tables import TypedTable, read_typed_batch
from headgate.predicate import Column

Rows = npt.NDArray[np.int64]


class EventColumns:
    """The values of some rows of a table, by column: `rows` of them, from row `first` on."""

    def __init__(self, table: TypedTable | pa.RecordBatch, rows: int, *, first: int = 0) -> None:
        self.table = table if isinstance(table, TypedTable) else read_typed_batch(table, rows)
        self.first = first
        self._rows = rows
        self._whole: dict[str, CodedColumn] = {}
        self._present: dict[str, tuple[Rows, CodedColumn]] = {}

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

    def _array(self, column: Column) -> pa.Array[Any]:
        return self.table.column(column.name, column.type, self.first, self._rows)
