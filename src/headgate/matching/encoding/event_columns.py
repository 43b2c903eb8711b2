"""The columns of a batch as codes, each encoded once, however many segments ask for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.columns import CodedColumn, encode_column, encode_present, plain_numbers
from headgate.predicate import Column

Rows = npt.NDArray[np.int64]


class EventColumns:
    """The values of a batch, by column."""

    def __init__(self, table: pa.RecordBatch, rows: int) -> None:
        self._table = table
        self._rows = rows  # a table without columns does not know
        self._whole: dict[str, CodedColumn] = {}
        self._present: dict[str, tuple[Rows, CodedColumn]] = {}

    def __len__(self) -> int:
        """The number of events."""
        return self._rows

    def whole(self, about: Column) -> CodedColumn:
        """A column with its NULLs."""
        known = self._whole.get(about.name)
        if known is None:
            known = self._whole[about.name] = encode_column(self._array(about), about.type)
        return known

    def present(self, about: Column) -> tuple[Rows, CodedColumn]:
        """The rows in which a column is not NULL, and its values there."""
        known = self._present.get(about.name)
        if known is None:
            known = self._present[about.name] = encode_present(self._array(about), about.type)
        return known

    def plain(self, about: Column) -> npt.NDArray[Any] | None:
        """The values of a column, if all are there and are their own ordinals."""
        return plain_numbers(self._array(about))

    def _array(self, about: Column) -> Any:
        """A column of the batch; one that it was read without is NULL."""
        if self._table.schema.get_field_index(about.name) < 0:
            return pa.array([None] * self._rows, about.type.arrow)
        return self._table.column(about.name)
