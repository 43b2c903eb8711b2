"""How many invalid rows a continuous query has left out.

Tasks send the number along with their rows, and Spark adds it up where the rows pass by
(`observe`), so it is in the progress of a streaming query under a name that begins with `METRIC`.
Spark keeps the progress of the last hundred batches only; a listener adds up all of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import UsageError
from headgate.spark.frames import warn

METRIC = "headgate-skipped-"
SKIPPED = "skipped"
MAX_WAIT = 5.0  # seconds for the metrics of an action that has just ended


class SkippedRows:
    """The observations of one query: one for each frame of rows in which some may be left out."""

    def __init__(self) -> None:
        self._observations: list[Observation] = []

    def observe(self, frame: DataFrame) -> DataFrame:
        """Return the same rows; what is in their column `skipped` is added up as they pass."""
        name = f"{METRIC}{uuid4().hex}"
        total = F.sum(SKIPPED).alias(SKIPPED)
        if frame.isStreaming:
            _listen(frame.sparkSession)
            return frame.observe(name, total)
        # Spark reports the metrics of a batch to such an object only
        self._observations.append(Observation(name))
        return frame.observe(self._observations[-1], total)

    def remember(self, frame: DataFrame) -> DataFrame:
        """Return the frame of the query's answers, of which `count_skipped` can then be asked."""
        if not frame.isStreaming:
            _tables[frame] = self._observations
        return frame


@dataclass(slots=True)
class _RunTotal:
    """The rows that a run has left out, up to a batch."""

    rows: int = 0
    last_batch: int = -1


_tables: WeakKeyDictionary[DataFrame, list[Observation]] = WeakKeyDictionary()
_listening: dict[
    SparkSession, _SkipListener
] = {}  # for good: a query may outlive its session's name
_totals: dict[str, _RunTotal] = {}  # by the run of a streaming query
_warned: set[str] = set()
_lock = Lock()


def count_skipped(result: StreamingQuery | DataFrame) -> int:
    """Return how many invalid rows a query with `invalid="skip"` has left out.

    Parameters
    ----------
    result : StreamingQuery or DataFrame
        A streaming query over the frame of `continuous`: the rows of all its batches since it was
        started. Or that frame itself, if it is not streaming: the rows of its first action.

    Returns
    -------
    int
        The number of rows. Where Spark runs a task again, its rows may be counted again.

    Raises
    ------
    UsageError
        If it is a frame that has not run yet, or not one of `continuous(…, invalid="skip")`.

    Examples
    --------
    Count what a table leaves out::

        totals = hg.spark.continuous(
            "SELECT COUNT(*) AS n FROM trades", {"trades": trades}, invalid="skip"
        )
        totals.show()
        print(hg.spark.count_skipped(totals))
    """
    if isinstance(result, DataFrame):
        return _count_of_table(result)
    # the last batches may not have reached the listener yet
    for progress in result.recentProgress:
        _add(progress)
    with _lock:
        return _totals.get(str(result.runId), _RunTotal()).rows


def _count_of_table(frame: DataFrame) -> int:
    observations = _tables.get(frame)
    if observations is None:
        raise UsageError(
            "this is no DataFrame of hg.spark.continuous(…, invalid='skip') over tables; give that "
            "one, or the streaming query that runs"
        )
    deadline = time.monotonic() + MAX_WAIT
    # `get` would wait for an action for ever
    while not all(map(_has_result, observations)):
        if time.monotonic() > deadline:
            raise UsageError("this DataFrame has not run yet; call an action on it, such as write")
        time.sleep(0.05)
    return sum(each.get[SKIPPED] or 0 for each in observations)


def _has_result(observation: Any) -> bool:
    java = getattr(observation, "_jo", None)
    return bool(java.future().isCompleted()) if java is not None else bool(observation._result)


def _listen(session: SparkSession) -> None:
    if session not in _listening:
        _listening[session] = _SkipListener()
        session.streams.addListener(_listening[session])


class _SkipListener(StreamingQueryListener):
    """Adds up what the queries of a session leave out, and warns of the first rows of each."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: Spark asks for this method."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Add what a batch left out."""
        _add(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: no row came."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: the total stays known."""


def _add(progress: Any) -> None:
    """Add what a batch left out, unless that is counted already; batches come in their order."""
    metrics = progress.observedMetrics
    rows = sum(metrics[name][SKIPPED] or 0 for name in metrics if name.startswith(METRIC))
    run = str(progress.runId)
    with _lock:
        total = _totals.setdefault(run, _RunTotal())
        if progress.batchId <= total.last_batch:
            return
        total.rows += rows
        total.last_batch = progress.batchId
        is_first = bool(rows) and run not in _warned
        if is_first:
            _warned.add(run)
    if is_first:
        warn("invalid rows are left out; hg.spark.count_skipped(query) says how many")
