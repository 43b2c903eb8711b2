"""Columns of raw values become one batch, and rows that do not fit become dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.events.batch import DeadLetter, EventBatch, Numbers
from headgate.events.check import find_violations
from headgate.events.convert import Rule
from headgate.events.reasons import UnfitValue
from headgate.schema import Attribute, Stream


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """The values of one attribute; NULL in the rows that `unfit` gives a reason for."""

    attribute: Attribute
    array: pa.Array[Any]
    unfit: Mapping[int, str]


def convert_column(attribute: Attribute, rule: Rule, values: Sequence[Any]) -> ConvertedColumn:
    """Convert a column of raw values.

    >>> from headgate.events.convert import json_rule
    >>> from headgate.schema import INT
    >>> qty = Attribute("qty", INT)
    >>> fill(qty, json_rule(qty), [1, None, "x"]).unfit
    {2: "`qty` is 'x', which is not an INT"}
    """
    arrow = attribute.type.arrow
    if set(map(type, values)) <= {rule.ready, NoneType}:
        try:
            return ConvertedColumn(attribute, pa.array(values, arrow), {})
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            pass  # one of them is out of range or has no UTF-8 form: the loop below finds it
    convert = rule.convert
    converted: list[Any] = []
    unfit: dict[int, str] = {}
    for row, value in enumerate(values):
        try:
            converted.append(None if value is None else convert(value))
        except UnfitValue as reason:
            converted.append(None)
            unfit[row] = str(reason)
    return ConvertedColumn(attribute, pa.array(converted, arrow), unfit)


def assemble_batch(
    stream: Stream,
    columns: Iterable[ConvertedColumn],
    events: Numbers,
    lines: Numbers,
    letter: Callable[[int, str], DeadLetter],
    *,
    reasons: Mapping[int, str] | None = None,
    dead: Iterable[DeadLetter] = (),
    blank: int = 0,
    unknown: Mapping[str, int] | None = None,
) -> EventBatch:
    """The batch of the rows that fit; `letter` writes the dead letter of each that does not.

    `events` has the number of each row, and `lines` its line. `reasons` are those known before any
    column was read, and `dead` the letters of events that never became rows. A row's first reason,
    in the order of the attributes, is the one reported.
    """
    row_reasons = dict(reasons or {})
    arrays: list[pa.Array[Any]] = []
    names: list[str] = []
    for column in columns:
        for row, reason in (*column.unfit.items(), *find_violations(column.array, column.attribute)):
            row_reasons.setdefault(row, reason)
        arrays.append(column.array)
        names.append(column.attribute.name)
    if row_reasons:
        keep = np.ones(len(events), dtype=bool)
        keep[list(row_reasons)] = False
        arrays = [array.filter(pa.array(keep)) for array in arrays]
        events, lines = events[keep], lines[keep]
    letters = [*dead, *(letter(row, reason) for row, reason in row_reasons.items())]
    letters.sort(key=lambda one: one.event)
    table = pa.RecordBatch.from_arrays(arrays, names=names)
    return EventBatch(stream, table, events, lines, tuple(letters), blank, unknown or {})
