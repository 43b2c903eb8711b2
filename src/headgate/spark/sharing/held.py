"""Rows for many folders, held back by a task until they are worth a file."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa

from headgate.spark.streaming.staged import StagedFile

MOST_BYTES = 64 << 20  # that are held back


class HeldBack:
    """Tables by folder; one file is open at a time, however many folders there are.

    A folder without rows has no file.
    """

    def __init__(self, stage: Path, format: str) -> None:
        self._stage = stage
        self._format = format
        self._tables: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._files: defaultdict[str, list[str]] = defaultdict(list)
        self._bytes = 0

    def add(self, folder: str, table: pa.Table) -> None:
        if not table.num_rows:
            return
        self._tables[folder].append(table)
        self._bytes += table.nbytes
        if self._bytes > MOST_BYTES:
            self._write()

    def end(self) -> dict[str, list[str]]:
        """The names of all files by folder, on the disk now."""
        self._write()
        return dict(self._files)

    def _write(self) -> None:
        for folder, tables in self._tables.items():
            with StagedFile(self._stage, "rows", self._format) as file:
                file.write(pa.concat_tables(tables))
            self._files[folder].append(str(file.name))
        self._tables.clear()
        self._bytes = 0
