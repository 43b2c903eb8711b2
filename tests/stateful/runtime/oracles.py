"""What the answer of a query is over all rows so far: by DuckDB, and from the definition.

Both give the answer as rows of ordinals with their multiplicities, or as groups with what the
aggregates are in their own types.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa

from headgate.predicate import Compare, Row, iter_atoms
from headgate.queries import Aggregate, Query, Source
from headgate.schema import DecimalType, Double, Integer, Schema, Stream, Timestamp, Type
from headgate.sql import render_select
from headgate.stateful.analysis.relational_answer import compute_answer

Key = tuple[Any, ...]
RelationalAnswer = Mapping[Key, Any]
"""A multiplicity for each row, or the aggregates of each group."""

WIDE = Context(prec=2000)


class Rows:
    """All rows that came, stream by stream."""

    def __init__(self, schema: Schema) -> None:
        self.of: dict[str, list[Row]] = {stream.name: [] for stream in schema}

    def add(self, stream: str, rows: Iterable[Row]) -> None:
        self.of[stream] += rows

    def seen_by(self, source: Source) -> list[Row]:
        rows = self.of[source.stream.name]
        return rows if source.rows is None else rows[-source.rows :]


class Duck:
    """The answer by DuckDB, which is told only the rows that count."""

    def __init__(self, query: Query, schema: Schema) -> None:
        self.query = query
        self.schema = schema
        self.duck = duckdb.connect()
        named = (
            replace(s, stream=Stream(f"table_of_{s.alias}", ()), rows=None) for s in query.sources
        )
        self.select = render_select(replace(query, sources=tuple(named)))

    def answer(self, rows: Rows) -> RelationalAnswer:
        for source in self.query.sources:
            stream = self.schema.stream(source.stream.name)
            seen = rows.seen_by(source)
            table = pa.table(
                {
                    a.name: pa.array([_naive(row[a.name]) for row in seen], _arrow(a.type))
                    for a in stream
                }
            )
            self.duck.register(f"table_of_{source.alias}", table)
        return to_answer(self.query, self.duck.execute(self.select).fetchall())


def defined(query: Query, rows: Rows) -> RelationalAnswer:
    """The answer from the definition, with aggregates as their types have them."""
    exact: Any = compute_answer(query, rows.of)
    if query.kind != "aggregate":
        return Counter(exact)
    aggregates = [o.expression for o in query.outputs if isinstance(o.expression, Aggregate)]
    return {
        group: tuple(shown(a, value) for a, value in zip(aggregates, values, strict=True))
        for group, values in exact.items()
    }


def shown(aggregate: Aggregate, exact: Any) -> Any:
    """A result in its type: the nearest double, or a decimal rounded half away from zero."""
    type_ = aggregate.type
    if exact is None or aggregate.function in ("MIN", "MAX"):
        return exact
    if isinstance(type_, Double):
        return type_.ordinal(_nearest(exact))
    if isinstance(type_, DecimalType):
        quotient = WIDE.divide(Decimal(exact.numerator), Decimal(exact.denominator))
        unit = Decimal(1).scaleb(-type_.scale)
        return type_.ordinal(quotient.quantize(unit, ROUND_HALF_UP, WIDE))
    assert exact == int(exact)
    return int(exact)


def _nearest(exact: Fraction | float | str) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)  # type: ignore[arg-type]


def to_answer(query: Query, rows: Iterable[Sequence[Any]]) -> RelationalAnswer:
    """Rows of values as an answer; of groups, each must be there once."""
    outputs = [output.expression for output in query.outputs]
    grouped = [at for at, o in enumerate(outputs) if not isinstance(o, Aggregate)]
    others = [at for at, o in enumerate(outputs) if isinstance(o, Aggregate)]
    keys: Counter[Key] = Counter()
    groups: dict[Key, Key] = {}
    for row in rows:
        key = tuple(_ordinal(outputs[at].type, row[at]) for at in grouped)
        keys[key] += 1
        groups[key] = tuple(_ordinal(outputs[at].type, row[at]) for at in others)
    if query.kind != "aggregate":
        return keys
    assert all(times == 1 for times in keys.values())
    return groups


def _ordinal(type_: Type, value: Any) -> Any:
    """The ordinal, also of a value that DuckDB gives in a type of its own."""
    if value is None:
        return None
    if isinstance(value, datetime) and isinstance(type_, Timestamp):
        return type_.ordinal(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(type_, Integer):
        assert value == int(value)
        return int(value)
    if isinstance(type_, Double):
        return type_.ordinal(float(value))
    if isinstance(type_, DecimalType) and isinstance(value, float):
        return int(Fraction(value) * 10**type_.scale)
    return type_.ordinal(value)


def agree(query: Query, one: RelationalAnswer, two: RelationalAnswer, *, rounded: bool) -> bool:
    """Are two answers the same? Where one is `rounded`, so may be what was divided or is double."""
    if query.kind != "aggregate" or not rounded:
        return dict(one) == dict(two)
    aggregates = [o.expression for o in query.outputs if isinstance(o.expression, Aggregate)]
    return one.keys() == two.keys() and all(
        _is_near(aggregate, left, right)
        for key in one
        for aggregate, left, right in zip(aggregates, one[key], two[key], strict=True)
    )


def _is_near(aggregate: Aggregate, one: Any, two: Any) -> bool:
    """DuckDB adds doubles one by one, averages as doubles, and halves between infinities."""
    is_double = isinstance(aggregate.type, Double)
    if one == two or one is None or two is None or aggregate.function in ("MIN", "MAX", "COUNT"):
        return bool(one == two)
    if not is_double and aggregate.function != "AVG":
        return False
    left, right = (aggregate.type.value(each) for each in (one, two))
    left, right = float(left), float(right)  # type: ignore[arg-type]
    if aggregate.function == "MEDIAN" and not math.isfinite(left):
        return True
    return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-4 if not is_double else 1e-9)


def is_beyond_duckdb(query: Query, text: str) -> bool:
    """Its days begin in UTC, it widens to DOUBLE, and rounds medians of decimals."""
    outputs = (o.expression for o in query.outputs)
    medians = (a for a in outputs if isinstance(a, Aggregate) and a.function == "MEDIAN")
    halved = any(a.argument and isinstance(a.argument.type, DecimalType) for a in medians)
    compared = (a for a in iter_atoms(query.where) if isinstance(a, Compare))
    widened = any(
        isinstance(c.left.type, Double) != isinstance(c.right.type, Double) for c in compared
    )
    return halved or widened or "TIME ZONE" in text


def _arrow(type_: Type) -> pa.DataType:
    return pa.timestamp("us") if isinstance(type_, Timestamp) else type_.arrow


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
