"""Queries as rows of `.jsonl`, `.csv` and `.parquet` files and of tables in memory.

A row has `id`, `stream`, `where` and optional `metadata`; a file may have other columns too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.errors import QuerySetError, SqlError, SqlSyntaxError

COLUMNS = ("id", "stream", "where", "metadata")
# The key under which `csv` puts the fields beyond the header.
_EXCESS_FIELDS = "(too many)"
_TABLE = "the table of queries"


@dataclass(slots=True)
class Row:
    """A query as a row of a file or table; `line` counts from 1."""

    line: int
    id: Any
    where: Any
    stream: Any = None
    metadata: Any = None
    problem: SqlError | None = None


def read_file_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, by its ending."""
    readers = {".jsonl": _read_json, ".ndjson": _read_json, ".csv": _read_csv}
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.suffix not in readers:
        hint = "queries come as .sql, .jsonl, .csv or .parquet"
        raise QuerySetError(f"{path}: what is a `{path.suffix}` file? {hint}")
    return readers[path.suffix](path)


def read_table_rows(frame: Any) -> Iterator[Row]:
    """Yield the rows of a DataFrame, an Arrow table or a list of mappings.

    Libraries are known by what they offer: Spark by `toArrow`, pandas by `notna`, and all others,
    such as Polars, by Arrow's own protocol.
    """
    if isinstance(frame, list | tuple):
        return map(_make_list_row, count(1), frame)
    if hasattr(frame, "toArrow"):
        records = _select_columns(frame, frame.columns).toArrow().to_pylist(maps_as_pydicts="lossy")
    elif hasattr(frame, "notna"):
        _check_columns(_TABLE, list(frame.columns))
        # values as they are, whatever mixture of types a column holds
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    elif hasattr(frame, "__arrow_c_stream__"):
        table = pa.table(frame)
        used = _select_columns(table, table.column_names)
        records = used.to_pylist(maps_as_pydicts="lossy")
    else:
        raise QuerySetError(
            f"queries cannot be read from {type(frame).__name__}; give a DataFrame of Spark, "
            "pandas or Polars, a pyarrow Table or a list of dicts"
        )
    return map(_make_row, count(1), records)


def _select_columns(frame: Any, names: Sequence[str]) -> Any:
    """Return a frame with the used columns only: no others leave Spark or Arrow."""
    _check_columns(_TABLE, names)
    return frame.select([name for name in COLUMNS if name in names])


def _make_list_row(number: int, record: object) -> Row:
    if isinstance(record, Mapping):
        return _make_row(number, record)
    hint = 'such as {"id": "big", "where": "qty > 100"}'
    problem = SqlSyntaxError("a row is a mapping", text=str(record)[:100], hint=hint)
    return Row(number, None, None, problem=problem)


def _read_json(path: Path) -> Iterator[Row]:
    scan = json.JSONDecoder().raw_decode
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            # most lines are an object and a line feed; all others are left to `json.loads`
            try:
                record, end = scan(line)
                if type(record) is dict and line[end:] == "\n":
                    yield _make_row(number, record)
                    continue
            except (ValueError, RecursionError):
                pass
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            # A row that cannot be read is a row with a problem, so that the next one is read.
            except (ValueError, RecursionError) as error:
                problem = SqlSyntaxError(f"not JSON: {error}", text=line, topic="not JSON")
                yield Row(number, None, None, problem=problem)
                continue
            if not isinstance(record, dict):
                problem = SqlSyntaxError("a JSON object is expected", text=line)
                yield Row(number, None, None, problem=problem)
                continue
            yield _make_row(number, record)


def _read_csv(path: Path) -> Iterator[Row]:
    with open_text(path, newline="") as file:
        reader = csv.DictReader(file, restkey=_EXCESS_FIELDS)
        _check_columns(path, reader.fieldnames or ())
        while True:
            # a record may take several lines: it is known by its first
            number = reader.line_num + 1
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(number, None, None, problem=SqlSyntaxError(f"not CSV: {error}"))
                continue
            if _EXCESS_FIELDS in record:
                problem = SqlSyntaxError("the row has more fields than the header")
                yield Row(number, record["id"], None, problem=problem)
                continue
            # CSV has no NULL; an empty field is a missing value.
            yield _make_row(number, {key: value or None for key, value in record.items()})


def _read_parquet(path: Path) -> Iterator[Row]:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise QuerySetError(f"{path}: not a Parquet file ({error})") from None
    _check_columns(path, file.schema_arrow.names)
    number = 0
    # Batch by batch, so that only a part of the file exists as Python objects.
    for batch in file.iter_batches():
        for record in batch.to_pylist():
            number += 1
            yield _make_row(number, record)


def _make_row(number: int, record: Mapping[str, Any]) -> Row:
    get = record.get
    return Row(number, get("id"), get("where"), get("stream"), get("metadata"))


def _check_columns(source: Path | str, names: Any) -> None:
    for needed in ("id", "where"):
        if needed not in names:
            present = ", ".join(map(str, names)) or "none"
            raise QuerySetError(f"{source}: a column `{needed}` is missing; it has {present}")


@contextmanager
def open_text(path: Path, newline: str | None = None) -> Iterator[Any]:
    """Open a file of UTF-8 text; what is wrong with it is a QuerySetError."""
    try:
        # `utf-8-sig` drops the byte order mark that some spreadsheets write.
        file = path.open(encoding="utf-8-sig", newline=newline)
    except OSError as error:
        raise QuerySetError(f"{path}: cannot be read ({error.strerror})") from None
    with file:
        # Decoding fails while the caller reads, inside this block.
        try:
            yield file
        except UnicodeDecodeError as error:
            raise QuerySetError(f"{path}: not UTF-8 ({error.reason})") from None
