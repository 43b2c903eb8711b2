"""Rows of a join or of DISTINCT as a table with the names that the query gives its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.errors import Overflow, UsageError
from headgate.predicate import Column
from headgate.queries import Query
from headgate.stateful.runtime.weighted import Weighted

MULTIPLICITY = "multiplicity"
MOST_EXPANDED = 100_000_000


def rows_of(query: Query, columns: Sequence[Column], rows: Weighted, *, expand: bool) -> pa.Table:
    """The rows; those of a join with how often each is there, or each as often as it is there."""
    expressions = [o.expression for o in query.outputs] or list(columns)
    arrays: list[pa.Array[Any]] = [rows.values[c] for c in expressions if isinstance(c, Column)]
    names = output_names(query, columns)
    if query.distinct:
        return pa.Table.from_arrays(arrays, names)
    if expand:
        if int(rows.count.sum(dtype=object)) > MOST_EXPANDED:
            raise Overflow(
                f"`{query.id}` gives more than {MOST_EXPANDED:,} rows at once; "
                "take them with their multiplicity, or push less at once"
            )
        times = np.repeat(np.arange(len(rows)), rows.count)
        return pa.Table.from_arrays([array.take(times) for array in arrays], names)
    if MULTIPLICITY in map(str.lower, names):
        raise UsageError(
            f"`{query.id}` has a column `{MULTIPLICITY}`, which is how often a row is there; "
            "give it another name with AS, or expand rows"
        )
    return pa.Table.from_arrays([*arrays, pa.array(rows.count)], [*names, MULTIPLICITY])


def output_names(query: Query, columns: Sequence[Column]) -> list[str]:
    """A name for each column; of `*`, with its stream where two have the same."""
    if query.outputs:
        return [output.name for output in query.outputs]
    times = Counter(column.name.lower() for column in columns)
    return [c.key if times[c.name.lower()] > 1 else c.name for c in columns]
