"""The relational answer of a query over rows: the obvious version, from the definition.

"Characterizing Memory Requirements …", section 3.2: at every moment the answer of a continuous
query is the answer over all rows so far; of a windowed stream only its last rows count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from headgate.predicate import Column, Row, evaluate
from headgate.queries import Aggregate, Query
from headgate.stateful.analysis.case import list_output_columns

Streams = Mapping[str, Sequence[Row]]
AnswerRows = Mapping[Hashable, Hashable]


class NotComputable(ValueError):
    """There is no definition to compute a declared aggregate by."""


def compute_answer(query: Query, streams: Streams) -> AnswerRows:
    """Return the rows of the answer with their multiplicities, or the groups with their aggregates.

    Values stand as ordinals of their types, under which equal values are equal: NaN is itself,
    −0.0 is 0.0. An aggregate without GROUP BY has one group, as in SQL.
    """
    columns = list_output_columns(query)
    if query.kind == "aggregate":
        return _aggregate_groups(query, columns, iter_joined_rows(query, streams))
    rows: Counter[Hashable] = Counter(
        _list_ordinals(columns, row) for row in iter_joined_rows(query, streams)
    )
    return dict.fromkeys(rows, 1) if query.distinct else rows


def iter_joined_rows(query: Query, streams: Streams) -> Iterator[Row]:
    """Yield every combination of rows for which the condition is TRUE."""
    # One list of rows for each source; of a windowed source only its last rows.
    choices = []
    for source in query.sources:
        rows = streams.get(source.stream.name, ())
        choices.append(rows if source.rows is None else rows[-source.rows :])
    for choice in product(*choices):
        row = combine_rows(query, choice)
        if evaluate(query.where, row) is True:
            yield row


def combine_rows(query: Query, choice: Sequence[Row]) -> Row:
    """Return a row of each source as one row, under the keys of the query's columns."""
    if len(choice) == 1:
        return choice[0]
    return {
        f"{source.alias}.{name}": value
        for source, row in zip(query.sources, choice, strict=True)
        for name, value in row.items()
    }


def _list_ordinals(columns: Iterable[Column], row: Row) -> tuple[Hashable, ...]:
    return tuple(_get_ordinal(column, row) for column in columns)


def _get_ordinal(column: Column, row: Row) -> Hashable:
    value = row.get(column.key)
    return None if value is None else column.type.ordinal(value)


def _aggregate_groups(query: Query, columns: tuple[Column, ...], rows: Iterable[Row]) -> AnswerRows:
    # By group: its rows. Without GROUP BY there is one group, even where there are no rows.
    groups: dict[Hashable, list[Row]] = {} if columns else {(): []}
    for row in rows:
        groups.setdefault(_list_ordinals(columns, row), []).append(row)
    expressions = (o.expression for o in query.outputs)
    aggregates = [a for a in expressions if isinstance(a, Aggregate)]
    return {
        group: tuple(_aggregate(aggregate, members) for aggregate in aggregates)
        for group, members in groups.items()
    }


def _aggregate(aggregate: Aggregate, rows: list[Row]) -> Hashable:
    """Return an aggregate over rows, NULLs left out: exact, an average as a fraction."""
    if aggregate.argument is None:
        return len(rows)
    column, function = aggregate.argument, aggregate.function
    ordinals: list[Any] = [o for o in (_get_ordinal(column, row) for row in rows) if o is not None]
    if aggregate.distinct:
        ordinals = list(set(ordinals))
    if function == "COUNT":
        return len(ordinals)
    if not ordinals:
        return None
    if function in ("MIN", "MAX"):
        least: Hashable = min(ordinals) if function == "MIN" else max(ordinals)
        return least
    if aggregate.declared is not None:
        raise NotComputable(f"{function} is declared, not defined")
    # Sorted ordinals, so that the middle of the values is the median.
    values = [column.type.value(ordinal) for ordinal in sorted(ordinals)]
    if function == "MEDIAN":
        return _divide(_sum((values[(len(values) - 1) // 2], values[len(values) // 2])), 2)
    return _divide(_sum(values), len(values) if function == "AVG" else 1)


def _sum(values: Iterable[Any]) -> Fraction | float:
    """Return the exact sum; a float where infinities or NaN take part."""
    numbers = list(values)
    special = [n for n in numbers if isinstance(n, float) and not math.isfinite(n)]
    return sum(special) if special else sum(map(Fraction, numbers), Fraction())


def _divide(total: Fraction | float, count: int) -> Hashable:
    """Return the quotient, with NaN as a text, since NaN is not equal to itself."""
    if isinstance(total, float):
        return "NaN" if math.isnan(total) else total
    return total / count
