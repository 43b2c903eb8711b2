"""Codes under which the values of several columns, of whatever types, compare as the values do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.events.columns import CodedColumn, Mask, double_ranks, encode_column
from headgate.predicate import Column
from headgate.schema import Double, Integer, Timestamp, Type
from headgate.stateful.analysis.synopses.extremes import position
from headgate.stateful.runtime.grouping import Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """The codes of a column's values; those of NULLs mean nothing."""

    codes: Numbers
    valid: Mask | None


def on_one_line(columns: Sequence[tuple[Column, pa.Array[Any]]], zone: Timestamp) -> list[Line]:
    """The columns as codes of one order: that of their values, compared exactly.

    Values of different types are ranked one by one, so these should be few; INT beside DOUBLE, and
    columns of one type, are coded as arrays.
    """
    types = {column.type for column, _ in columns}
    if len(types) == 1:
        return _of_one_type([array for _, array in columns], columns[0][0].type)
    if all(isinstance(each, Double) or each == Integer(32) for each in types):
        return [_as_double(array, column.type) for column, array in columns]
    return _ranked([encode_column(array, column.type) for column, array in columns], zone)


def _of_one_type(arrays: list[pa.Array[Any]], type_: Type) -> list[Line]:
    coded = encode_column(pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0], type_)
    ends = np.cumsum([len(array) for array in arrays]).tolist()
    starts = [0, *ends[:-1]]
    return [
        Line(coded.codes[start:end], None if coded.valid is None else coded.valid[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]


def _as_double(array: pa.Array[Any], type_: Type) -> Line:
    coded = encode_column(array, type_)
    if isinstance(type_, Double):
        return Line(coded.codes, coded.valid)
    return Line(double_ranks(coded.codes.astype(np.float64)), coded.valid)


def _ranked(columns: list[CodedColumn], zone: Timestamp) -> list[Line]:
    distinct = [np.unique(column.codes, return_inverse=True) for column in columns]
    keys = []
    for column, (codes, _) in zip(columns, distinct, strict=True):
        ordinals = codes.tolist() if column.ranked is None else column.ranked_at(codes)
        keys.append([position(column.type.value(ordinal), zone) for ordinal in ordinals])
    order = sorted({key for each in keys for key in each})
    rank = {key: number for number, key in enumerate(order)}
    found = []
    for column, (codes, places), each in zip(columns, distinct, keys, strict=True):
        ranks = np.zeros(max(len(codes), 1), np.int64)
        ranks[: len(each)] = [rank[key] for key in each]
        found.append(Line(ranks[places], column.valid))
    return found
