"""Files that a task writes: under names of their own, on the disk when they are closed.

A task may be tried more than once, and killed at any time, so no two tries share a file. Only the
files that a successful try reports are placed into the output; the others go with the stage.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.events.json_text import as_json

FORMATS = ("parquet", "jsonl")


class _Sheet(Protocol):
    """An open file of rows."""

    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class StagedFile:
    """A file of rows in a stage, created with its first row; a file without rows does not exist."""

    def __init__(self, stage: Path, kind: str, format: str) -> None:
        self._path = stage / f"{kind}-{uuid.uuid4().hex}.{format}"
        self._format = format
        self._file: BinaryIO | None = None
        self._sheet: _Sheet | None = None
        self.rows = 0

    @property
    def name(self) -> str | None:
        """The name of the file, if there is one."""
        return self._path.name if self.rows else None

    def write(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        if self._sheet is None:
            self._file = self._path.open("wb")
            parquet = self._format == "parquet"
            self._sheet = _parquet(self._file, table.schema) if parquet else _JsonLines(self._file)
        self._sheet.write(table)
        self.rows += table.num_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sheet is None or self._file is None:
            return
        with self._file:
            self._sheet.close()
            self._file.flush()
            os.fsync(self._file.fileno())


def _parquet(file: BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(file, schema, compression="zstd", store_schema=False)


class _JsonLines:
    """A JSON object a line, whose values read back as they were."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, table: pa.Table) -> None:
        self._file.writelines(as_json(row).encode() + b"\n" for row in table.to_pylist())

    def close(self) -> None:
        pass
