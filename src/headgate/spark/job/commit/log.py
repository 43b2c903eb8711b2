"""The two records of a job's batches: our own log, and Spark's checkpoint.

The log says which version of the queries each batch runs under, and counts its rows. It has one
JSON line per record, on the disk before anything relies on it:

    {"batch": 7, "version": 3}                                         before the batch runs
    {"batch": 7, "version": 3, "counts": {"rows": 990, "dead": 2, …}}  after its output is in place

Where there are continuous queries, the second line also has the checksum of their state. A line
that a crash cut short was not yet relied on, and is dropped. A long log is folded into one line
with the sum of all batches so far.

Spark's checkpoint says how far Spark planned, and which files belong to which batch. A batch's
frame lists only the files that exist when it is evaluated, and silently skips one that was deleted
in the meantime. So the files are read from the checkpoint itself:

    offsets/7            after two lines, one for each source: {"logOffset": 9}
    sources/0/9          {"path": "file:///…", "batchId": 9}, a line for each file
    sources/0/9.compact  the same for all batches up to 9

A source that has had no file yet has `-` in the place of an offset.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from headgate.errors import JobError
from headgate.snapshot.files import sync
from headgate.spark.job.commit.output import write_atomically

MAX_LOG_LINES = 10_000  # more are folded into one


@dataclass(frozen=True, slots=True)
class Counts:
    """How many `rows`, `dead` letters and `blank` lines came in, which is all input.

    `matches` and `answers` count the rows that went out.

    >>> Counts(rows=2, matches=5) + Counts(rows=1, dead=1)
    Counts(rows=3, dead=1, blank=0, matches=5, answers=0)
    """

    rows: int = 0
    dead: int = 0
    blank: int = 0
    matches: int = 0
    answers: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def events(self) -> int:
        """The number of events: rows and dead letters."""
        return self.rows + self.dead

    @property
    def total(self) -> int:
        """The number of all records that came in."""
        return self.rows + self.dead + self.blank


class BatchLog:
    """The log in a file; only the process that holds the job's lock writes it.

    Guarantee: a record is found again after any crash once `begin` or `finish` has returned.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = 0
        self._begun: dict[int, int] = {}
        self.totals = Counts()
        self.last_batch: int | None = None
        """The newest batch that is finished; Spark may ask for it again, but for none before it."""
        self.state_checksum: str | None = None
        """The checksum of the continuous queries' state after the newest finished batch."""
        self._read()

    def begin(self, batch: int, version: int) -> int:
        """Record the version that a batch runs under, and return it.

        A batch that has begun under another version keeps that one.
        """
        begun = self._begun.get(batch)
        # a replay runs under the version that the log has
        if begun is not None:
            return begun
        self._append({"batch": batch, "version": version})
        self._begun[batch] = version
        return version

    def version_of(self, batch: int) -> int | None:
        """Return the version that an unfinished batch began under; None if it has not begun."""
        return self._begun.get(batch)

    def is_finished(self, batch: int) -> bool:
        """Return whether the batch's output is in place."""
        return self.last_batch is not None and batch <= self.last_batch

    def finish(self, batch: int, counts: Counts, state_checksum: str | None = None) -> None:
        """Record that the output of a batch is in place, and the checksum of the state after it."""
        state = {} if state_checksum is None else {"synopses": state_checksum}
        version = self._begun[batch]
        self._append({"batch": batch, "version": version, "counts": asdict(counts), **state})
        self._record_finished(batch, counts, state_checksum)
        if self._lines > MAX_LOG_LINES:
            self._fold()

    def _record_finished(self, batch: int, counts: Counts, state_checksum: str | None) -> None:
        self.last_batch = batch
        self.state_checksum = state_checksum
        self.totals += counts
        # earlier batches can never come again
        self._begun = {later: v for later, v in self._begun.items() if later > batch}

    def _append(self, record: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(_encode_line(record))
            file.flush()
            os.fsync(file.fileno())
        self._lines += 1

    def _fold(self) -> None:
        """Replace all lines by one with the sum of all finished batches."""
        sums = {
            "up_to": self.last_batch,
            "counts": asdict(self.totals),
            "synopses": self.state_checksum,
        }
        write_atomically(self._path, _encode_line(sums))
        self._lines = 1

    def _read(self) -> None:
        """Replay the whole lines of the file, and cut off one that a crash left unfinished."""
        if not self._path.exists():
            self._path.touch()
            sync(self._path.parent)
            return
        # a crash may leave half a line at the end, which nothing has relied on
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                self._replay(json.loads(line))
            except (ValueError, TypeError, KeyError):
                raise JobError(
                    f"{self._path}:{number}: not a line of a job's log; it was changed or damaged"
                ) from None
            self._lines = number
        if len(whole) < len(content):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())

    def _replay(self, record: dict[str, Any]) -> None:
        if "counts" in record:
            # the line of a folded log stands for all batches up to one
            last = int(record["up_to" if "up_to" in record else "batch"])
            self._record_finished(last, Counts(**record["counts"]), record.get("synopses"))
        else:
            self._begun[int(record["batch"])] = int(record["version"])


def _encode_line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def find_last_planned(checkpoint: Path) -> int | None:
    """Return the newest batch that Spark has planned; None before the first."""
    try:
        names = [path.name for path in (checkpoint / "offsets").iterdir()]
    except FileNotFoundError:
        return None
    return max((int(name) for name in names if name.isdigit()), default=None)


def list_planned_files(checkpoint: Path, source: int, batch: int) -> list[str]:
    """Return the paths of the files that a source has in a batch, sorted."""
    # a source's log has entries only for batches with new files, so it counts otherwise than Spark
    first = 0 if batch == 0 else _read_log_offset(checkpoint, source, batch - 1) + 1
    last = _read_log_offset(checkpoint, source, batch)
    if last < first:
        return []
    folder = checkpoint / "sources" / str(source)
    entries = [
        entry for number in range(first, last + 1) for entry in _read_entries(folder, number)
    ]
    return sorted({_parse_uri(entry["path"]) for entry in entries})


def _read_log_offset(checkpoint: Path, source: int, batch: int) -> int:
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        offset = lines[2 + source]  # after a version and metadata
        return -1 if offset in ("-", "null") else int(json.loads(offset)["logOffset"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise JobError(f"{path}: Spark's checkpoint cannot be read ({error})") from None


def _read_entries(folder: Path, number: int) -> list[dict[str, Any]]:
    """Return the files of one entry in a source's log; a compacted one holds earlier ones too."""
    for path in (folder / str(number), folder / f"{number}.compact"):
        try:
            # the first line is the version of the format
            lines = path.read_text(encoding="utf-8").splitlines()[1:]
        except FileNotFoundError:
            continue
        entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [entry for entry in entries if entry["batchId"] == number]
    raise JobError(f"{folder / str(number)}: is missing from Spark's checkpoint")


def _parse_uri(uri: str) -> str:
    """Return the path in a URI, in which Spark escapes what URIs do not allow.

    >>> _parse_uri("file:///a%20b/c%25.jsonl")
    '/a b/c%.jsonl'
    """
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")
