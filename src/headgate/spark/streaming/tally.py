"""What became of a batch, and of all batches of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from headgate.spark.sharing.carried import OnLink
from headgate.spark.streaming.alone import Growth
from headgate.spark.streaming.leader import Evaluation
from headgate.spark.streaming.log import Counts
from headgate.spark.streaming.runs import Progress
from headgate.spark.streaming.task import SAMPLES, Report, summed

Told = Progress | Growth
"""What is told of a continuous query: of one in bounded memory, or of one that grows."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of one batch; `seconds` is the time from its begin to its place in the output.

    `order` tells how an index that adapts has evaluated it, `continuous` of each continuous query
    how many rows it gave and what it stores, `links` what went over each link of a plan.
    """

    number: int
    version: int
    counts: Counts
    seconds: float
    unknown: dict[str, int]
    order: Evaluation | None = None
    continuous: Mapping[str, Told] = field(default_factory=dict)
    links: Mapping[str, OnLink] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What a run has seen; `hits` counts matches by the version of the set and query position.

    `continuous` has what the queries of the last batch store, and the rows of all batches.
    """

    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    batches: int = 0
    counts: Counts = field(default_factory=Counts)
    unknown: dict[str, int] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)
    hits: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
    continuous: dict[str, Told] = field(default_factory=dict)
    links: dict[str, OnLink] = field(default_factory=dict)
    ended_by: str = ""

    @property
    def elapsed(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self.started

    def add(self, batch: Batch, report: Report) -> None:
        self.batches += 1
        self.counts += batch.counts
        self.samples += report.samples[: SAMPLES - len(self.samples)]
        for name, count in report.unknown.items():
            self.unknown[name] = self.unknown.get(name, 0) + count
        before = self.hits.get(batch.version, report.hits[:0])
        self.hits[batch.version] = summed(before, report.hits)
        self.continuous = self._summed(batch.continuous)
        for link, one in batch.links.items():
            self.links[link] = self.links[link] + one if link in self.links else one

    def end(self, rest: Mapping[str, Told]) -> None:
        """The job has ended; queries may have given rows since the last batch."""
        self.seconds = self.elapsed
        self.continuous |= self._summed(rest)

    def _summed(self, told: Mapping[str, Told]) -> dict[str, Told]:
        """With the rows of all batches so far."""
        before = {query_id: progress.rows for query_id, progress in self.continuous.items()}
        return {
            query_id: replace(progress, rows=before.get(query_id, 0) + progress.rows)
            for query_id, progress in told.items()
        }
