"""The plans that a job has run under, each in a file of its own: `state/plans/3-DIGEST.json`.

A batch is logged with the number of its plan before it runs, so a replay runs under the same one.
The digest is that of the text, so what is read under a name never changes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from headgate.errors import JobError
from headgate.queries import compute_query_version
from headgate.sharing.plan import Plan
from headgate.sharing.plan_json import plan_from_json, plan_to_json
from headgate.snapshot.files import sync
from headgate.spark.job.commit.output import make_directory

KEPT = 8  # plans that a process holds on to


class Plans:
    """Plans by number; the newest is the one that a job was started with."""

    def __init__(self, directory: Path, now: Plan) -> None:
        self._directory = directory
        make_directory(directory)
        self._files = {int(one.name.partition("-")[0]): one for one in directory.glob("[0-9]*")}
        text = plan_to_json(now)
        self.newest = max(self._files, default=0)
        if not self._files or self._files[self.newest].stem.partition("-")[2] != digest(text):
            self.newest += 1
            name = f"{self.newest}-{digest(text)}.json"
            self._files[self.newest] = write(directory / name, text)

    def file(self, number: int) -> Path:
        """Where a plan is; a JobError if it is gone, for a batch that began under it needs it."""
        found = self._files.get(number)
        if found is None or not found.exists():
            raise JobError(
                f"{self._directory}: plan {number} is gone, and a batch began under it; "
                "bring it back"
            )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A plan, and the versions of its queries by their ids."""

    digest: str
    plan: Plan
    versions: dict[str, str]


@lru_cache(maxsize=KEPT)
def loaded(path: str) -> Loaded:
    """The plan in a file whose name ends in its digest."""
    text = Path(path).read_text(encoding="utf-8")
    expected = Path(path).stem.rpartition("-")[2]
    if digest(text) != expected:
        raise JobError(f"{path}: was changed or damaged; bring it back")
    plan = plan_from_json(text)
    versions = {one.query.id: compute_query_version(one.query) for one in plan.deliveries}
    return Loaded(expected, plan, versions)


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def write(path: Path, text: str) -> Path:
    """Have a text on the disk, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    sync(draft)
    os.replace(draft, path)
    sync(path.parent)
    return path
