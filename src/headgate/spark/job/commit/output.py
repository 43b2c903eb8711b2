"""The output of a job: a directory for each batch, which appears complete or not at all.

    out/
        matches/batches=0000000007-0000000007/part-0000.parquet     a row for each match
        dead/batches=0000000007-0000000007/part-0000.parquet        a row for each dead letter
        answers/q/batches=0000000007-0000000007/part-0000.parquet   the new rows of a query q
        traffic/batches=0000000007-0000000007/part-0000.parquet     the traffic on links, of a plan
        unbounded/u/batches=0000000005-0000000005/part-0000.parquet the rows of an unbounded query u
        .staging/ .compacting/                                      what is not complete yet
        .merged/                                                    what compactions wrote (`parts`)

The name of a directory says which batches it holds: one, or after a compaction from–to. The name
is also a partition column to Spark, DuckDB and Arrow, so a folder can be read as it is.

Tasks write into a stage. A task may be tried more than once, and killed at any time, so no two
tries share a file: each has a name of its own. Only the files that a successful try reports are
placed into the output; the others are deleted with the stage.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.events.json_lines import format_json
from headgate.snapshot.files import checksum, sync

MATCHES, DEAD = "matches", "dead"
EVENT_FOLDERS = (MATCHES, DEAD)
ANSWERS = "answers"
UNBOUNDED = "unbounded"
TRAFFIC = "traffic"
STAGING, COMPACTING, MERGED = ".staging", ".compacting", ".merged"
ROW_GROUP_BYTES = 32 << 20  # of rows in memory, before they are encoded
HIDDEN = (".", "_")  # readers of a folder skip names that begin so

_BATCHES = re.compile(r"batches=(\d{10,})-(\d{10,})")


@dataclass(frozen=True, slots=True)
class Part:
    """A file of rows: how many there are, its size in bytes, and the digest of its content.

    Its `path` is absolute as long as it is staged, and then relative to the root of the output.
    """

    path: str
    rows: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The batches from `first` to `last` that a directory in `parent` holds.

    >>> Span(7, 12, Path("out/matches")).path.name
    'batches=0000000007-0000000012'
    """

    first: int
    last: int
    parent: Path

    @property
    def path(self) -> Path:
        """The directory."""
        return self.parent / f"batches={self.first:010}-{self.last:010}"

    def covers(self, other: Span) -> bool:
        """Return whether every batch of the other span is in this one."""
        return self.first <= other.first and other.last <= self.last


def encode_folder(query_id: str, parent: str = ANSWERS) -> str:
    """Return the folder of a query's rows, relative to the root of the output.

    >>> encode_folder("big/é"), encode_folder("..")
    ('answers/big%2F%C3%A9', 'answers/%2E.')
    """
    name = quote(query_id, safe="")
    # quote() leaves dots and underscores as they are, and a leading one would hide the folder
    visible = f"%{ord(name[0]):02X}{name[1:]}" if name.startswith(HIDDEN) else name
    return f"{parent}/{visible}"


def decode_folder(folder: str) -> str:
    """Return the id of the query whose rows are in a folder; the inverse of `encode_folder`.

    >>> decode_folder(encode_folder("..")), decode_folder(encode_folder("50%/~é"))
    ('..', '50%/~é')
    """
    return unquote(folder.partition("/")[2])


def list_folders(root: Path) -> list[str]:
    """Return the folders of batches that the job numbers: events, traffic, a query's answers."""
    return [*EVENT_FOLDERS, TRAFFIC, *_list_subfolders(root, ANSWERS)]


def list_unbounded_folders(root: Path) -> list[str]:
    """Return the folders of unbounded queries, each of which numbers its own batches."""
    return _list_subfolders(root, UNBOUNDED)


def _list_subfolders(root: Path, folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in sorted(_list_entries(root / folder))]


def parse_span(directory: Path) -> Span:
    """Return the batches that a directory says in its name.

    >>> parse_span(Path("out/matches/batches=0000000007-0000000012")).last
    12
    """
    name = _BATCHES.fullmatch(directory.name)
    assert name is not None, directory
    return Span(int(name[1]), int(name[2]), directory.parent)


def list_spans(parent: Path) -> list[Span]:
    """Return the directories of batches in a folder, in order, without covered ones.

    A compaction that died between its two steps leaves the directories that it merged next to the
    merged one: they are covered, and count no more.
    """
    names = filter(_BATCHES.fullmatch, _list_entries(parent))
    spans = sorted(
        (parse_span(parent / name) for name in names), key=lambda span: (span.first, -span.last)
    )
    # the widest span of those with the same first batch comes first, so it covers what follows
    uncovered: list[Span] = []
    for span in spans:
        if not uncovered or not uncovered[-1].covers(span):
            uncovered.append(span)
    return uncovered


