"""What became of a batch, and of all batches of a run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.errors import SnapshotError
from headgate.spark.job.batch.task import SAMPLES, Report, summed
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.order import Evaluation
from headgate.spark.job.sharing.link_traffic import OnLink
from headgate.spark.job.sinks import Memory, Sink
from headgate.spark.job.state import Progress
from headgate.spark.job.unbounded import Growth
from headgate.spark.job.versions import Followed

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


TOP = 5  # queries that a result names as busiest, and as silent


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a run did; `total` counts all runs of the same state.

    `silent` are the queries of the last version that matched nothing in this run. `matches`, `dead`
    and, by the id of the query, `answers` are the rows of a memory sink.
    """

    tally: Tally
    total: Counts
    version: int
    queries: int
    busiest: list[tuple[str, int]]
    silent: int
    silent_ids: list[str]
    places: dict[str, str]
    matches: pa.Table | None = None
    dead: pa.Table | None = None
    answers: dict[str, pa.Table] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        counts, seconds = self.tally.counts, max(self.tally.seconds, 0.001)
        return {
            **_counted(counts),
            "batches": self.tally.batches,
            "seconds": round(seconds, 3),
            "events_per_second": round(counts.events / seconds),
            "matches_per_second": round(counts.matches / seconds),
            "version": self.version,
            "queries": self.queries,
            "busiest": [{"id": name, "matches": hits} for name, hits in self.busiest],
            "silent": self.silent,
            "continuous": {
                query_id: progress.as_json() for query_id, progress in self.tally.continuous.items()
            },
            "links": {name: one.as_json() for name, one in self.tally.links.items()},
            "unknown": self.tally.unknown,
            "ended_by": self.tally.ended_by,
            "all_runs": _counted(self.total),
            "output": self.places,
        }


def _counted(counts: Counts) -> dict[str, int]:
    told = asdict(counts)
    return {
        "events": counts.events,
        **{k: told[k] for k in ("matches", "answers", "dead", "blank")},
    }


def hits_of(tally: Tally, queries: Followed) -> Counter[str]:
    """How often each query was matched, under whichever version."""
    hits = Counter[str]()
    for version, seen in tally.hits.items():
        with suppress(SnapshotError):  # an old version may have been deleted meanwhile
            known = queries.ids(version)
            places = np.flatnonzero(seen[: len(known)]).tolist()
            hits.update({known[at]: int(seen[at]) for at in places})
    return hits


def result_of(
    tally: Tally,
    total: Counts,
    version: int,
    ids: Sequence[str],
    hits: Counter[str],
    sink: Sink,
) -> Result:
    """What a run that has ended did; `ids` are those of the queries that it ended with."""
    silent = [query_id for query_id in ids if not hits[query_id]]
    memory = sink if isinstance(sink, Memory) else None
    return Result(
        tally=tally,
        total=total,
        version=version,
        queries=len(ids),
        busiest=[pair for pair in hits.most_common(TOP) if pair[1]],
        silent=len(silent),
        silent_ids=silent[:TOP],
        places={kind: str(path) for kind, path in sink.places().items()},
        matches=None if memory is None else memory.table("matches"),
        dead=None if memory is None else memory.table("dead"),
        answers={} if memory is None else memory.answers(),
    )
