"""How much a run stores, in values and bytes, counted as its bound is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from headgate.predicate import Column
from headgate.schema import String
from headgate.stateful.analysis.synopses.answer_parts import AnswerPart
from headgate.stateful.analysis.synopses.plan import Store
from headgate.stateful.analysis.synopses.sizes import COUNT_BYTES, get_sum_bytes, get_value_bytes
from headgate.stateful.runtime.program import Program
from headgate.stateful.runtime.weighted_rows import WeightedRows
from headgate.stateful.runtime.windows import LastRows, Window


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory that is in use: so many values, in so many bytes."""

    values: int
    bytes: int

    def __add__(self, other: MemoryUse) -> MemoryUse:
        return MemoryUse(self.values + other.values, self.bytes + other.bytes)


def measure_query(
    program: Program, stored: Sequence[WeightedRows], answered: Sequence[WeightedRows]
) -> MemoryUse:
    """Measure what the synopses and the answer hold."""
    total = MemoryUse(0, 0)
    for bucketing, rows in zip(program.reducers, stored, strict=True):
        if bucketing.store.is_kept:
            total += _measure_store(bucketing.store, rows)
    if program.remembers_answer:
        for part, rows in zip(program.answer_states, answered, strict=True):
            total += _measure_answer(part.described, rows)
    return total


def _measure_store(store: Store, rows: WeightedRows) -> MemoryUse:
    if store.part.distinct:
        return _measure_extreme_rows(store.kept, rows)
    masked = store.masks > 1
    return _measure_counted_rows(store.columns, store.summed, store.counted, rows, masked=masked)


def _measure_answer(part: AnswerPart, rows: WeightedRows) -> MemoryUse:
    size = _count_bytes(part.kept, rows) + len(rows) * part.weight
    return MemoryUse(len(rows) * part.values, size if part.kept else max(size, len(rows)))


def _measure_extreme_rows(columns: Sequence[Column], rows: WeightedRows) -> MemoryUse:
    size = _count_bytes(columns, rows) if columns else len(rows)
    return MemoryUse(len(rows) * max(len(columns), 1), size)


def _measure_counted_rows(
    columns: Sequence[Column],
    summed: Iterable[Column],
    counted: Sequence[Column],
    rows: WeightedRows,
    *,
    masked: bool,
) -> MemoryUse:
    # A row has its values, a count, perhaps a mask of branches, sums, and counts of values.
    widths = [get_sum_bytes(column.type) for column in summed]
    each = len(columns) + 1 + masked + len(widths) + len(counted)
    size = COUNT_BYTES * (1 + masked + len(counted)) + sum(widths)
    return MemoryUse(len(rows) * each, len(rows) * size + _count_bytes(columns, rows))


def measure_window(window: Window, last: LastRows, *, masked: bool) -> MemoryUse:
    """Measure a window; whether a row passed is a value too, where that must be known."""
    # A flag is one value in one byte, for every row of the window, whether it is kept or not.
    rows, flags = len(last.rows), window.count_rows(last) * window.is_flagged
    size = _count_bytes(window.columns, last.rows) + rows * COUNT_BYTES * masked
    return MemoryUse(rows * (len(window.columns) + masked) + flags, size + flags)


def _count_bytes(columns: Iterable[Column], rows: WeightedRows) -> int:
    total = 0
    for column in columns:
        if isinstance(column.type, String):
            texts: Any = rows.values[column]
            total += pc.sum(pc.binary_length(texts)).as_py() or 0
        else:
            total += len(rows) * get_value_bytes(column.type)
    return total
