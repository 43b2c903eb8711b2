"""Streams that cross from one application to another, as durable files.

    exchange/
        plans/DIGEST.json
        streams/east/west/JOB/DIGEST/3/batches=0000000007-0000000007/part-0000.parquet
        senders/west/
        .staging/

What `west` sends to `east`: the rows of flow 3 of a plan, as Parquet with the columns of the flow.
A job that starts afresh has another mark, so no name, by which Spark knows what it has read, ever
comes a second time. The plan is sent with the rows. So a row follows the plan under which it
entered through all applications, and none has to wait until another has taken up a new plan.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from headgate.sharing.plan_execution import find_receiver
from headgate.spark.job.commit.claim import claim_place
from headgate.spark.job.commit.output import (
    Span,
    encode_folder,
    make_directory,
    new_stage,
    place_files,
    write_atomically,
)
from headgate.spark.job.sharing.plans import load_plan
from headgate.spark.job.sources import FileSource, Source

STREAMS, PLANS = "streams", "plans"
FILES_PER_TRIGGER = 100

SentFiles = Mapping[tuple[str, int], Sequence[Path]]
"""The files of a batch by the path of the plan and the number of the flow in it."""


class Exchange(Protocol):
    """Where an application sends what leaves it, and finds what comes to it.

    All methods run on the driver. Topics of Kafka could stand here as well as files.
    """

    def claim(self, state: Path, *, began: bool) -> None:
        """Make certain that nobody else sends as this application; called once, before the start.

        `began` says whether the job has finished a batch. Raises a JobError if another job sends.
        """

    def new_stage(self) -> Path:
        """Return a new directory into which tasks write what a batch sends; called once a batch."""

    def send(self, batch: int, files: SentFiles) -> None:
        """Take over the files of a batch; it may block.

        Called before the batch is logged, so after a crash again with the same rows, which whoever
        reads must get once.
        """

    def open_source(self, checkpoint: Path, number: int) -> Source:
        """Return the source of what comes to this application; called once, before the start."""


class FileExchange:
    """An exchange by directories that all applications reach."""

    def __init__(self, root: Path, application: str) -> None:
        self._root = root
        self._application = application
        self._name = Path(encode_folder(application)).name
        self._job = ""
        self._stages = root / ".staging" / self._name

    def claim(self, state: Path, *, began: bool) -> None:
        """Mark the directory of this sender, and remove what a dead run staged."""
        self._job = claim_place(state, self._root / "senders" / self._name, began=began)
        shutil.rmtree(self._stages, ignore_errors=True)  # left by a run that died
        for name in (PLANS, encode_folder(self._application, STREAMS)):
            make_directory(self._root / name)

    def new_stage(self) -> Path:
        """Create a stage on the file system of the exchange."""
        return new_stage(self._stages)

    def send(self, batch: int, files: SentFiles) -> None:
        """Place the files; never replace any: a replay has the same, and some may be read."""
        for (path, number), staged in files.items():
            loaded = load_plan(path)
            flow = loaded.plan.flows[number]
            to = find_receiver(loaded.plan, flow)
            assert to is not None
            self._copy_plan(path, loaded.digest)
            mine = self._root / encode_folder(to, STREAMS) / self._name / self._job
            span = Span(batch, batch, mine / loaded.digest / str(number))
            # a replay: the rows are there, and may have been read
            if not span.path.exists():
                place_files(staged, span, self._stages)

    def _copy_plan(self, path: str, digest: str) -> None:
        copy = self._root / PLANS / f"{digest}.json"
        if not copy.exists():
            write_atomically(copy, Path(path).read_text(encoding="utf-8"))

    def open_source(self, checkpoint: Path, number: int) -> Source:
        """Return a source over the files that others place for this application."""
        folder = self._root / encode_folder(self._application, STREAMS)
        return FileSource(folder, "parquet", FILES_PER_TRIGGER, {}, checkpoint, number)


def parse_sent_path(path: str) -> tuple[str, int]:
    """Return the path of the plan and the number of the flow of a file that has arrived.

    >>> batch = "batches=0000000007-0000000007"
    >>> parse_sent_path(f"/x/streams/east/west/job/0a1b/3/{batch}/part-0000.parquet")
    ('/x/plans/0a1b.json', 3)
    """
    _, flow, digest, _, _, _, _, root = list(Path(path).parents)[:8]
    return str(root / PLANS / f"{digest.name}.json"), int(flow.name)
