"""The task of a routing job: read a share of a stream, match it, stage the rows, report counts.

Rows go from the Python worker straight to the disk. Sent back through Spark they would cross to the
JVM one by one, which takes longer than matching them. Only counts go back, and what the continuous
queries need of the events.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from headgate.events import DeadLetter, EventBatch, Piece
from headgate.events.batch import select_attributes
from headgate.schema import Stream
from headgate.spark.job.batch.rows import build_dead_table, build_match_schema, build_match_tables
from headgate.spark.job.batch.work import read_typed_rows, select_shares
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.commit.output import DEAD, MATCHES, Part, StagedFile
from headgate.spark.job.event_reduction import ContinuousQuery, EventReducer
from headgate.spark.job.order import Order, OrderFollower
from headgate.spark.job.progress import MAX_SAMPLES, Hits, add_padded
from headgate.spark.worker import IndexConfig, LoadedQueries, load_cached, read_pieces


@dataclass(frozen=True, slots=True)
class RoutingTaskPlan:
    """The work of every task that reads one stream in a batch of a routing job.

    The filters of the stream are matched if it is `routed`; `order` is the one to evaluate in, if
    the index has any. The events are reduced for each of the `continuous` queries. `checked` are
    attributes that unbounded queries use of the same events, so an invalid value there makes a dead
    letter too.
    """

    report_schema: ClassVar[str] = (
        "report string, positions binary, hits binary, reduced map<string, binary>"
    )

    batch_id: int
    version: int
    snapshot: str
    stream: Stream
    routed: bool
    continuous: tuple[ContinuousQuery, ...]
    checked: frozenset[str]
    index: IndexConfig
    order: Order | None
    keep: tuple[str, ...] | None
    format: str
    stage: str

    def process_pieces(
        self, shares: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Process pieces of files, for `mapInArrow` over the numbers of the shares."""
        stream, used = _select_attributes(self)
        for pieces in select_shares(batches, shares):
            yield _run_task(self, read_pieces(pieces, stream, used))

    def process_rows(
        self, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Process typed rows, which a column numbers, for `mapInArrow`."""
        stream, used = _select_attributes(self)
        yield _run_task(self, read_typed_rows(batches, stream, used, source, numbered_by))


@dataclass(frozen=True, slots=True, eq=False)
class RoutingTaskResult:
    """What all tasks of a batch did together.

    `parts` are the staged ones by folder, and `samples` show a few dead letters.
    `learned` is what adaptive indexes have counted and sampled, by task. `reduced` has the
    reductions for each continuous query and stream, by task too.
    """

    counts: Counts
    parts: dict[str, list[Part]]
    unknown: dict[str, int]
    samples: list[str]
    hits: Hits
    learned: list[dict[str, Any]]
    reduced: dict[str, dict[str, list[bytes]]]


def _select_attributes(plan: RoutingTaskPlan) -> tuple[Stream, set[str]]:
    """Return the stream, checked on what queries use, and the attributes that are used or kept."""
    # an event is checked on what some query uses: other attributes may hold anything
    used = EventReducer(plan.stream.name, plan.continuous).attributes | plan.checked
    kept: set[str] = set()
    if plan.routed:
        used |= set(_load_filters(plan).used)
        kept = {attribute.name for attribute in select_attributes(plan.stream, plan.keep)}
    return plan.stream.keep_checks_on(used), used | kept


def _load_filters(plan: RoutingTaskPlan) -> LoadedQueries:
    return load_cached(plan.snapshot, plan.stream.name, plan.index)


class _Matcher:
    """The filters of a stream, matched with one batch of events after the other."""

    def __init__(self, plan: RoutingTaskPlan, file: StagedFile) -> None:
        self._plan = plan
        self._file = file
        self._queries = _load_filters(plan)
        self._kept = select_attributes(plan.stream, plan.keep)
        self._schema = build_match_schema(plan.stream, self._kept)
        self.hits = np.zeros(len(self._queries.index), np.int64)
        index = self._queries.index
        self._follower = index if isinstance(index, OrderFollower) else None
        if self._follower is not None:
            self._follower.follow(plan.order)
            self._follower.take_statistics()  # drop what a failed task has left in this worker

    def add(self, source: str, batch: EventBatch) -> int:
        """Write the matches of a batch, and return how many there are."""
        total = 0
        for matches in self._queries.index.match_chunks(batch):
            total += matches.total
            # positions of one chunk may repeat, so the counts are summed by position
            self.hits += np.bincount(matches.positions, minlength=len(self.hits))
            for table in build_match_tables(
                batch,
                matches,
                self._schema,
                self._kept,
                self._queries.versions,
                batch_id=self._plan.batch_id,
                set_version=self._plan.version,
                source=source,
            ):
                self._file.write(table)
        return total

    def learn(self) -> dict[str, Any] | None:
        """Return what an adaptive index has counted and sampled; None for another index."""
        if self._follower is None:
            return None
        sequence = self._follower.describe()["order"]
        return {"sequence": sequence, "statistics": self._follower.take_statistics().as_json()}


def _run_task(plan: RoutingTaskPlan, batches: Iterator[tuple[str, EventBatch]]) -> pa.RecordBatch:
    """Process all events of a share, and return the report: one row."""
    counts = Counts()
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    stage = Path(plan.stage)
    reducer = EventReducer(plan.stream.name, plan.continuous)
    # the files are synced when the stack closes them, before the report says that they are there
    with ExitStack() as files:
        matches_file = files.enter_context(StagedFile(stage, MATCHES, plan.format))
        dead_file = files.enter_context(StagedFile(stage, DEAD, plan.format))
        matcher = _Matcher(plan, matches_file) if plan.routed else None
        # one batch is in memory at a time, whatever the size of the share
        for source, batch in batches:
            dead_file.write(build_dead_table(batch.dead, plan.batch_id))
            unknown.update(batch.unknown)
            samples += describe_letters(batch.dead[: MAX_SAMPLES - len(samples)])
            reducer.add(batch)
            total = 0 if matcher is None else matcher.add(source, batch)
            counts += Counts(len(batch.events), len(batch.dead), batch.blank, total)
    report = {
        "stream": plan.stream.name,
        "counts": asdict(counts),
        "parts": {
            folder: asdict(file.part)
            for folder, file in ((MATCHES, matches_file), (DEAD, dead_file))
            if file.part is not None
        },
        "unknown": unknown,
        "samples": samples,
        "learned": None if matcher is None else matcher.learn(),
    }
    # of a million queries few match in a batch: hits travel as positions and their counts
    hits = np.zeros(0, np.int64) if matcher is None else matcher.hits
    positions = np.flatnonzero(hits)
    reduced = list(reducer.result().items())
    return pa.RecordBatch.from_pydict(
        {
            "report": [json.dumps(report)],
            "positions": [positions.tobytes()],
            "hits": [hits[positions].tobytes()],
            "reduced": pa.array([reduced], pa.map_(pa.string(), pa.binary())),
        }
    )


def describe_letters(letters: Sequence[DeadLetter]) -> list[str]:
    """Return each dead letter as one line of text."""
    return [f"{letter.source}:{letter.line}: {letter.reason}" for letter in letters]


def merge_reports(rows: Iterable[Any]) -> RoutingTaskResult:
    """Return the reports of all tasks as one result."""
    counts = Counts()
    parts: dict[str, list[Part]] = {MATCHES: [], DEAD: []}
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    hits = np.zeros(0, np.int64)
    learned: list[dict[str, Any]] = []
    reduced: dict[str, dict[str, list[bytes]]] = {}
    for row in rows:
        report = json.loads(row.report)
        counts += Counts(**report["counts"])
        unknown.update(report["unknown"])
        samples += report["samples"]
        # a task without an adaptive index has learned nothing
        learned += [report["learned"]] if report["learned"] else []
        for folder, part in report["parts"].items():
            parts[folder].append(Part(**part))
        for query_id, reduction in row.reduced.items():
            # a join has reductions from each of its streams, and several tasks read each
            by_stream = reduced.setdefault(query_id, {})
            by_stream.setdefault(report["stream"], []).append(bytes(reduction))
        # the arrays of a task reach to its last hit; they are added at their own length
        positions = np.frombuffer(row.positions, np.int64)
        task_hits = np.zeros(positions.max(initial=-1) + 1, np.int64)
        task_hits[positions] = np.frombuffer(row.hits, np.int64)
        hits = add_padded(hits, task_hits)
    return RoutingTaskResult(
        counts, parts, dict(unknown), samples[:MAX_SAMPLES], hits, learned, reduced
    )
