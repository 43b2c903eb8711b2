"""Runs a pipeline and kills its own process, for good, at a chosen point of a chosen batch.

python -m tests.spark.job.killed PIPELINE POINT BATCH
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from headgate.spark.job import routing_job
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.runner import run
from headgate.spark.job.state import RunningQueries

POINTS = {
    "begun": (routing_job, "new_stage", "before"),
    "staged": (routing_job, "merge_reports", "after"),
    "placed": (RunningQueries, "save", "before"),
    "kept": (BatchLog, "finish", "before"),
    "logged": (BatchLog, "finish", "after"),
}


def die_at(point: str, batch: int) -> None:
    """Make a function of the product the last thing that this process does in a batch."""
    place, name, when = POINTS[point]
    real: Callable[..., Any] = getattr(place, name)
    calls = 0

    def last(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls <= batch:
            return real(*arguments)
        if when == "after":
            real(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")

    setattr(place, name, last)


if __name__ == "__main__":
    pipeline, point, batch = sys.argv[1:]
    die_at(point, int(batch))
    run(pipeline)