def list_covered(parent: Path) -> list[Path]:
    """Return the directories whose batches another one holds too."""
    uncovered = {span.path.name for span in list_spans(parent)}
    return [
        parent / entry
        for entry in _list_entries(parent)
        if _BATCHES.fullmatch(entry) and entry not in uncovered
    ]


def _list_entries(parent: Path) -> list[str]:
    return os.listdir(parent) if parent.is_dir() else []


def name_parts(parts: Sequence[Part], span: Span, root: Path) -> tuple[Part, ...]:
    """Return staged parts as they will be in a directory of batches."""
    directory = span.path.relative_to(root).as_posix()
    return tuple(
        replace(part, path=f"{directory}/{_name_part(number, part)}")
        for number, part in enumerate(parts)
    )


def _name_part(number: int, part: Part) -> str:
    return f"part-{number:04}{Path(part.path).suffix}"


def place_parts(parts: Sequence[Part], span: Span, stages: Path) -> None:
    """Make staged parts, which are synced, the whole content of a directory of batches.

    A directory of that name was left by a try that died before the batch was logged, and is
    replaced.
    """
    # the files are moved into a directory of their own, which one rename then makes visible
    stage = new_stage(stages)
    for number, part in enumerate(parts):
        os.rename(part.path, stage / _name_part(number, part))
    sync(stage)
    make_directory(span.parent)
    if span.path.exists():
        remove_directory(span.path, stages)
    os.rename(stage, span.path)
    sync(span.parent)


def make_directory(directory: Path) -> None:
    """Create a directory and its parents, and sync each to the disk."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync(directory.parent)


def remove_directory(directory: Path, stages: Path) -> None:
    """Let a directory disappear at once by a rename, and then delete its content."""
    # deleting file by file would show readers half a batch
    trash = new_stage(stages)
    os.rename(directory, trash / directory.name)
    shutil.rmtree(trash, ignore_errors=True)


def new_stage(stages: Path) -> Path:
    """Create a new directory in `stages`, which is on the output's file system and hidden."""
    stage = stages / uuid.uuid4().hex
    stage.mkdir(parents=True)
    return stage


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write a file so that after any crash it is there as a whole or not at all."""
    # synced before the rename, and the directory after it: else a crash may lose either
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content.encode() if isinstance(content, str) else content)
    sync(draft)
    os.replace(draft, path)
    sync(path.parent)
    return path


class _RowWriter(Protocol):
    """An open file of rows."""

    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class StagedFile:
    """A file of rows in a stage, created with its first row and synced when it is closed.

    A file without rows does not exist, and is no part.
    """

    def __init__(self, stage: Path, kind: str, format: str) -> None:
        self._path = stage / f"{kind}-{uuid.uuid4().hex}.{format}"
        self._format = format
        self._file: BinaryIO | None = None
        self._writer: _RowWriter | None = None
        self.rows = 0
        self.part: Part | None = None
        """What was written, once the file is closed."""

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        if not table.num_rows:
            return
        if self._writer is None:
            # opened by us, so that it can be synced before it is closed
            self._file = self._path.open("wb")
            is_parquet = self._format == "parquet"
            self._writer = (
                _ParquetRows(self._file, table.schema) if is_parquet else _JsonLines(self._file)
            )
        self._writer.write(table)
        self.rows += table.num_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is None or self._file is None:
            return
        with self._file:
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
        # read back while the pages are still in memory, here in the task and not on the driver
        size = self._path.stat().st_size
        self.part = Part(str(self._path), self.rows, size, checksum(self._path))


class _ParquetRows:
    """Rows in Parquet, in row groups of many tables: of few each, writing takes a fifth longer."""

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        # a compaction checks the checksums of pages, so that it does not pass on what was damaged
        self._writer = pq.ParquetWriter(
            file, schema, compression="zstd", store_schema=False, write_page_checksum=True
        )
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0

    def write(self, table: pa.Table) -> None:
        self._pending.append(table)
        self._pending_bytes += table.nbytes
        if self._pending_bytes >= ROW_GROUP_BYTES:
            self._write_pending()

    def close(self) -> None:
        self._write_pending()
        self._writer.close()

    def _write_pending(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending))
        self._pending, self._pending_bytes = [], 0


class _JsonLines:
    """A JSON object a line, whose values read back as they were."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, table: pa.Table) -> None:
        self._file.writelines(format_json(row).encode() + b"\n" for row in table.to_pylist())

    def close(self) -> None:
        pass
