"""Queries that describe rows of a table: each accepts a row that is there, and what is like it.

In each of its attributes a query accepts the row's own value or, where that is a number, a range
around it. Ends of ranges are quantiles, so a frequent value is an end often. Queries that more than
a hundredth of the rows satisfy are drawn anew, so most rows match nothing, as when somebody watches
for what is out of the ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.selection_usage import SelectionSpec, selection_usage
from headgate.errors import UsageError

SAMPLED = 5_000
MOST = 0.01  # of the rows may satisfy a query
ATTEMPTS = 100
EVENNESS = 4.0  # of the widths in a query; the larger, the more alike

Ranks = npt.NDArray[np.int64]
Random = np.random.Generator


def describing_clauses(table: pa.Table, spec: SelectionSpec, *, seed: int) -> list[str]:
    """WHERE clauses as specified, on a table of texts and numbers with as many columns.

    How much the regions of an attribute differ is left to the data. Where attributes have so few
    values that no draw is rare enough, a query is the rarest that was drawn.

    >>> table = pa.table({"port": [80, 443, 8080] * 50, "peer": ["a", "b"] * 75})
    >>> describing_clauses(table, SelectionSpec(2, 3, 2), seed=1)
    ["port = 80 AND peer = 'a'", "peer = 'a'"]
    """
    sample = _sample(table, spec)
    columns = [_Column.of(name, sample[name]) for name in sample.column_names]
    random = np.random.default_rng(seed)
    parts = ([columns[i] for i in np.flatnonzero(row)] for row in selection_usage(spec, random))
    return [_clause(part, spec.matching, random) for part in parts]


def _sample(table: pa.Table, spec: SelectionSpec) -> pa.Table:
    """Rows without a NULL, spread evenly over the table."""
    if spec.attributes != table.num_columns:
        raise UsageError(
            f"{spec.attributes} p-attributes of a table with {table.num_columns} columns"
        )
    rows = table.drop_null()
    if rows.num_rows == 0:
        raise UsageError("no row to describe: each has a NULL")
    taken = min(SAMPLED, rows.num_rows)
    return rows.take(np.arange(taken) * rows.num_rows // taken)


@dataclass(frozen=True)
class _Column:
    """The values of a column, ascending; which of them each row has; and the same, sorted."""

    name: str
    values: list[Any]
    rank: Ranks
    ascending: Ranks

    @staticmethod
    def of(name: str, column: pa.ChunkedArray[Any]) -> _Column:
        values, rank = np.unique(column.to_numpy(), return_inverse=True)
        return _Column(name, values.tolist(), rank, np.sort(rank))

    def around(self, row: int, width: float, random: Random) -> _Range:
        """A range with this row's value, and so wide a part of the rows if it were alone there."""
        rank = int(self.rank[row])
        if isinstance(self.values[rank], str):
            return _Range(self, rank, rank)
        rows = len(self.ascending)
        place = random.uniform(*np.searchsorted(self.ascending, (rank, rank + 1)))
        start = place - random.random() * width * rows
        ends = np.clip((start, start + width * rows), 0, rows - 1).astype(np.int64)
        low, high = self.ascending[ends].tolist()
        everything = low == 0 and high == len(self.values) - 1
        return _Range(self, rank, rank) if everything else _Range(self, low, high)


@dataclass(frozen=True)
class _Range:
    """That a column has one of its values from number `low` to `high`."""

    column: _Column
    low: int
    high: int

    def holds(self) -> npt.NDArray[np.bool_]:
        return (self.low <= self.column.rank) & (self.column.rank <= self.high)

    def predicate(self, strict: bool) -> str:
        """As SQL; `strict` prefers < and > to <= and >=."""
        name, values = self.column.name, self.column.values
        low, high = values[self.low], values[self.high]
        if self.low == self.high:
            return f"{name} = {_literal(low)}"
        if self.low == 0:
            return f"{name} < {values[self.high + 1]}" if strict else f"{name} <= {high}"
        if self.high == len(values) - 1:
            return f"{name} > {values[self.low - 1]}" if strict else f"{name} >= {low}"
        return f"{name} BETWEEN {low} AND {high}"


def _literal(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _clause(columns: list[_Column], matching: float, random: Random) -> str:
    """Of so many attempts the first that few enough rows satisfy, or else that the fewest do."""
    least, found = 1.0, list[_Range]()
    for _ in range(ATTEMPTS):
        drawn = _drawn(columns, matching, random)
        share = float(np.mean(np.all([part.holds() for part in drawn], axis=0)))
        if share <= least:
            least, found = share, drawn
        if least <= MOST:
            break
    return " AND ".join(part.predicate(random.random() < 0.5) for part in found)


def _drawn(columns: list[_Column], matching: float, random: Random) -> list[_Range]:
    """Ranges around the values of one row."""
    row = int(random.integers(len(columns[0].rank)))
    widths = matching ** random.dirichlet([EVENNESS] * len(columns))
    pairs = zip(columns, widths.tolist(), strict=True)
    return [column.around(row, width, random) for column, width in pairs]
