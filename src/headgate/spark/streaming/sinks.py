"""Where the staged rows of a batch end up: in the output's directories, on a screen, in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.spark.streaming.output import KINDS, STAGING, Span, place, remove

Staged = Mapping[str, Sequence[Path]]


class Sink(Protocol):
    """Takes the rows of one batch after the other.

    A batch that it took, but that was not logged because of a crash, comes again.
    """

    format: str
    stages: Path
    """Where the tasks may stage their files."""

    def take(self, batch: int, files: Staged) -> None:
        """Take over the files of a batch, by `matches` and `dead`."""

    def places(self) -> dict[str, Path]:
        """Where the rows can be found."""


class Directory:
    """Directories of Parquet or JSON-lines files (`output`)."""

    def __init__(self, root: Path, format: str) -> None:
        self.format = format
        self.stages = root / STAGING
        self.root = root

    def take(self, batch: int, files: Staged) -> None:
        for kind in KINDS:
            span = Span(batch, batch, self.root / kind)
            if files[kind]:
                place(files[kind], span, self.stages)
            elif span.path.exists():
                remove(span.path, self.stages)

    def places(self) -> dict[str, Path]:
        return {kind: self.root / kind for kind in KINDS if (self.root / kind).is_dir()}


class Screen:
    """Shows the first rows of each batch."""

    format = "parquet"

    def __init__(self, state: Path, rows: int, show: Callable[[str, pa.Table, int], None]) -> None:
        self.stages = state / STAGING
        self._rows = rows
        self._show = show

    def take(self, batch: int, files: Staged) -> None:
        del batch
        for kind in KINDS:
            if files[kind]:
                table = read_all(files[kind])
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
        for kind in KINDS:
            if files[kind]:
                self._tables[kind][batch] = read_all(files[kind])

    def places(self) -> dict[str, Path]:
        return {}

    def table(self, kind: str) -> pa.Table | None:
        """All `matches` or `dead` letters so far; None if there are none."""
        found = list(self._tables[kind].values())
        return pa.concat_tables(found, promote_options="default") if found else None


def read_all(files: Sequence[Path]) -> pa.Table:
    return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
