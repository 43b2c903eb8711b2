"""Where the staged rows of a batch end up: in the output's directories, on a screen, in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.spark.job.commit.output import (
    ANSWERS,
    KINDS,
    STAGING,
    TRAFFIC,
    UNBOUNDED,
    Span,
    folders,
    place,
    remove,
)
from headgate.spark.job.continuous_query import id_of

Staged = Mapping[str, Sequence[Path]]
"""The files of a batch by folder: `matches`, `dead`, and one for each query that gave answers."""


class Sink(Protocol):
    """Takes the rows of one batch after the other.

    A batch that it took, but that was not logged because of a crash, comes again.
    """

    format: str
    stages: Path
    """Where the tasks may stage their files."""

    def take(self, batch: int, files: Staged) -> None:
        """Take over the files of a batch."""

    def add(self, batch: int, folder: str, files: Sequence[Path]) -> None:
        """Take over what one folder has of a batch."""

    def places(self) -> dict[str, Path]:
        """Where the rows can be found."""


class Directory:
    """Directories of Parquet or JSON-lines files (`output`)."""

    def __init__(self, root: Path, format: str) -> None:
        self.format = format
        self.stages = root / STAGING
        self.root = root

    def take(self, batch: int, files: Staged) -> None:
        for folder in dict.fromkeys((*folders(self.root), *files)):
            self.add(batch, folder, files.get(folder, ()))

    def add(self, batch: int, folder: str, files: Sequence[Path]) -> None:
        span = Span(batch, batch, self.root / folder)
        if files:
            place(files, span, self.stages)
        elif span.path.exists():
            remove(span.path, self.stages)

    def places(self) -> dict[str, Path]:
        kinds = (*KINDS, ANSWERS, UNBOUNDED, TRAFFIC)
        return {kind: self.root / kind for kind in kinds if (self.root / kind).is_dir()}


class Screen:
    """Shows the first rows of each batch."""

    format = "parquet"

    def __init__(self, state: Path, rows: int, show: Callable[[str, pa.Table, int], None]) -> None:
        self.stages = state / STAGING
        self._rows = rows
        self._show = show

    def take(self, batch: int, files: Staged) -> None:
        for folder, staged in files.items():
            self.add(batch, folder, staged)

    def add(self, batch: int, folder: str, files: Sequence[Path]) -> None:
        del batch
        if files and folder != TRAFFIC:
            table = read_all(files)
            kind = folder if folder in KINDS else ANSWERS
            self._show(kind, table.slice(0, self._rows), table.num_rows)

    def places(self) -> dict[str, Path]:
        return {}


class Memory:
    """Keeps all rows: for tests and notebooks, on small streams."""

    format = "parquet"

    def __init__(self, state: Path) -> None:
        self.stages = state / STAGING
        self._tables: dict[str, dict[int, pa.Table]] = {kind: {} for kind in KINDS}

    def take(self, batch: int, files: Staged) -> None:
        for folder, staged in files.items():
            self.add(batch, folder, staged)

    def add(self, batch: int, folder: str, files: Sequence[Path]) -> None:
        if files:
            self._tables.setdefault(folder, {})[batch] = read_all(files)

    def places(self) -> dict[str, Path]:
        return {}

    def table(self, folder: str) -> pa.Table | None:
        """All rows so far that have the columns of the last ones; None if there are none."""
        found = list(self._tables[folder].values())
        alike = [table for table in found if table.schema == found[-1].schema]
        return pa.concat_tables(alike) if found else None

    def answers(self) -> dict[str, pa.Table]:
        """The answers of each query that gave any."""
        folders = [name for name in self._tables if name not in (*KINDS, TRAFFIC)]
        tables = {folder: self.table(folder) for folder in folders}
        return {id_of(folder): table for folder, table in tables.items() if table is not None}


def read_all(files: Sequence[Path]) -> pa.Table:
    return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
