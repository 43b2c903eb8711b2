"""What a batch gave, what a run has seen so far, and the result of a run that has ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.sharing.sampled_stream import Estimate
from headgate.spark.job.commit.log import Counts

MAX_SAMPLES = 3  # dead letters that a result shows
MAX_LISTED_IDS = 5  # queries that a result names as busiest, and as silent
NOTHING = Estimate(0.0, 0.0, 0.0)

Hits = npt.NDArray[np.int64]
"""The number of matches by the position of the query."""


@dataclass(frozen=True, slots=True)
class BoundedProgress:
    """The rows that a bounded query gave, and what it stores: now, and at most if that is known."""

    rows: int
    values: int
    bytes: int
    max_values: int | None
    max_bytes: int | None

    def as_json(self) -> dict[str, Any]:
        """Return the progress as it stands in the progress line."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class UnboundedProgress:
    """The rows that an unbounded query gave, and how many Spark keeps for it: now, and at most."""

    rows: int
    state_rows: int
    max_state_rows: int

    def as_json(self) -> dict[str, Any]:
        """Return the progress as it stands in the progress line."""
        return asdict(self)


QueryProgress = BoundedProgress | UnboundedProgress


@dataclass(frozen=True, slots=True)
class OrderReport:
    """How a batch was evaluated: in which `sequence` of constructs, and at what cost.

    `dropping_ratio` is the share of events that the constructs left no query of, `evaluated` the
    constructs that an event took on average, `micro_ratio` the share of its steps that followed a
    micro-arrow. `rearranged` says why the next batch has another order, if it has.
    """

    sequence: list[str]
    dropping_ratio: float
    evaluated: float
    micro_ratio: float
    rearranged: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the report as it stands in the progress line."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """What went over a link, and the bytes that the plan expected, as an interval.

    Nothing is expected where a stream came from another application: how many events it had at its
    source is not known here.
    """

    rows: int = 0
    bytes: int = 0
    expected: Estimate | None = NOTHING

    def __add__(self, other: LinkTraffic) -> LinkTraffic:
        expected = None
        if self.expected is not None and other.expected is not None:
            # ends are added, which is at least as wide as the interval of the sum
            expected = Estimate(
                self.expected.low + other.expected.low,
                self.expected.value + other.expected.value,
                self.expected.high + other.expected.high,
            )
        return LinkTraffic(self.rows + other.rows, self.bytes + other.bytes, expected)

    def as_json(self) -> dict[str, Any]:
        """Return the traffic as it stands in the result of a run."""
        expected = None
        if self.expected is not None:
            ends = self.expected.low, self.expected.value, self.expected.high
            expected = dict(zip(("low", "value", "high"), map(round, ends), strict=True))
        return {"rows": self.rows, "bytes": self.bytes, "expected_bytes": expected}


def _no_hits() -> Hits:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class BatchResult:
    """What one batch gave, whichever kind of job processed it.

    `version` is that of the queries, or of the plan, under which the batch ran. `seconds` is the
    time from its begin to its place in the output, and is filled in by the base of all jobs.
    `unknown` counts the keys of events that no attribute has. `order` says how an adaptive index
    evaluated it, `continuous` of each continuous query what it gave and stores, `links` what went
    over each link of a plan. `samples` shows a few dead letters, and `hits` counts the matches of
    each filter.
    """

    number: int
    version: int
    counts: Counts
    seconds: float = 0.0
    unknown: Mapping[str, int] = field(default_factory=dict)
    order: OrderReport | None = None
    continuous: Mapping[str, QueryProgress] = field(default_factory=dict)
    links: Mapping[str, LinkTraffic] = field(default_factory=dict)
    samples: Sequence[str] = ()
    hits: Hits = field(default_factory=_no_hits)


@dataclass(slots=True)
class RunStats:
    """What a run has seen so far; `hits` counts matches by the version of the set.

    `continuous` has what the queries of the last batch store, and the rows of all batches.
    """

    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    batches: int = 0
    counts: Counts = field(default_factory=Counts)
    unknown: dict[str, int] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)
    hits: dict[int, Hits] = field(default_factory=dict)
    continuous: dict[str, QueryProgress] = field(default_factory=dict)
    links: dict[str, LinkTraffic] = field(default_factory=dict)
    ended_by: str = ""

    @property
    def elapsed(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self.started

    def add(self, batch: BatchResult) -> None:
        """Add what a batch gave."""
        self.batches += 1
        self.counts += batch.counts
        # the first few dead letters of the run are enough to see what is wrong
        self.samples += batch.samples[: MAX_SAMPLES - len(self.samples)]
        for name, count in batch.unknown.items():
            self.unknown[name] = self.unknown.get(name, 0) + count
        # another version may have other queries at the same positions
        before = self.hits.get(batch.version, _no_hits())
        self.hits[batch.version] = add_padded(before, batch.hits)
        self.continuous = self._add_rows(batch.continuous)
        for link, traffic in batch.links.items():
            self.links[link] = self.links.get(link, LinkTraffic()) + traffic

    def finish(self, latest: Mapping[str, QueryProgress]) -> None:
        """Record the end of the job; `latest` is what queries gave since the last batch."""
        self.seconds = self.elapsed
        # only companions have given rows since; the other queries keep their last progress
        self.continuous |= self._add_rows(latest)

    def _add_rows(self, latest: Mapping[str, QueryProgress]) -> dict[str, QueryProgress]:
        """Return the latest progress with the rows of all batches so far."""
        # a query that is not in the last batch any more is dropped with its rows
        before = {query_id: progress.rows for query_id, progress in self.continuous.items()}
        return {
            query_id: replace(progress, rows=before.get(query_id, 0) + progress.rows)
            for query_id, progress in latest.items()
        }


@dataclass(frozen=True, slots=True)
class QueryHits:
    """The queries that a run ended with, by id, and how often each was matched in the run."""

    version: int
    ids: Sequence[str]
    hits: Counter[str]


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """What a run did.

    Attributes
    ----------
    stats : RunStats
        Counts, rates and the state of continuous queries in this run.
    total : Counts
        The counts of all runs of the same state.
    version : int
        The version of the queries under which the run ended.
    queries : int
        How many filters that version has.
    busiest : list of (str, int)
        The ids with the most matches in this run.
    silent : int
        How many queries of the last version matched nothing in this run.
    silent_ids : list of str
        The first few of these.
    places : dict
        Where the output is, by kind of row.
    matches : pyarrow.Table or None
        The matches, if the sink is in memory.
    dead : pyarrow.Table or None
        The dead letters, if the sink is in memory.
    answers : dict
        The rows of a memory sink by the id of the continuous query.

    Examples
    --------
    Look at the matches of a job whose sink is in memory, and at the queries that had most::

        result = hg.spark.run("pipeline.toml", spark=spark)
        print(result.matches.to_pylist(), result.busiest, result.silent_ids)
    """

    stats: RunStats
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
        """Return the result as `headgate run --format json` prints it."""
        counts, seconds = self.stats.counts, max(self.stats.seconds, 0.001)
        return {
            **_counts_as_json(counts),
            "batches": self.stats.batches,
            "seconds": round(seconds, 3),
            "events_per_second": round(counts.events / seconds),
            "matches_per_second": round(counts.matches / seconds),
            "version": self.version,
            "queries": self.queries,
            "busiest": [{"id": name, "matches": hits} for name, hits in self.busiest],
            "silent": self.silent,
            "continuous": {
                query_id: progress.as_json() for query_id, progress in self.stats.continuous.items()
            },
            "links": {name: traffic.as_json() for name, traffic in self.stats.links.items()},
            "unknown": self.stats.unknown,
            "ended_by": self.stats.ended_by,
            "all_runs": _counts_as_json(self.total),
            "output": self.places,
        }


def _counts_as_json(counts: Counts) -> dict[str, int]:
    values = asdict(counts)
    return {
        "events": counts.events,
        **{name: values[name] for name in ("matches", "answers", "dead", "blank")},
    }


def add_padded(left: Hits, right: Hits) -> Hits:
    """Return the sum of two arrays, the shorter one filled up with zeros.

    >>> add_padded(np.array([1, 2]), np.array([5])).tolist()
    [6, 2]
    """
    shorter, longer = sorted((left, right), key=len)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total
