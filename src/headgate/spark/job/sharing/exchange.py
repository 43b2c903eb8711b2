"""What a sharing job keeps in files: the plans that it ran under, and the streams that it sends.

Each plan is in a file of its own, `state/plans/3-DIGEST.json`. A batch is logged with the number of
its plan before it runs, so a replay runs under the same one. The digest is that of the text, so
what is read under a name never changes.

Streams cross from one application to another through a directory that both reach:

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
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from headgate.errors import JobError
from headgate.queries import compute_query_version
from headgate.sharing.plan import Plan
from headgate.sharing.plan_execution import find_receiver
from headgate.sharing.plan_json import plan_from_json, plan_to_json
from headgate.spark.job.commit.claim import claim_place
from headgate.spark.job.commit.output import (
    Part,
    Span,
    encode_folder,
    make_directory,
    new_stage,
    place_parts,
    write_atomically,
)
from headgate.spark.job.sources import FileSource, Source

MAX_CACHED_PLANS = 8  # in one process
STREAMS, PLANS = "streams", "plans"
FILES_PER_TRIGGER = 100


class PlanFiles:
    """Plans by number; the newest is the one that a job was started with.

    `last` is the number that the last batch used, if there was one.
    """

    def __init__(self, directory: Path, plan: Plan, last: int | None = None) -> None:
        self._directory = directory
        make_directory(directory)
        self._files = {int(file.name.partition("-")[0]): file for file in directory.glob("[0-9]*")}
        text = plan_to_json(plan)
        digest = compute_digest(text)
        self.newest = max(self._files, default=0)
        # another plan would get the number of one that batches ran under
        if last is not None and self.newest < last:
            raise JobError(
                f"{directory}: plan {last}, the last that a batch used, is gone; restore it"
            )
        # the same plan keeps its number over restarts
        if not self._files or self._files[self.newest].stem.partition("-")[2] != digest:
            self.newest += 1
            path = directory / f"{self.newest}-{digest}.json"
            self._files[self.newest] = write_atomically(path, text)

    def file(self, number: int) -> Path:
        """Return where a plan is; raise a JobError if it is gone, as its batches need it."""
        file = self._files.get(number)
        if file is None or not file.exists():
            raise JobError(
                f"{self._directory}: plan {number} is gone, and a batch began under it; restore it"
            )
        return file


@dataclass(frozen=True, slots=True, eq=False)
class LoadedPlan:
    """A plan, and the versions of its queries by their ids."""

    digest: str
    plan: Plan
    versions: dict[str, str]


@lru_cache(maxsize=MAX_CACHED_PLANS)
def load_plan(path: str) -> LoadedPlan:
    """Return the plan in a file whose name ends in its digest."""
    text = Path(path).read_text(encoding="utf-8")
    expected = Path(path).stem.rpartition("-")[2]
    if compute_digest(text) != expected:
        raise JobError(f"{path}: was changed or damaged; restore it")
    plan = plan_from_json(text)
    versions = {
        delivery.query.id: compute_query_version(delivery.query) for delivery in plan.deliveries
    }
    return LoadedPlan(expected, plan, versions)


def compute_digest(text: str) -> str:
    """Return the hash by which a plan is known."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


SentParts = Mapping[tuple[str, int], Sequence[Part]]
"""The parts of a batch by the path of the plan and the number of the flow in it."""


class Exchange(Protocol):
    """Where an application sends what leaves it, and finds what comes to it.

    All methods run on the driver. Topics of Kafka could stand here as well as files.
    """

    def claim(self, state: Path, *, began: bool) -> None:
        """Make certain that no other job sends as this application; called once, before the start.

        `began` says whether the job has finished a batch. Raises a JobError if another job sends.
        """

    def new_stage(self) -> Path:
        """Return a new directory into which tasks write what a batch sends; called once a batch."""

    def send(self, batch: int, parts: SentParts) -> None:
        """Take over the parts of a batch; it may block.

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

    def send(self, batch: int, parts: SentParts) -> None:
        """Place the parts; never replace any: a replay has the same, and some may be read."""
        for (path, number), staged in parts.items():
            loaded = load_plan(path)
            flow = loaded.plan.flows[number]
            # only flows that leave the application were staged, so there is a receiver
            to = find_receiver(loaded.plan, flow)
            assert to is not None
            # the plan is there before its rows: a reader of these needs it
            self._copy_plan(path, loaded.digest)
            folder = self._root / encode_folder(to, STREAMS) / self._name / self._job
            span = Span(batch, batch, folder / loaded.digest / str(number))
            # a replay: the rows are there, and may have been read
            if not span.path.exists():
                place_parts(staged, span, self._stages)

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
    # upward from the file: batch, flow, digest, job, sender, receiver, streams, root
    _, flow, digest, _, _, _, _, root = list(Path(path).parents)[:8]
    return str(root / PLANS / f"{digest.name}.json"), int(flow.name)
