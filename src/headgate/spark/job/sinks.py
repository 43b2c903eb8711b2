"""Where the staged rows of a batch go: into the output's directories, on a console, into memory.

To add a sink, write a class with the methods of `Sink`, give it a kind in `config_file`, and open
it in `open_sink`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.spark.job.commit.output import (
    ANSWERS,
    DEAD,
    EVENT_FOLDERS,
    MATCHES,
    STAGING,
    TRAFFIC,
    UNBOUNDED,
    Part,
    Span,
    decode_folder,
    list_folders,
    name_parts,
    place_parts,
    remove_directory,
)
from headgate.spark.job.config import Pipeline

StagedParts = Mapping[str, Sequence[Part]]
"""The parts of a batch by folder.

The folders are `matches`, `dead` and, for each query that gave any, `answers/ID`; a job that shares
streams has `traffic` too. Unbounded queries write `unbounded/ID` by `write_folder`.
"""

OnRows = Callable[[str, pa.Table, int], None]
"""Called with the kind of rows, the first of them, and how many there are in the batch."""


class Sink(Protocol):
    """Takes the rows of one batch after the other. All methods run on the driver.

    Tasks write files of the given `format` into stages below `stages`, and the driver hands them
    over. The sink may move or delete these files; what it leaves is deleted with the stage. It
    returns the parts that it has placed, which the log keeps: they must be there at the next start.
    """

    format: str
    """In which tasks write their files: "parquet" or "jsonl"."""

    stages: Path
    """The directory in which each batch makes its stage."""

    def write_batch(self, batch: int, parts: StagedParts) -> tuple[Part, ...]:
        """Take over all parts of a batch.

        Called before the batch is logged, in the thread that Spark calls us in; it may block, and
        the stream waits. After a crash the same batch is written again, with the same rows: so the
        sink must replace what it has of that batch, not append. Folders without parts had no rows.
        """

    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Take over the parts that one folder has of a batch.

        Called by `write_batch`, and directly for unbounded queries: each numbers its batches by
        itself and calls from a thread of its own, so calls for two folders may overlap. May be
        called again for the same batch, as `write_batch`.
        """

    def list_outputs(self) -> dict[str, Path]:
        """Return where the rows are, by kind; called when the job has ended."""


class DirectorySink:
    """Directories of Parquet or JSON-lines files (`commit.output`)."""

    def __init__(self, root: Path, format: str) -> None:
        self.format = format
        self.stages = root / STAGING
        self.root = root

    def write_batch(self, batch: int, parts: StagedParts) -> tuple[Part, ...]:
        """Place the parts of every folder, and remove what a dead try left in the others."""
        # also folders without parts now: a try that died may have placed some
        folders = dict.fromkeys((*list_folders(self.root), *parts))
        return tuple(
            placed
            for folder in folders
            for placed in self.write_folder(batch, folder, parts.get(folder, ()))
        )

    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Make the parts the directory of the batch by one rename."""
        span = Span(batch, batch, self.root / folder)
        if parts:
            place_parts(parts, span, self.stages)
        elif span.path.exists():
            remove_directory(span.path, self.stages)
        return name_parts(parts, span, self.root)

    def list_outputs(self) -> dict[str, Path]:
        """Return the folders that exist."""
        kinds = (*EVENT_FOLDERS, ANSWERS, UNBOUNDED, TRAFFIC)
        return {kind: self.root / kind for kind in kinds if (self.root / kind).is_dir()}


class _TransientSink(ABC):
    """A sink that leaves nothing on the disk; its stages are in the state of the job."""

    format = "parquet"

    def __init__(self, state: Path) -> None:
        self.stages = state / STAGING

    def write_batch(self, batch: int, parts: StagedParts) -> tuple[Part, ...]:
        """Take over the rows of each folder."""
        for folder, staged in parts.items():
            self.write_folder(batch, folder, staged)
        return ()

    @abstractmethod
    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]: ...

    def list_outputs(self) -> dict[str, Path]:
        """Return nothing: no row is on the disk."""
        return {}


class ConsoleSink(_TransientSink):
    """Shows the first rows of each batch."""

    def __init__(self, state: Path, rows: int, show: OnRows) -> None:
        super().__init__(state)
        self._rows = rows
        self._show = show

    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Show the first rows of a folder."""
        del batch
        # traffic is for programs; a person sees its sum in the summary
        if parts and folder != TRAFFIC:
            table = read_tables(parts)
            kind = folder if folder in EVENT_FOLDERS else ANSWERS
            self._show(kind, table.slice(0, self._rows), table.num_rows)
        return ()


class MemorySink(_TransientSink):
    """Keeps all rows: for tests and notebooks, on small streams."""

    def __init__(self, state: Path) -> None:
        super().__init__(state)
        self._tables: dict[str, dict[int, pa.Table]] = {kind: {} for kind in EVENT_FOLDERS}

    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Keep the rows of a folder under the number of the batch."""
        if parts:
            # under the number of the batch, so that a replay replaces its rows
            self._tables.setdefault(folder, {})[batch] = read_tables(parts)
        return ()

    @property
    def matches(self) -> pa.Table | None:
        """All matches so far; None if there are none."""
        return self._concatenate(MATCHES)

    @property
    def dead(self) -> pa.Table | None:
        """All dead letters so far; None if there are none."""
        return self._concatenate(DEAD)

    @property
    def answers(self) -> dict[str, pa.Table]:
        """The answers of each query that gave any, by its id."""
        folders = [name for name in self._tables if name not in (*EVENT_FOLDERS, TRAFFIC)]
        tables = {folder: self._concatenate(folder) for folder in folders}
        return {
            decode_folder(folder): table for folder, table in tables.items() if table is not None
        }

    def _concatenate(self, folder: str) -> pa.Table | None:
        """Return all rows that have the columns of the last ones: a query may change them."""
        tables = list(self._tables[folder].values())
        # tables with other columns cannot be concatenated
        alike = [table for table in tables if table.schema == tables[-1].schema]
        return pa.concat_tables(alike) if alike else None


def open_sink(config: Pipeline, state: Path, on_rows: OnRows) -> Sink:
    """Return the sink of a job."""
    sink = config.sink
    if sink.kind == "console":
        return ConsoleSink(state, sink.rows, on_rows)
    if sink.kind == "memory":
        return MemorySink(state)
    assert sink.path is not None
    return DirectorySink(sink.path, sink.kind)


def read_tables(parts: Sequence[Part]) -> pa.Table:
    """Return the rows of all parts."""
    return pa.concat_tables([pq.read_table(part.path, partitioning=None) for part in parts])
