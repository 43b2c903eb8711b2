"""What a task does: read its share of a stream, match it, stage the rows, and report counts.

Rows go from the Python worker straight to the disk. Sent back through Spark they would cross to the
JVM one by one, which takes longer than to match them. What goes back with the counts is what the
continuous queries need of the events.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events import EventBatch, Piece
from headgate.events.batch import select_attributes
from headgate.matching.asc.options import AscOptions
from headgate.schema import Stream
from headgate.spark.job.batch.rows import dead_table, match_schema, match_tables
from headgate.spark.job.batch.work import read, shares_in, typed
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.commit.output import StagedFile
from headgate.spark.job.continuous_query import Reducing, Standing
from headgate.spark.worker import Loaded, loaded

if TYPE_CHECKING:
    from headgate.matching.asc.statistics import Statistics

REPORT = "report string, positions binary, hits binary, reduced map<string, binary>"
SAMPLES = 3  # dead letters that a report shows


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task of a batch knows that reads a stream.

    Its filters are matched if it is `routed`; `order` is the one to evaluate in, if the index has
    any. The events are reduced for each of the `continuous` queries. `checked` are attributes that
    others use of the same events, so what is not valid there is a dead letter too.
    """

    batch: int
    version: int
    snapshot: str
    stream: Stream
    routed: bool
    continuous: tuple[Standing, ...]
    checked: frozenset[str]
    index: str
    asc: AscOptions | None
    order: dict[str, Any] | None
    keep: tuple[str, ...] | None
    format: str
    stage: str

    @property
    def reports(self) -> str:
        return REPORT

    def on_pieces(
        self, shares: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over the numbers of the shares."""
        stream, used = _checked(self)
        for pieces in shares_in(batches, shares):
            yield _report(self, read(pieces, stream, used))

    def on_rows(
        self, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over typed rows, which a column numbers."""
        stream, used = _checked(self)
        yield _report(self, typed(batches, stream, used, source, numbered_by))


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a task, or all tasks of a batch together, did; with the first few dead letters.

    `learned` is what indexes that are led have counted and sampled, by task. `reduced` has the
    reductions for each continuous query and stream, by task too.
    """

    counts: Counts
    files: dict[str, list[str]]
    unknown: dict[str, int]
    samples: list[str]
    hits: npt.NDArray[np.int64]
    learned: list[dict[str, Any]]
    reduced: dict[str, dict[str, list[bytes]]]


@runtime_checkable
class Led(Protocol):
    """An index that evaluates in an order which somebody else finds from what it counts."""

    def follow(self, order: dict[str, Any] | None) -> None: ...

    def take_statistics(self) -> Statistics: ...

    def describe(self) -> dict[str, Any]: ...


def _checked(plan: Plan) -> tuple[Stream, set[str]]:
    """The stream, checked on what the queries use, and the attributes that are used or kept."""
    used = Reducing(plan.stream.name, plan.continuous).attributes | plan.checked
    kept: set[str] = set()
    if plan.routed:
        used |= set(_filters(plan).used)
        kept = {attribute.name for attribute in select_attributes(plan.stream, plan.keep)}
    return plan.stream.keep_checks_on(used), used | kept


def _filters(plan: Plan) -> Loaded:
    return loaded(plan.snapshot, plan.stream.name, plan.index, plan.asc)


class _Matching:
    """The filters of a stream, asked about one batch of events after the other."""

    def __init__(self, plan: Plan, file: StagedFile) -> None:
        self._plan = plan
        self._file = file
        self._queries = _filters(plan)
        self._kept = select_attributes(plan.stream, plan.keep)
        self._schema = match_schema(plan.stream, self._kept)
        self.hits = np.zeros(len(self._queries.index), np.int64)
        index = self._queries.index
        self._led = index if isinstance(index, Led) else None
        if self._led is not None:
            self._led.follow(plan.order)
            self._led.take_statistics()  # without what a task that failed has left

    def add(self, source: str, batch: EventBatch) -> int:
        """Write the matches of a batch; returns how many there are."""
        total = 0
        for matches in self._queries.index.match_chunks(batch):
            total += matches.total
            self.hits += np.bincount(matches.positions, minlength=len(self.hits))
            for table in match_tables(
                batch,
                matches,
                self._schema,
                self._kept,
                self._queries.versions,
                batch_id=self._plan.batch,
                set_version=self._plan.version,
                source=source,
            ):
                self._file.write(table)
        return total

    def learned(self) -> dict[str, Any] | None:
        if self._led is None:
            return None
        sequence = self._led.describe()["order"]
        return {"sequence": sequence, "statistics": self._led.take_statistics().as_json()}


def _report(plan: Plan, batches: Iterator[tuple[str, EventBatch]]) -> pa.RecordBatch:
    counts = Counts()
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    stage = Path(plan.stage)
    reducing = Reducing(plan.stream.name, plan.continuous)
    with ExitStack() as files:
        matched = files.enter_context(StagedFile(stage, "matches", plan.format))
        dead = files.enter_context(StagedFile(stage, "dead", plan.format))
        matching = _Matching(plan, matched) if plan.routed else None
        for source, batch in batches:
            dead.write(dead_table(batch.dead, plan.batch))
            unknown.update(batch.unknown)
            room = SAMPLES - len(samples)
            samples += [f"{one.source}:{one.line}: {one.reason}" for one in batch.dead[:room]]
            reducing.add(batch)
            total = 0 if matching is None else matching.add(source, batch)
            counts += Counts(len(batch.events), len(batch.dead), batch.blank, total)
    told = {
        "stream": plan.stream.name,
        "counts": asdict(counts),
        "files": {"matches": matched.name, "dead": dead.name},
        "unknown": unknown,
        "samples": samples,
        "learned": None if matching is None else matching.learned(),
    }
    hits = np.zeros(0, np.int64) if matching is None else matching.hits
    positions = np.flatnonzero(hits)
    reduced = list(reducing.result().items())
    return pa.RecordBatch.from_pydict(
        {
            "report": [json.dumps(told)],
            "positions": [positions.tobytes()],
            "hits": [hits[positions].tobytes()],
            "reduced": pa.array([reduced], pa.map_(pa.string(), pa.binary())),
        }
    )


def gathered(rows: Iterable[Any]) -> Report:
    """The reports of all tasks as one."""
    counts = Counts()
    files: dict[str, list[str]] = {"matches": [], "dead": []}
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    hits = np.zeros(0, np.int64)
    learned: list[dict[str, Any]] = []
    reduced: dict[str, dict[str, list[bytes]]] = {}
    for row in rows:
        told = json.loads(row.report)
        counts += Counts(**told["counts"])
        unknown.update(told["unknown"])
        samples += told["samples"]
        learned += [told["learned"]] if told["learned"] else []
        for kind, name in told["files"].items():
            files[kind] += [name] if name else []
        for query_id, one in row.reduced.items():
            of_query = reduced.setdefault(query_id, {})
            of_query.setdefault(told["stream"], []).append(bytes(one))
        positions = np.frombuffer(row.positions, np.int64)
        here = np.zeros(positions.max(initial=-1) + 1, np.int64)
        here[positions] = np.frombuffer(row.hits, np.int64)
        hits = summed(hits, here)
    return Report(counts, files, dict(unknown), samples[:SAMPLES], hits, learned, reduced)


def summed(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sum of two arrays, the shorter one filled up with zeros.

    >>> summed(np.array([1, 2]), np.array([5])).tolist()
    [6, 2]
    """
    shorter, longer = sorted((one, other), key=len)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total
