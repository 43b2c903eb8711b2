"""What a job and its unbounded queries share as streaming queries of Spark."""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery


class JobStopping(Exception):
    """Raised in a batch that came when the job was already ending: Spark will run it again."""


def is_idle(query: StreamingQuery) -> bool:
    """Return whether Spark has looked for events and seen none.

    At the start and between batches it has not.
    """
    status = query.status
    return str(status["message"]).startswith("Waiting") and not status["isDataAvailable"]
