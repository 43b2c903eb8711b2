"""Rows of a join or of DISTINCT as a table with the names that the query gives its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.bounded.running.weighted import Weighted
from headgate.errors import UsageError
from headgate.predicate import Column
from headgate.query import Query

MULTIPLICITY = "multiplicity"


def rows_of(query: Query, columns: Sequence[Column], rows: Weighted) -> pa.Table:
    """The rows, with how often each of them is there, unless each is there once."""
    expressions = [o.expression for o in query.outputs] or list(columns)
    arrays: list[pa.Array[Any]] = [rows.values[c] for c in expressions if isinstance(c, Column)]
    names = output_names(query, columns)
    if not query.distinct:
        arrays.append(pa.array(rows.count))
        names.append(MULTIPLICITY)
    return pa.Table.from_arrays(arrays, names)


def output_names(query: Query, columns: Sequence[Column]) -> list[str]:
    """A name for each column; of `*`, with its stream where two have the same."""
    if query.outputs:
        names = [output.name for output in query.outputs]
    else:
        times = Counter(column.name.lower() for column in columns)
        names = [c.key if times[c.name.lower()] > 1 else c.name for c in columns]
    if not query.distinct and MULTIPLICITY in map(str.lower, names):
        raise UsageError(
            f"`{query.id}` has a column `{MULTIPLICITY}`, which is how often a row is there; "
            "give it another name with AS"
        )
    return names


def expanded(table: pa.Table) -> pa.Table:
    """Every row as often as it is there."""
    times = table.column(MULTIPLICITY).to_numpy()
    rows = np.repeat(np.arange(table.num_rows), times)
    return table.drop_columns([MULTIPLICITY]).take(rows)
