"""Rows that a query cannot need are skipped by Spark, before they cross to Python.

Only where Spark's comparison is ours: between a column of the declared type and constants of that
type. A row that is not valid is no row to skip, unless invalid rows are skipped anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headgate.schema import (
    Boolean,
    Double,
    Interval,
    Stream,
    String,
    Timestamp,
    Type,
    ValueSet,
)
from headgate.spark.frames import arrow_type
from headgate.stateful.runtime.reduction import Needed

FEW = 50  # values, or intervals of them, that a condition lists


def needed_rows(
    frame: DataFrame,
    stream: Stream,
    names: Sequence[str],
    occurrences: Sequence[Mapping[str, Needed]],
    *,
    with_invalid: bool,
) -> DataFrame:
    """The rows that some occurrence of the stream may need; all of them where that is not known.

    The columns of the frame are the attributes with these names.
    """
    columns = dict(zip(names, map(F.col, frame.columns), strict=True))
    types = {n: arrow_type(f.dataType) for n, f in zip(names, frame.schema.fields, strict=True)}
    declared = {attribute.name: attribute.type.arrow for attribute in stream}
    typed = {name for name in names if types[name] == declared.get(name)}
    wanted = [_all(_conditions(columns, typed, stream, needs)) for needs in occurrences]
    if not wanted or any(condition is None for condition in wanted):
        return frame
    kept = [condition for condition in wanted if condition is not None]
    if with_invalid:
        for name in names:
            invalid = _invalid(columns[name], stream, name) if name in typed else None
            if invalid is None:
                return frame
            kept += invalid
    return frame.where(reduce(or_, kept))


def _all(conditions: Iterator[Column]) -> Column | None:
    every = list(conditions)
    return reduce(and_, every) if every else None


def _conditions(
    columns: Mapping[str, Column], typed: set[str], stream: Stream, needs: Mapping[str, Needed]
) -> Iterator[Column]:
    for name, need in needs.items():
        inside = _within(columns[name], stream[name].type, need.values) if name in typed else None
        if inside is not None:
            yield inside | columns[name].isNull() if need.null else inside


def _invalid(column: Column, stream: Stream, name: str) -> list[Column] | None:
    """When a value is not that of its attribute; None where Spark cannot say."""
    attribute = stream[name]
    found = [] if attribute.nullable else [column.isNull()]
    if attribute.domain.is_everything:
        return found
    inside = _within(column, attribute.type, attribute.domain)
    return None if inside is None else [*found, ~inside]


def _within(column: Column, type_: Type, values: ValueSet) -> Column | None:
    """Whether a column has one of the values; None where that is too long, or not exact, to say."""
    if isinstance(type_, Double | Timestamp):  # NaN and zones are looked at in Python
        return None
    if values.is_empty:
        return F.lit(False)
    listed = values.finite_ordinals(FEW)
    if listed is not None:
        return column.isin([type_.value(ordinal) for ordinal in listed])
    intervals = values.intervals
    if isinstance(type_, Boolean | String) or len(intervals) > FEW:
        return None
    return reduce(or_, (_between(column, type_, each) for each in intervals))


def _between(column: Column, type_: Type, interval: Interval) -> Column:
    found = column.isNotNull()
    if isinstance(interval.low, int):
        found &= column >= F.lit(type_.value(interval.low))
    if isinstance(interval.high, int):
        found &= column <= F.lit(type_.value(interval.high - 1))
    return found
