"""A run goes on where the one before it ended, or says why it cannot.

Spark's checkpoint, our log and the output tell of the same batches, and what was written must stay
readable as one table. If one of the three was lost, or the job became another, batches would be
passed over or numbered anew; so that is refused, before anything is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from headgate.errors import JobError
from headgate.snapshot.files import sync
from headgate.spark.streaming.checkpoint import last_planned
from headgate.spark.streaming.log import BatchLog

FILE = "job.json"

Described = Mapping[str, str | None]


def check_batches(log: BatchLog, checkpoint: Path) -> None:
    """Spark has planned just the batches that the log knows, and perhaps the next one."""
    planned = -1 if (found := last_planned(checkpoint)) is None else found
    done = -1 if log.last is None else log.last
    if planned not in (done, done + 1):
        raise JobError(
            f"{checkpoint.parent}: the log tells of batches up to {done}, and Spark's checkpoint "
            f"of {planned}: one of them was deleted or brought back alone; "
            "bring both back, or begin anew with another `sink.path` and `checkpoint`"
        )


def remembered(state: Path) -> dict[str, str | None]:
    """What earlier runs said about the job; nothing before the first."""
    try:
        found: dict[str, str | None] = json.loads((state / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise JobError(f"{state / FILE}: was changed or damaged; bring it back") from None
    return found


def check_description(state: Path, described: Described) -> None:
    """The job is what it was, or a JobError; what it is, is remembered for the next run."""
    before = remembered(state)
    for key, now in described.items():
        if before.get(key) not in (None, now):
            raise JobError(
                f"{state}: the {key} of this job was {before[key]}, and is {now} now; "
                "a job cannot become another, so give this one a `sink.path` and `checkpoint` "
                "of its own"
            )
    if before != described:
        draft = state / f".{FILE}"
        draft.write_text(json.dumps(dict(described), indent=1) + "\n", encoding="utf-8")
        sync(draft)
        os.replace(draft, state / FILE)
        sync(state)
