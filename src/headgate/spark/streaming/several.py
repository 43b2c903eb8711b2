"""Several sources as one streaming query: in each batch, what came of every one of them.

One streaming query for all of them, so that a batch has one number, is finished as a whole, and
Spark has one thing to run, however many queries read its streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate.spark.streaming.sources import Source
from headgate.spark.streaming.work import Work

TAG = "headgate_source"


class Several:
    """The sources of a job, in the order by which Spark's checkpoint numbers them."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._columns: list[list[str]] = []

    @property
    def ended(self) -> bool:
        """Has every source seen its last event?"""
        return all(source.ended for source in self._sources)

    @property
    def is_partly_ended(self) -> bool:
        """Does one of them give empty batches, while others may still go on?"""
        return any(source.ended for source in self._sources)

    def open(self, spark: SparkSession) -> DataFrame:
        """The streaming frame that `reports` gets the batches of."""
        frames = [source.open(spark) for source in self._sources]
        self._columns = [frame.columns for frame in frames]
        if len(frames) == 1:
            return frames[0]
        tagged = [frame.withColumn(TAG, F.lit(number)) for number, frame in enumerate(frames)]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), tagged)

    def reports(self, frame: DataFrame, works: Sequence[Work]) -> DataFrame | None:
        """The reports of the tasks on all streams; None if the batch is empty.

        There is work for each source.
        """
        found = [
            reports
            for number, (source, work) in enumerate(zip(self._sources, works, strict=True))
            if (reports := source.reports(self._part(frame, number), work)) is not None
        ]
        return reduce(lambda one, other: one.unionAll(other), found) if found else None

    def _part(self, frame: DataFrame, number: int) -> DataFrame:
        """The rows of a batch that came from one source."""
        if len(self._sources) == 1:
            return frame
        return frame.where(F.col(TAG) == number).select(*self._columns[number])
