"""Rows of a join or of DISTINCT as a table with the names that the query gives its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headgate.bounded.running.weighted import Weighted
from headgate.errors import UsageError
from headgate.predicate import Column
from headgate.query import Query
from headgate.schema import Schema

MULTIPLICITY = "multiplicity"


def rows_of(query: Query, schema: Schema, columns: Sequence[Column], rows: Weighted) -> pa.Table:
    """The rows, with how often each of them is there."""
    del schema
    expressions = [o.expression for o in query.outputs] or list(columns)
    arrays = [rows.values[c] for c in expressions if isinstance(c, Column)]
    names = output_names(query, columns)
    return pa.Table.from_arrays([*arrays, pa.array(rows.count)], [*names, MULTIPLICITY])


def output_names(query: Query, columns: Sequence[Column]) -> list[str]:
    """A name for each column; with its stream where two would have the same."""
    outputs = query.outputs
    names = [o.name for o in outputs] if outputs else [c.name for c in columns]
    times = Counter(name.lower() for name in names)
    keys = [o.expression for o in outputs] if outputs else list(columns)
    found = [
        key.key if times[name.lower()] > 1 and isinstance(key, Column) else name
        for name, key in zip(names, keys, strict=True)
    ]
    if len({name.lower() for name in found}) < len(found) or MULTIPLICITY in found:
        raise UsageError(f"`{query.id}` has columns of the same name; name them with AS")
    return found


def expanded(table: pa.Table) -> pa.Table:
    """Every row as often as it is there."""
    times = table.column(MULTIPLICITY).to_numpy()
    rows = np.repeat(np.arange(table.num_rows), times)
    return table.drop_columns([MULTIPLICITY]).take(rows)
