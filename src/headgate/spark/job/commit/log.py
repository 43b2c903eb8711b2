"""The log of a job's batches: the version that each runs under, its counts, and what it placed.

Its records are sealed and chained (`records`), and on the disk before anything relies on them:

    {…, "batch": 7, "version": 3, "checkpoint": {"offsets/7": "e0a…", "sources/0/7": "b71…"}}
                                                                       before the batch runs
    {…, "batch": 7, "version": 3, "counts": {"rows": 990, "dead": 2, …}, "parts":
        [{"path": "matches/batches=0000000007-0000000007/part-0000.parquet", "rows": 412,
          "size": 9120, "digest": "7b0…"}, …]}                         after its output is in place

    {…, "forgotten": ["matches/batches=0000000007-0000000007", …]}     it was removed on purpose

`checkpoint` has digests of the files of Spark by which the batch was planned.

Where there are continuous queries, the second record also has the checksum of their state. A long
log is folded into one record with the sum of all batches so far, and all parts that there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from headgate.spark.job.commit.checkpoint import check_fingerprints, fingerprint_newest
from headgate.spark.job.commit.output import Part
from headgate.spark.job.commit.parts import PartList, adopt_merged, group_parts
from headgate.spark.job.commit.records import Record, RecordFile

LOG_FILE = "log.jsonl"
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
    """The log in a file; only the process that holds the job's lock opens it.

    Guarantee: a record is found again after any crash once `begin` or `finish` has returned. What
    was changed or lost since raises a JobError when the log is opened. `output` is the directory
    that parts are relative to, if the job has one.
    """

    def __init__(self, path: Path, output: Path | None = None) -> None:
        self._output = output
        self._begun: dict[int, int] = {}
        self.totals = Counts()
        self.last_batch: int | None = None
        """The newest batch that is finished; Spark may ask for it again, but for none before it."""
        self.last_version: int | None = None
        """The version that the newest batch began under."""
        self.state_checksum: str | None = None
        """The checksum of the continuous queries' state after the newest finished batch."""
        self.parts: PartList = {}
        """The parts that finished batches have placed, by directory."""
        self._checkpoint: Path | None = None
        self._fingerprints: dict[str, str] = {}
        self._file = RecordFile(path)
        for record in self._file.records:
            self._replay(record)

    def follow_checkpoint(self, checkpoint: Path) -> None:
        """Raise a JobError if Spark's newest files are not those that the newest batch began with.

        From now on, each batch that begins is recorded with its own.
        """
        check_fingerprints(checkpoint, self._fingerprints)
        self._checkpoint = checkpoint

    def begin(self, batch: int, version: int) -> int:
        """Record the version that a batch runs under, and return it.

        A batch that has begun under another version keeps that one.
        """
        begun = self._begun.get(batch)
        # a replay runs under the version that the log has
        if begun is not None:
            return begun
        record: Record = {"batch": batch, "version": version}
        if self._checkpoint is not None:
            record["checkpoint"] = fingerprint_newest(self._checkpoint)
        self._file.append(record)
        self._replay(record)
        return version

    def version_of(self, batch: int) -> int | None:
        """Return the version that an unfinished batch began under; None if it has not begun."""
        return self._begun.get(batch)

    def is_finished(self, batch: int) -> bool:
        """Return whether the batch's output is in place."""
        return self.last_batch is not None and batch <= self.last_batch

    def finish(
        self,
        batch: int,
        counts: Counts,
        parts: Sequence[Part] = (),
        state_checksum: str | None = None,
    ) -> None:
        """Record that the parts of a batch are in place, and the checksum of the state after it."""
        record: Record = {
            "batch": batch,
            "version": self._begun[batch],
            "counts": asdict(counts),
            "parts": [asdict(part) for part in parts],
            "synopses": state_checksum,
        }
        self._file.append(record)
        self._replay(record)
        if self._file.lines > MAX_LOG_LINES:
            self._fold()

    def forget(self, directories: Sequence[str]) -> None:
        """Record that directories of parts were removed on purpose: nobody misses them any more."""
        record: Record = {"forgotten": list(directories)}
        self._file.append(record)
        self._replay(record)

    def _fold(self) -> None:
        """Replace all records by one with the sum of all finished batches."""
        if self._output is not None:
            # else the log would grow with every batch, also where compaction keeps files few
            self.parts = adopt_merged(self.parts, self._output)
        record: Record = {
            "batch": self.last_batch,
            "version": self.last_version,
            "counts": asdict(self.totals),
            "parts": [asdict(part) for parts in self.parts.values() for part in parts],
            "synopses": self.state_checksum,
            "checkpoint": self._fingerprints,
        }
        self._file.replace_all(record)

    def _replay(self, record: Record) -> None:
        """Take up what a record says, be it read or just written."""
        if "forgotten" in record:
            for directory in record["forgotten"]:
                self.parts.pop(directory, None)
            return
        batch = record["batch"]
        self.last_version = record["version"]
        self._fingerprints = record.get("checkpoint", self._fingerprints)
        if "counts" not in record:
            self._begun[batch] = record["version"]
            return
        self.last_batch = batch
        self.state_checksum = record["synopses"]
        self.totals += Counts(**record["counts"])
        self.parts.update(group_parts(Part(**part) for part in record["parts"]))
        # earlier batches can never come again
        self._begun = {later: v for later, v in self._begun.items() if later > batch}
