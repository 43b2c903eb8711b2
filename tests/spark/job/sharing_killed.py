"""Runs a pipeline over a plan and kills its own process, for good, at a point of a chosen batch.

python -m tests.spark.job.sharing_killed PIPELINE POINT BATCH
"""

from __future__ import annotations

import sys
from typing import Any

from headgate.spark.job import sharing_job
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.runner import run
from headgate.spark.job.sharing.exchange import FileExchange
from tests.spark.job import killed

POINTS: dict[str, tuple[Any, str, str]] = {
    "begun": (sharing_job, "new_stage", "before"),
    "sent": (FileExchange, "send", "after"),
    "placed": (BatchLog, "finish", "before"),
    "logged": (BatchLog, "finish", "after"),
}

if __name__ == "__main__":
    pipeline, point, batch = sys.argv[1:]
    killed.POINTS |= POINTS
    killed.die_at(point, int(batch))
    run(pipeline)
