"""Streams that cross from one application to another, as durable files.

    exchange/
        plans/DIGEST.json
        streams/east/west/JOB/DIGEST/3/batches=0000000007-0000000007/part-0000.parquet
        senders/west/
        .staging/

What `west` sends to `east`: the rows of flow 3 of a plan, as Parquet with the columns of the flow.
A job that begins anew has another mark, so no name ever comes a second time, by which Spark knows
what it has read. The plan goes with the rows. So a row goes its whole way by the plan under which
it entered, whichever applications it passes, and none has to wait until another has taken up a new
one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from headgate.sharing.plan_execution import find_receiver
from headgate.spark.job.commit.claim import claim_also
from headgate.spark.job.commit.output import Span, make_directory, new_stage, place
from headgate.spark.job.continuous_query import folder_of
from headgate.spark.job.sharing.plans import loaded, write
from headgate.spark.job.sources import Files, Source

STREAMS, PLANS = "streams", "plans"
AT_ONCE = 100  # files that a batch takes at most

Sent = Mapping[tuple[str, int], Sequence[Path]]
"""The files of a batch by the plan, where that is, and the number of the flow in it."""


class Exchange(Protocol):
    """Where an application sends what leaves it, and finds what comes to it.

    A batch that was taken, but not logged because of a crash, comes again with the same rows, and
    whoever reads gets them once. Topics of Kafka could stand here as well as files.
    """

    def claim(self, state: Path, *, began: bool) -> None:
        """Make certain that nobody else sends as this application."""

    def stage(self) -> Path:
        """A place in which tasks may put what they have to send in a batch."""

    def send(self, batch: int, files: Sent) -> None:
        """Take over the files of a batch."""

    def arriving(self, checkpoint: Path, number: int) -> Source:
        """What comes to this application, as a source of its own."""


class FileExchange:
    """Directories that all applications reach."""

    def __init__(self, root: Path, application: str) -> None:
        self._root = root
        self._application = application
        self._name = Path(folder_of(application)).name
        self._job = ""
        self._stages = root / ".staging" / self._name

    def claim(self, state: Path, *, began: bool) -> None:
        self._job = claim_also(state, self._root / "senders" / self._name, began=began)
        shutil.rmtree(self._stages, ignore_errors=True)  # left by a run that died
        for name in (PLANS, folder_of(self._application, STREAMS)):
            make_directory(self._root / name)

    def stage(self) -> Path:
        return new_stage(self._stages)

    def send(self, batch: int, files: Sent) -> None:
        """Never replaces rows: they may have been read already, and a replay gives the same."""
        for (path, number), staged in files.items():
            found = loaded(path)
            flow = found.plan.flows[number]
            to = find_receiver(found.plan, flow)
            assert to is not None
            self._keep(path, found.digest)
            mine = self._root / folder_of(to, STREAMS) / self._name / self._job
            span = Span(batch, batch, mine / found.digest / str(number))
            if not span.path.exists():
                place(staged, span, self._stages)

    def _keep(self, path: str, digest: str) -> None:
        kept = self._root / PLANS / f"{digest}.json"
        if not kept.exists():
            write(kept, Path(path).read_text(encoding="utf-8"))

    def arriving(self, checkpoint: Path, number: int) -> Source:
        folder = self._root / folder_of(self._application, STREAMS)
        return Files(folder, "parquet", AT_ONCE, {}, checkpoint, number)


def sent_as(path: str) -> tuple[str, int]:
    """The file of the plan, and the number of the flow, of rows that have arrived.

    >>> sent_as("/x/streams/east/west/job/0a1b/3/batches=0000000007-0000000007/part-0000.parquet")
    ('/x/plans/0a1b.json', 3)
    """
    _, flow, digest, _, _, _, _, root = list(Path(path).parents)[:8]
    return str(root / PLANS / f"{digest.name}.json"), int(flow.name)
