"""The plans that a job has run under, each in a file of its own: `state/plans/3-DIGEST.json`.

A batch is logged with the number of its plan before it runs, so a replay runs under the same one.
The digest is that of the text, so what is read under a name never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from headgate.errors import JobError
from headgate.queries import compute_query_version
from headgate.sharing.plan import Plan
from headgate.sharing.plan_json import plan_from_json, plan_to_json
from headgate.spark.job.commit.output import make_directory, write_atomically

MAX_CACHED_PLANS = 8  # in one process


class PlanFiles:
    """Plans by number; the newest is the one that a job was started with."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        self._directory = directory
        make_directory(directory)
        self._files = {int(file.name.partition("-")[0]): file for file in directory.glob("[0-9]*")}
        text = plan_to_json(plan)
        digest = compute_digest(text)
        self.newest = max(self._files, default=0)
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
