"""Query sets on real data, as the ASC paper has one on a census (section 6, D3).

There the set is Q2 of Table 1: 50 queries, 173 predicates, 15 p-attributes; but the census has only
10 attributes. Here are two data sets that have 15, network connections and flights, with queries
that describe some of their rows. A query has two predicates at least, since no value of some
attributes is rare.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.conjunctions import bind_queries
from benchmarks.workloads.selection_ranges import SelectionSpec, selection_usage
from benchmarks.workloads.selections import SELECTION_SETS
from examples.flights.prepare import read_flights
from headgate.errors import UsageError
from headgate.queries import Query
from headgate.schema import DOUBLE, INT, STRING, Attribute, Stream, Type

# Queries that describe rows of a table: each accepts a row that is there, and what is like it.
#
# In each of its attributes a query accepts the row's own value or, where that is a number, a
# range around it. Ends of ranges are quantiles, so a frequent value is an end often. Queries that
# more than a hundredth of the rows satisfy are drawn anew, so most rows match nothing, as when
# somebody watches for what is out of the ordinary.

SAMPLED = 5_000
MAX_SHARE = 0.01  # of the rows may satisfy a query
ATTEMPTS = 100
EVENNESS = 4.0  # of the widths in a query; the larger, the more alike

Ranks = npt.NDArray[np.int64]
Random = np.random.Generator


def describe_rows(table: pa.Table, spec: SelectionSpec, *, seed: int) -> list[str]:
    """Return WHERE clauses as specified, on a table of texts and numbers.

    How much the regions of an attribute differ is left to the data. Where attributes have so few
    values that no draw is rare enough, a query is the rarest that was drawn.

    >>> table = pa.table({"port": [80, 443, 8080] * 50, "peer": ["a", "b"] * 75})
    >>> describe_rows(table, SelectionSpec(2, 3, 2), seed=1)
    ["port = 80 AND peer = 'a'", "peer = 'a'"]
    """
    sample = _sample(table, spec)
    columns = [_Column.of(name, sample[name]) for name in sample.column_names]
    random = np.random.default_rng(seed)
    parts = ([columns[i] for i in np.flatnonzero(row)] for row in selection_usage(spec, random))
    return [_clause(part, spec.matching, random) for part in parts]


def _sample(table: pa.Table, spec: SelectionSpec) -> pa.Table:
    """Return rows without a NULL, spread evenly over the table."""
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
        """Return a range with this row's value that holds so wide a part of the rows by itself."""
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
        """Return the range as SQL; `strict` prefers < and > to <= and >=."""
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
    """Return the first attempt that few enough rows satisfy, or else the one of the fewest."""
    least, ranges = 1.0, list[_Range]()
    for _ in range(ATTEMPTS):
        drawn = _drawn(columns, matching, random)
        share = float(np.mean(np.all([part.holds() for part in drawn], axis=0)))
        if share <= least:
            least, ranges = share, drawn
        if least <= MAX_SHARE:
            break
    return " AND ".join(part.predicate(random.random() < 0.5) for part in ranges)


def _drawn(columns: list[_Column], matching: float, random: Random) -> list[_Range]:
    """Return ranges around the values of one row."""
    row = int(random.integers(len(columns[0].rank)))
    widths = matching ** random.dirichlet([EVENNESS] * len(columns))
    pairs = zip(columns, widths.tolist(), strict=True)
    return [column.around(row, width, random) for column, width in pairs]


# Network connections from NSL-KDD: 41 features of each, and whether it was an attack.
#
# The data set is not part of Headgate: give the directory that holds `fields.csv`, a line for
# each feature with its name and `symbolic` or `continuous`, and `train_20_percent.csv`, 25,192
# connections without a header, each with its features, a label and how difficult it is to
# classify.
#
# Tavallaee, Bagheri, Lu, Ghorbani: "A detailed analysis of the KDD CUP 99 data set".

FIELDS, CONNECTIONS = "fields.csv", "train_20_percent.csv"
LABEL, DIFFICULTY = "label", "difficulty"
SYMBOLIC, CONTINUOUS = "symbolic", "continuous"


