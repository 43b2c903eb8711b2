"""The log of a job: which version of the queries each batch runs under, and what came of it.

A line of JSON for each thing that is to be remembered, on the disk before anything relies on it:

    {"batch": 7, "version": 3}                                         before the batch runs
    {"batch": 7, "version": 3, "counts": {"rows": 990, "dead": 2, …}}  after its output is in place

Where there are continuous queries, the second one also has the checksum of what they store then. A
line that a crash cut short was not yet relied on, and is forgotten. The log of a long run is folded
now and then: one line with the sum of all batches up to some number.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from headgate.errors import JobError
from headgate.snapshot.files import sync

FOLD_AFTER = 10_000  # lines


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of everything that came in: `rows`, `dead` letters and `blank` lines.

    `matches` and `answers` are the rows that went out for them.

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
        """Rows and dead letters."""
        return self.rows + self.dead

    @property
    def total(self) -> int:
        """Everything that came in."""
        return self.rows + self.dead + self.blank


class BatchLog:
    """The log in a file; one process writes it, and holds the job's lock while it does.

    Guarantee: what `begin` or `finish` has returned from is found again after any crash.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = 0
        self._begun: dict[int, int] = {}
        self.totals = Counts()
        self.last: int | None = None
        """The newest batch that is finished; Spark may ask for it again, but for none before it."""
        self.synopses: str | None = None
        """The checksum of what continuous queries stored after the newest finished batch."""
        self._read()

    def begin(self, batch: int, version: int) -> int:
        """The version that a batch runs under: this one, unless it has begun under another."""
        known = self._begun.get(batch)
        if known is not None:
            return known
        self._append({"batch": batch, "version": version})
        self._begun[batch] = version
        return version

    def version_of(self, batch: int) -> int | None:
        """The version that a batch began under, if it has begun and is not finished."""
        return self._begun.get(batch)

    def finished(self, batch: int) -> bool:
        """Is the batch's output in place?"""
        return self.last is not None and batch <= self.last

    def finish(self, batch: int, counts: Counts, synopses: str | None = None) -> None:
        """Remember that the output of a batch is in place, and what is stored after it."""
        stored = {} if synopses is None else {"synopses": synopses}
        version = self._begun[batch]
        self._append({"batch": batch, "version": version, "counts": asdict(counts), **stored})
        self._end(batch, counts, synopses)
        if self._lines > FOLD_AFTER:
            self._fold()

    def _end(self, batch: int, counts: Counts, synopses: str | None) -> None:
        self.last = batch
        self.synopses = synopses
        self.totals += counts
        self._begun = {later: v for later, v in self._begun.items() if later > batch}

    def _append(self, record: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(_line(record))
            file.flush()
            os.fsync(file.fileno())
        self._lines += 1

    def _fold(self) -> None:
        folded = self._path.with_name(f".{self._path.name}")
        record = {"up_to": self.last, "counts": asdict(self.totals), "synopses": self.synopses}
        folded.write_bytes(_line(record))
        sync(folded)
        os.replace(folded, self._path)
        sync(self._path.parent)
        self._lines = 1

    def _read(self) -> None:
        if not self._path.exists():
            self._path.touch()
            sync(self._path.parent)
            return
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
            last = int(record["up_to" if "up_to" in record else "batch"])
            self._end(last, Counts(**record["counts"]), record.get("synopses"))
        else:
            self._begun[int(record["batch"])] = int(record["version"])


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"
