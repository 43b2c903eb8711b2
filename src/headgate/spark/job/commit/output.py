"""The output of a job: a directory for each batch, which appears complete or not at all.

    out/
        matches/batches=0000000007-0000000007/part-0000.parquet     a row for each match
        dead/batches=0000000007-0000000007/part-0000.parquet        a row for each dead letter
        answers/q/batches=0000000007-0000000007/part-0000.parquet   what a query q gave anew
        traffic/batches=0000000007-0000000007/part-0000.parquet     what went over links, of a plan
        unbounded/u/batches=0000000005-0000000005/part-0000.parquet the same of one that is alone
        .staging/ .compacting/                                      what is not complete yet

The name of a directory says which batches it holds: one, or after a compaction from–to. The name
is also a partition column to Spark, DuckDB and Arrow, so the whole folder is read as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.events.json_text import format_json
from headgate.snapshot.files import sync

KINDS = ("matches", "dead")
ANSWERS = "answers"
UNBOUNDED = "unbounded"
TRAFFIC = "traffic"
STAGING, COMPACTING = ".staging", ".compacting"

_NAME = re.compile(r"batches=(\d{10,})-(\d{10,})")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The batches from `first` to `last` that a directory holds, and its place.

    >>> Span(7, 12, Path("out/matches")).path.name
    'batches=0000000007-0000000012'
    """

    first: int
    last: int
    parent: Path

    @property
    def path(self) -> Path:
        return self.parent / f"batches={self.first:010}-{self.last:010}"

    def covers(self, other: Span) -> bool:
        return self.first <= other.first and other.last <= self.last


def folders(root: Path) -> list[str]:
    """The folders of batches in an output: of matches, dead letters, traffic, and of answers.

    Each query that gave answers has one of its own.
    """
    return [*KINDS, TRAFFIC, *_inside(root, ANSWERS)]


def own_folders(root: Path) -> list[str]:
    """The folders of queries that run alone, whose batches have numbers of their own."""
    return _inside(root, UNBOUNDED)


def _inside(root: Path, folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in sorted(_entries(root / folder))]


def spans(parent: Path) -> list[Span]:
    """The directories of batches in a folder, in order; none that another covers.

    A compaction that died between its two steps leaves the directories that it merged beside the
    merged one: they are covered, and count no more.
    """
    named = (_NAME.fullmatch(entry) for entry in _entries(parent))
    found = sorted(
        (Span(int(name[1]), int(name[2]), parent) for name in named if name),
        key=lambda span: (span.first, -span.last),
    )
    living: list[Span] = []
    for span in found:
        if not living or not living[-1].covers(span):
            living.append(span)
    return living


def place(files: Sequence[Path], span: Span, stages: Path) -> None:
    """Make files, which are synced already, all that a directory of batches holds.

    A directory of that name is what a try left behind that died before the batch was logged: it
    goes.
    """
    stage = new_stage(stages)
    for number, file in enumerate(files):
        os.rename(file, stage / f"part-{number:04}{file.suffix}")
    sync(stage)
    make_directory(span.parent)
    if span.path.exists():
        remove(span.path, stages)
    os.rename(stage, span.path)
    sync(span.parent)


def make_directory(directory: Path) -> None:
    """Have a directory on the disk, and those that it is in."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync(directory.parent)


def remove(directory: Path, stages: Path) -> None:
    """Let a directory disappear at once, and then delete what is in it."""
    grave = new_stage(stages)
    os.rename(directory, grave / directory.name)
    shutil.rmtree(grave, ignore_errors=True)


def new_stage(stages: Path) -> Path:
    """A new directory; `stages` is on the output's file system, and hidden from its readers."""
    stage = stages / uuid.uuid4().hex
    stage.mkdir(parents=True)
    return stage


def covered(parent: Path) -> list[Path]:
    """The directories whose batches another one holds too."""
    living = {span.path.name for span in spans(parent)}
    return [
        parent / entry
        for entry in _entries(parent)
        if _NAME.fullmatch(entry) and entry not in living
    ]


def _entries(parent: Path) -> list[str]:
    return os.listdir(parent) if parent.is_dir() else []


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
        self._file.writelines(format_json(row).encode() + b"\n" for row in table.to_pylist())

    def close(self) -> None:
        pass