def read_nsl_kdd(directory: str | PathLike[str]) -> tuple[Stream, pa.Table]:
    """Return the stream `connections`, and the connections in their order.

    What is symbolic is STRING. What is continuous is INT where all values are whole (where
    they are too large for that), and DOUBLE elsewhere.
    """
    from pyarrow import csv as arrow_csv

    folder = Path(directory)
    kinds = _kinds(_present(folder, FIELDS)) | {LABEL: SYMBOLIC, DIFFICULTY: CONTINUOUS}
    types: dict[str, pa.DataType] = {
        name: pa.string() if kind == SYMBOLIC else pa.float64() for name, kind in kinds.items()
    }
    file = _present(folder, CONNECTIONS)
    try:
        table = arrow_csv.read_csv(
            file,
            read_options=arrow_csv.ReadOptions(column_names=list(kinds)),
            convert_options=arrow_csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise UsageError(f"{file} does not fit {FIELDS} beside it: {error}") from None
    attributes = tuple(Attribute(name, _type(table[name])) for name in kinds)
    schema = pa.schema([(a.name, a.type.arrow) for a in attributes])
    return Stream("connections", attributes), table.cast(schema)


def _present(folder: Path, name: str) -> Path:
    file = folder / name
    if not file.is_file():
        raise UsageError(
            f"no {name} in {folder}; NSL-KDD is a directory with {FIELDS} and {CONNECTIONS}"
        )
    return file


def _kinds(file: Path) -> dict[str, str]:
    """Return the features by name, in order, and what kind of value each has."""
    with file.open(newline="") as lines:
        rows = list(csv.reader(lines))
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or row[1] not in (SYMBOLIC, CONTINUOUS):
            raise UsageError(
                f"{file}:{number}: {','.join(row)!r} is not a name and {SYMBOLIC} or {CONTINUOUS}"
            )
    return dict(rows)


def _type(column: pa.ChunkedArray[Any]) -> Type:
    if pa.types.is_string(column.type):
        return STRING
    values = column.to_numpy()
    return INT if np.array_equal(values, values.astype(np.int32)) else DOUBLE


CONNECTION_ATTRIBUTES = (
    "duration protocol_type service flag src_bytes dst_bytes hot count srv_count serror_rate "
    "same_srv_rate dst_host_count dst_host_srv_count dst_host_same_srv_rate "
    "dst_host_same_src_port_rate"
).split()
FLIGHT_ATTRIBUTES = (  # all but the year, which never changes, and those that repeat others
    "month day hour dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum "
    "origin dest air_time distance"
).split()
SPEC = replace(SELECTION_SETS["Q2"], fewest=2)


@dataclass(frozen=True)
class RealSelections:
    """Queries on a stream, and the rows that they were made for, in their order."""

    stream: Stream
    queries: list[Query]
    table: pa.Table


def select_connections(directory: str | PathLike[str], *, seed: int) -> RealSelections:
    """Return 50 queries on 15 features of the connections in a directory of NSL-KDD."""
    stream, table = read_nsl_kdd(directory)
    return _selections(stream, table, CONNECTION_ATTRIBUTES, seed)


def select_flights(count: int | None = None, *, seed: int) -> RealSelections:
    """Return 50 queries on 15 attributes of all flights, or of `count` over the year."""
    table = read_flights(count).select(FLIGHT_ATTRIBUTES)
    types = (STRING if pa.types.is_string(field.type) else INT for field in table.schema)
    stream = Stream("flights", tuple(map(Attribute, FLIGHT_ATTRIBUTES, types)))
    return _selections(stream, table, FLIGHT_ATTRIBUTES, seed)


def _selections(stream: Stream, table: pa.Table, names: list[str], seed: int) -> RealSelections:
    clauses = describe_rows(table.select(names), SPEC, seed=seed)
    return RealSelections(stream, bind_queries(stream, clauses, "q"), table)
