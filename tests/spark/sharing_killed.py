"""Runs a pipeline over a plan and kills its own process, for good, at a point of a chosen batch.

python -m tests.spark.sharing_killed PIPELINE POINT BATCH
"""

from __future__ import annotations

import sys
from typing import Any

from headgate.spark.running import run
from headgate.spark.sharing import job
from headgate.spark.sharing.exchange import FileExchange
from headgate.spark.streaming.log import BatchLog
from tests.spark.streaming import killed

POINTS: dict[str, tuple[Any, str, str]] = {
    "begun": (job, "new_stage", "before"),
    "sent": (FileExchange, "send", "after"),
    "placed": (BatchLog, "finish", "before"),
    "logged": (BatchLog, "finish", "after"),
}

if __name__ == "__main__":
    pipeline, point, batch = sys.argv[1:]
    killed.POINTS |= POINTS
    killed.die_at(point, int(batch))
    run(pipeline)
