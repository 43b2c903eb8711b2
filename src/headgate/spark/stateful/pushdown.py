"""Predicate pushdown: Spark skips rows that a query cannot need, before they cross to Python.

Only where Spark's comparison equals ours: between a column of the declared type and constants of
that type. An invalid row is never skipped, unless invalid rows are skipped anyway.
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
from headgate.stateful.runtime.reduction import RequiredValues

MAX_LISTED_VALUES = 50  # or intervals, in one condition


def filter_needed_rows(
    frame: DataFrame,
    stream: Stream,
    names: Sequence[str],
    occurrences: Sequence[Mapping[str, RequiredValues]],
    *,
    with_invalid: bool,
) -> DataFrame:
    """Return the rows that some occurrence of the stream may need; all where that is not known.

    The columns of the frame are the attributes with these names.
    """
    columns = dict(zip(names, map(F.col, frame.columns), strict=True))
    types = {n: arrow_type(f.dataType) for n, f in zip(names, frame.schema.fields, strict=True)}
    declared = {attribute.name: attribute.type.arrow for attribute in stream}
    # a column of another type is converted in Python, so Spark would compare other values
    typed = {name for name in names if types[name] == declared.get(name)}
    wanted = [
        _join_conditions(_build_conditions(columns, typed, stream, needs)) for needs in occurrences
    ]
    if not wanted or any(condition is None for condition in wanted):
        return frame
    kept = [condition for condition in wanted if condition is not None]
    # an invalid row must reach Python, which raises: it is kept whatever else it holds
    if with_invalid:
        for name in names:
            invalid = _build_invalid(columns[name], stream, name) if name in typed else None
            if invalid is None:
                return frame
            kept += invalid
    return frame.where(reduce(or_, kept))


def _join_conditions(conditions: Iterator[Column]) -> Column | None:
    every = list(conditions)
    return reduce(and_, every) if every else None


def _build_conditions(
    columns: Mapping[str, Column],
    typed: set[str],
    stream: Stream,
    needs: Mapping[str, RequiredValues],
) -> Iterator[Column]:
    for name, need in needs.items():
        inside = (
            _build_membership(columns[name], stream[name].type, need.values)
            if name in typed
            else None
        )
        if inside is not None:
            yield inside | columns[name].isNull() if need.null else inside


def _build_invalid(column: Column, stream: Stream, name: str) -> list[Column] | None:
    """Return conditions under which a value is invalid; None where Spark cannot say."""
    attribute = stream[name]
    conditions = [] if attribute.nullable else [column.isNull()]
    if attribute.domain.is_everything:
        return conditions
    inside = _build_membership(column, attribute.type, attribute.domain)
    return None if inside is None else [*conditions, ~inside]


def _build_membership(column: Column, type_: Type, values: ValueSet) -> Column | None:
    """Return whether a column has one of the values; None where that is too long or not exact."""
    if isinstance(type_, Double | Timestamp):  # NaN and zones are looked at in Python
        return None
    if values.is_empty:
        return F.lit(False)
    ordinals = values.finite_ordinals(MAX_LISTED_VALUES)
    if ordinals is not None:
        return column.isin([type_.value(ordinal) for ordinal in ordinals])
    intervals = values.intervals
    if isinstance(type_, Boolean | String) or len(intervals) > MAX_LISTED_VALUES:
        return None
    return reduce(or_, (_build_range(column, type_, each) for each in intervals))


def _build_range(column: Column, type_: Type, interval: Interval) -> Column:
    condition = column.isNotNull()
    if isinstance(interval.low, int):
        condition &= column >= F.lit(type_.value(interval.low))
    if isinstance(interval.high, int):
        condition &= column <= F.lit(type_.value(interval.high - 1))
    return condition
