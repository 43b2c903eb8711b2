"""Where the staged rows of a batch go: into the output's directories, on a console, into memory.

To add a sink, write a class that satisfies `Sink`, open it in `open_sink`, and give it a kind and
its keys in `config_file`. The jobs know sinks by that protocol only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.spark.job.commit.claim import claim_output, wait_for_lock
from headgate.spark.job.commit.compaction import compact, remove_leftovers
from headgate.spark.job.commit.log import LOG_FILE, BatchLog
from headgate.spark.job.commit.output import (
    ANSWERS,
    COMPACTING,
    EVENT_FOLDERS,
    STAGING,
    TRAFFIC,
    UNBOUNDED,
    Part,
    Span,
    list_folders,
    name_parts,
    place_parts,
    remove_directory,
)
from headgate.spark.job.commit.parts import PartList, check_output
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

    @property
    def root(self) -> Path | None:
        """Where the rows are for good, with the columns of the first; None if not on the disk."""

    def claim(self, state: Path, log: BatchLog, note: Callable[[str], None], verify: bool) -> None:
        """Make certain that the output belongs to the state, and holds what the logs say.

        Called once, before anything is written, under the locks of the job; it may block. Raises a
        JobError if something is lost, damaged or not its own. With `verify` all of it is read.
        """

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

    def compact(self, batch: int, logged: PartList) -> None:
        """Put what finished batches have placed into better order, if it is time to.

        Called after each batch in a thread of its own, while the next ones are written, unless the
        last call has not returned. An error is noted, and does not end the job.
        """

    def list_outputs(self) -> dict[str, Path]:
        """Return where the rows are, by kind; called when the job has ended."""

    def collect_rows(self) -> dict[str, pa.Table]:
        """Return the rows that are kept in memory, by folder; called when the job has ended."""


class DirectorySink:
    """Directories of Parquet or JSON-lines files (`commit.output`).

    Each time that `compact_every` batches have come, their files are merged; 0 is never.
    """

    def __init__(self, root: Path, format: str, compact_every: int = 0) -> None:
        self.format = format
        self.stages = root / STAGING
        self.root = root
        self._compact_every = compact_every

    def claim(self, state: Path, log: BatchLog, note: Callable[[str], None], verify: bool) -> None:
        """Check the mark of the output and its parts, and finish a compaction that died."""
        root = self.root
        claim_output(state, root, began=log.last_batch is not None)

        def note_wait() -> None:
            note(f"{root}: waiting for the compaction that is at work there")

        # a compaction would change what is looked at
        with wait_for_lock(root / COMPACTING, ".lock", note_wait):
            check_output(root, log.parts, list_folders(root), log.last_batch, verify_all=verify)
            # also of queries that do not run any more
            for path in sorted((state / UNBOUNDED).glob(f"*/{LOG_FILE}")):
                own, folder = BatchLog(path, root), f"{UNBOUNDED}/{path.parent.name}"
                check_output(root, own.parts, [folder], own.last_batch, verify_all=verify)
            remove_leftovers(root)

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

    def compact(self, batch: int, logged: PartList) -> None:
        """Merge the directories of batches, if so many have come."""
        if self._compact_every and (batch + 1) % self._compact_every == 0:
            compact(self.root, self._compact_every, logged)

    def list_outputs(self) -> dict[str, Path]:
        """Return the folders that exist."""
        kinds = (*EVENT_FOLDERS, ANSWERS, UNBOUNDED, TRAFFIC)
        return {kind: self.root / kind for kind in kinds if (self.root / kind).is_dir()}

    def collect_rows(self) -> dict[str, pa.Table]:
        """Return nothing: all rows are on the disk."""
        return {}


class _TransientSink(ABC):
    """A sink that leaves nothing on the disk; its stages are in the state of the job."""

    format = "parquet"
    root: Path | None = None

    def __init__(self, state: Path) -> None:
        self.stages = state / STAGING

    def claim(self, state: Path, log: BatchLog, note: Callable[[str], None], verify: bool) -> None:
        """Accept any state: there is no output that could be another's."""
        del state, log, note, verify

    def write_batch(self, batch: int, parts: StagedParts) -> tuple[Part, ...]:
        """Take over the rows of each folder."""
        for folder, staged in parts.items():
            self.write_folder(batch, folder, staged)
        return ()

    @abstractmethod
    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]: ...

    def compact(self, batch: int, logged: PartList) -> None:
        """Do nothing: no file is left."""
        del batch, logged

    def list_outputs(self) -> dict[str, Path]:
        """Return nothing: no row is on the disk."""
        return {}

    def collect_rows(self) -> dict[str, pa.Table]:
        """Return nothing: rows are not kept."""
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
        self._tables: dict[str, dict[int, pa.Table]] = {}

    def write_folder(self, batch: int, folder: str, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Keep the rows of a folder under the number of the batch."""
        if parts:
            # under the number of the batch, so that a replay replaces its rows
            self._tables.setdefault(folder, {})[batch] = read_tables(parts)
        return ()

    def collect_rows(self) -> dict[str, pa.Table]:
        """Return all rows so far, by folder, of folders that have any."""
        tables = {folder: self._concatenate(folder) for folder in self._tables}
        return {folder: table for folder, table in tables.items() if table is not None}

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
    return DirectorySink(sink.path, sink.kind, sink.compact_every)


def read_tables(parts: Sequence[Part]) -> pa.Table:
    """Return the rows of all parts."""
    return pa.concat_tables([pq.read_table(part.path, partitioning=None) for part in parts])
