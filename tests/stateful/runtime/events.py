"""Events that take part in a query, with values where errors live among them.

Rows of random values seldom join. These are drawn, most of them, from the values that a case of the
query leaves to each attribute, and few different ones, so that many are equal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headgate.predicate import Column, Row
from headgate.queries import Query
from headgate.schema import BIGINT, DOUBLE, STRING, Attribute, DecimalType, Schema, Stream
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.plan import build_runnable_plan
from tests.stateful.random_sql import Statement, rows

Event = tuple[str, Row]
Batch = dict[str, list[Row]]

HOSTILE: dict[Any, Sequence[Any]] = {
    BIGINT: (2**53, 2**53 + 1, -(2**53) - 1),
    DOUBLE: (math.nan, -0.0, math.inf, -math.inf, 2.0**53, 5e-324, 0.1),
    STRING: ("é", "e\u0301", "𝄞", "\uffff", "a\u0000", "ß"),
    DecimalType(30, 2): (Decimal(10**28 - 1), Decimal("-0.01"), Decimal("9007199254740993.00")),
    DecimalType(38, 4): (Decimal(10**34 - 1), Decimal("-0.0001"), Decimal("9007199254740993")),
}


def events_of(
    statement: Statement,
    numbers: random.Random,
    count: int,
    streams: Sequence[str] | None = None,
) -> list[Event]:
    """So many events of these streams, or of all streams of a query that is run."""
    near = tuple(numbers.choices(statement.near, k=numbers.choice((2, 3, 5))))
    wanted = replace(statement, near=near)
    streams = streams_of(statement.query) if streams is None else streams
    branches = build_runnable_plan(statement.query).branches
    return [next(_events(wanted, numbers, numbers.choice(streams), branches)) for _ in range(count)]


def batches(events: Sequence[Event], numbers: random.Random) -> Iterator[Batch]:
    """Events in batches of one row to all of them; now and then a stream has none."""
    size = numbers.choice((1, 4, 15, 60))
    for start in range(0, len(events), size):
        batch: Batch = {events[0][0]: []} if numbers.random() < 0.2 else {}
        for stream, row in events[start : start + size]:
            batch.setdefault(stream, []).append(row)
        yield batch


def in_some_form(stream: str, of: list[Row], schema: Schema, numbers: random.Random) -> Any:
    """Rows as a list or as an Arrow table."""
    if numbers.random() < 0.5:
        return of
    declared = schema.stream(stream)
    return pa.table({a.name: pa.array([row[a.name] for row in of], a.type.arrow) for a in declared})


def streams_of(query: Query) -> list[str]:
    return list(dict.fromkeys(source.stream.name for source in query.sources))


def _events(
    statement: Statement, numbers: random.Random, stream: str, branches: Sequence[Branch]
) -> Iterator[Event]:
    branch = numbers.choice(branches) if branches and numbers.random() < 0.9 else None
    occurrences = (
        [] if branch is None else [s for s in branch.query.sources if s.stream.name == stream]
    )
    if branch is None or not occurrences:
        result = rows(statement, numbers, [stream], 1)
    else:
        alias = numbers.choice(occurrences).alias if len(branch.query.sources) > 1 else ""
        result = _taking_part(statement, numbers, stream, branch, alias)
    declared = statement.schema.stream(stream)
    for _, row in result:
        yield stream, {a.name: _hostile(a, row[a.name], numbers) for a in declared}


def _taking_part(
    statement: Statement, numbers: random.Random, stream: str, branch: Branch, alias: str
) -> Iterator[Event]:
    """A row of the values that a case leaves to an occurrence of its stream."""
    declared = statement.schema.stream(stream)
    columns = {a.name: Column(a.name, a.type, alias) for a in declared}
    left = {name: branch.reach.get(column) for name, column in columns.items()}
    narrowed = (replace(a, domain=left[a.name] or a.domain) for a in declared)
    schema = Schema((Stream(stream, tuple(narrowed)),))
    for _, row in rows(replace(statement, schema=schema), numbers, [stream], 1):
        nulls = {a.name: None for a in declared if columns[a.name] in branch.case.nulls}
        nulls |= {a.name: None for a in declared if a.nullable and numbers.random() < 0.05}
        yield stream, {**row, **nulls}


def _hostile(attribute: Attribute, value: Any, numbers: random.Random) -> Any:
    options = HOSTILE.get(attribute.type)
    if options is None or numbers.random() > 0.04:
        return value
    other = numbers.choice(options)
    return other if attribute.type.ordinal(other) in attribute.domain else value
