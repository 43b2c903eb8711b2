"""Columns of raw values become one batch, and rows that do not fit become dead letters.

A row does not fit if a value is not of its attribute's type, or breaks its CHECK or NOT NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events.batch import DeadLetter, EventBatch, Numbers, UnfitValue, show_value
from headgate.events.columns import encode_column
from headgate.events.conversion import Rule
from headgate.schema import Attribute, Stream


@dataclass(frozen=True, slots=True)
class ConvertedColumn:
    """The values of one attribute; NULL in the rows that `unfit` gives a reason for."""

    attribute: Attribute
    array: pa.Array[Any]
    unfit: Mapping[int, str]


def convert_column(attribute: Attribute, rule: Rule, values: Sequence[Any]) -> ConvertedColumn:
    """Convert a column of raw values.

    >>> from headgate.events.conversion import make_json_rule
    >>> from headgate.schema import INT
    >>> qty = Attribute("qty", INT)
    >>> convert_column(qty, make_json_rule(qty), [1, None, "x"]).unfit
    {2: "`qty` is 'x', which is not an INT"}
    """
    arrow = attribute.type.arrow
    # One call converts the whole column where every value has the type that Arrow takes as it is.
    # Types are compared, since to isinstance a bool is an int, and it must not become one.
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


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Where rows come from: the number of each event, its line, and how its dead letter is written.

    `write_letter` takes the place of a row among these and the reason.
    """

    events: Numbers
    lines: Numbers
    write_letter: Callable[[int, str], DeadLetter]


def assemble_batch(
    stream: Stream,
    columns: Iterable[ConvertedColumn],
    places: RowPlaces,
    *,
    reasons: Mapping[int, str] | None = None,
    dead: Iterable[DeadLetter] = (),
    blank: int = 0,
    unknown: Mapping[str, int] | None = None,
) -> EventBatch:
    """Return the batch of the rows that fit, with a dead letter for each that does not.

    `reasons` are those known before any column was read, and `dead` the letters of events that
    never became rows. A row's first reason, in the order of the attributes, is the one reported.
    """
    events, lines = places.events, places.lines
    row_reasons = dict(reasons or {})
    arrays: list[pa.Array[Any]] = []
    names: list[str] = []
    for column in columns:
        violations = find_violations(column.array, column.attribute)
        # Columns come in the order of the attributes, so `setdefault` keeps the first reason of a
        # row.
        for row, reason in (*column.unfit.items(), *violations):
            row_reasons.setdefault(row, reason)
        arrays.append(column.array)
        names.append(column.attribute.name)
    # most batches have no bad row, and then nothing is copied
    if row_reasons:
        keep = np.ones(len(events), dtype=bool)
        keep[list(row_reasons)] = False
        arrays = [array.filter(pa.array(keep)) for array in arrays]
        events, lines = events[keep], lines[keep]
    letters = [*dead, *(places.write_letter(row, reason) for row, reason in row_reasons.items())]
    letters.sort(key=lambda letter: letter.event)
    table = pa.RecordBatch.from_arrays(arrays, names=names)
    return EventBatch(stream, table, events, lines, tuple(letters), blank, unknown or {})


def find_violations(array: pa.Array[Any], attribute: Attribute) -> Iterator[tuple[int, str]]:
    """Yield the rows that CHECK or NOT NULL of the attribute forbids, each with the reason."""
    if not attribute.nullable and array.null_count:
        for row in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)):
            yield int(row), f"`{attribute.name}` is NULL, against its NOT NULL"
    if not attribute.domain.is_everything:
        for row in np.flatnonzero(find_outside_domain(array, attribute)):
            value = show_value(array[int(row)].as_py())
            yield int(row), f"`{attribute.name}` is {value}, outside its CHECK"


def find_outside_domain(array: pa.Array[Any], attribute: Attribute) -> npt.NDArray[np.bool_]:
    """Return which values have an ordinal outside the domain; a NULL is not outside.

    >>> from headgate.schema import INT, Interval, ValueSet
    >>> positive = Attribute("qty", INT, ValueSet.of(Interval(1, None)))
    >>> find_outside_domain(pa.array([3, None, 0], pa.int32()), positive).tolist()
    [False, False, True]
    """
    column = encode_column(array, attribute.type)
    # The code of a NULL means nothing, so what this says of it is dropped below.
    outside = ~column.test_membership(attribute.domain)
    return outside if column.valid is None else outside & column.valid
