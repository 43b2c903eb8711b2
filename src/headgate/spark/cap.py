"""A cap on the state of a streaming query, which is stopped when it has more rows than it may.

After each batch the rows of its state are counted. A query above its cap is stopped as by
`query.stop()`: cleanly, without an exception, and its checkpoint stays what it is. Within a batch
nothing is counted, so a batch must be as small as its source can be told to make it.
"""

from __future__ import annotations

from threading import Thread
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from headgate.spark.frames import warn


def capped(frame: DataFrame, query: str, most_state_rows: int) -> DataFrame:
    """The same rows, of which a listener knows when they have cost too much."""
    mark = f"headgate-{uuid4().hex}"
    session = frame.sparkSession
    if session not in _listeners:
        _listeners[session] = Cap(session)
        session.streams.addListener(_listeners[session])
    _listeners[session].most[mark] = (query, most_state_rows)
    return frame.observe(mark, F.count(F.lit(1)).alias("rows"))


class Cap(StreamingQueryListener):
    """Stops the queries of a session whose state has grown above what they may have.

    It knows them by a metric that is observed in them.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.most: dict[str, tuple[str, int]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        rows = sum(operator.numRowsTotal for operator in progress.stateOperators)
        for mark in progress.observedMetrics:
            query, most = self.most.get(mark, ("", rows))
            if rows > most and str(progress.runId) not in _stopped:
                self._stop(str(progress.id), str(progress.runId), query, rows, most)

    def _stop(self, identifier: str, run: str, query: str, rows: int, most: int) -> None:
        """From a thread of its own: to wait for its end here would hold up all listeners."""
        running = self.session.streams.get(identifier)
        if running is not None:
            _stopped[run] = (
                f"`{query}` was stopped: it needs unbounded memory, and its state has {rows:,} "
                f"rows, which is above most_state_rows = {most:,}"
            )
            Thread(target=_stop, args=(running, _stopped[run]), daemon=True).start()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass


_listeners: dict[SparkSession, Cap] = {}  # for good: a query may outlive all names of its session
_stopped: dict[str, str] = {}


def _stop(running: StreamingQuery, why: str) -> None:
    running.stop()
    warn(why)


def why_stopped(query: StreamingQuery) -> str | None:
    """Why Headgate stopped a query that may need unbounded memory; None if it did not."""
    return _stopped.get(str(query.runId))
