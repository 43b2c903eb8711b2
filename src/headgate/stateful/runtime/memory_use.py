"""How much a run stores, in values and bytes, counted as its bound is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from headgate.predicate import Column
from headgate.schema import String
from headgate.stateful.analysis.synopses.answer_parts import RememberedPart
from headgate.stateful.analysis.synopses.plan import Store
from headgate.stateful.analysis.synopses.sizes import COUNT, width, width_of_sum
from headgate.stateful.runtime.program import Program
from headgate.stateful.runtime.weighted_rows import Weighted
from headgate.stateful.runtime.windows import LastRows, Window


@dataclass(frozen=True, slots=True)
class Stored:
    """So many values, in so many bytes."""

    values: int
    bytes: int

    def __add__(self, other: Stored) -> Stored:
        return Stored(self.values + other.values, self.bytes + other.bytes)


def stored(program: Program, kept: Sequence[Weighted], answered: Sequence[Weighted]) -> Stored:
    """What the synopses and the answer hold."""
    total = Stored(0, 0)
    if program.keeps_rows:
        for bucketing, rows in zip(program.bucketings, kept, strict=True):
            total += _of_store(bucketing.store, rows)
    if program.remembers_answer:
        for part, rows in zip(program.remembered, answered, strict=True):
            total += _of_answer(part.described, rows)
    return total


def _of_store(store: Store, rows: Weighted) -> Stored:
    if store.part.distinct:
        return _chosen(store.kept, rows)
    masked = store.masks > 1
    return _counted(store.columns, store.summed, store.counted, rows, masked=masked)


def _of_answer(part: RememberedPart, rows: Weighted) -> Stored:
    size = _bytes(part.kept, rows) + len(rows) * part.weight
    return Stored(len(rows) * part.values, size if part.kept else max(size, len(rows)))


def _chosen(columns: Sequence[Column], rows: Weighted) -> Stored:
    size = _bytes(columns, rows) if columns else len(rows)
    return Stored(len(rows) * max(len(columns), 1), size)


def _counted(
    columns: Sequence[Column],
    summed: Iterable[Column],
    counted: Sequence[Column],
    rows: Weighted,
    *,
    masked: bool,
) -> Stored:
    widths = [width_of_sum(column.type) for column in summed]
    each = len(columns) + 1 + masked + len(widths) + len(counted)
    size = COUNT * (1 + masked + len(counted)) + sum(widths)
    return Stored(len(rows) * each, len(rows) * size + _bytes(columns, rows))


def of_window(window: Window, last: LastRows, *, masked: bool) -> Stored:
    """What a window holds; whether a row passed is a value too, where that must be known."""
    rows, flags = len(last.rows), window.held(last) * window.is_flagged
    size = _bytes(window.columns, last.rows) + rows * COUNT * masked
    return Stored(rows * (len(window.columns) + masked) + flags, size + flags)


def _bytes(columns: Iterable[Column], rows: Weighted) -> int:
    total = 0
    for column in columns:
        if isinstance(column.type, String):
            texts: Any = rows.values[column]
            total += pc.sum(pc.binary_length(texts)).as_py() or 0
        else:
            total += len(rows) * width(column.type)
    return total
