"""What a task does: read its share of the events, match it, stage the rows, and report counts.

Rows go from the Python worker straight to the disk. Sent back through Spark they would cross to the
JVM one by one, which takes longer than to match them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events import EventBatch, Piece
from headgate.events.batch import used_attributes
from headgate.events.tables import from_table
from headgate.matching.asc.options import AscOptions
from headgate.spark.streaming.log import Counts
from headgate.spark.streaming.rows import dead_table, match_schema, match_tables
from headgate.spark.streaming.staged import StagedFile
from headgate.spark.worker import Loaded, loaded

if TYPE_CHECKING:
    from headgate.matching.asc.statistics import Statistics

REPORT = "report string, positions binary, hits binary"
SAMPLES = 3  # dead letters that a report shows


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task of a batch knows; `order` is the one to evaluate in, if the index has any."""

    batch: int
    version: int
    snapshot: str
    stream: str
    index: str
    asc: AscOptions | None
    order: dict[str, Any] | None
    keep: tuple[str, ...] | None
    format: str
    stage: str


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a task, or all tasks of a batch together, did; with the first few dead letters.

    `learned` is what indexes that are led have counted and sampled, by task.
    """

    counts: Counts
    files: dict[str, list[str]]
    unknown: dict[str, int]
    samples: list[str]
    hits: npt.NDArray[np.int64]
    learned: list[dict[str, Any]]


@runtime_checkable
class Led(Protocol):
    """An index that evaluates in an order which somebody else finds from what it counts."""

    def follow(self, order: dict[str, Any] | None) -> None: ...

    def statistics(self) -> Statistics: ...

    def describe(self) -> dict[str, Any]: ...


def run_pieces(
    plan: Plan, shares: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow` over the numbers of the shares."""
    for numbers in batches:
        for number in numbers.column(0).to_numpy().tolist():
            yield _report(plan, _read(plan, shares[number]))


def run_rows(
    plan: Plan, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow` over typed rows, which a column numbers."""
    yield _report(plan, _typed(plan, source, numbered_by, batches))


def _read(plan: Plan, pieces: Sequence[Piece]) -> Iterator[tuple[str, EventBatch]]:
    queries = _queries(plan)
    kept = [attribute.name for attribute in used_attributes(queries.stream, plan.keep)]
    for piece in pieces:
        for batch in queries.read(piece, kept, bury=True):
            yield piece.path, batch


def _typed(
    plan: Plan, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[str, EventBatch]]:
    queries = _queries(plan)
    kept = {attribute.name for attribute in used_attributes(queries.stream, plan.keep)}
    attributes = [a for a in queries.stream if a.name in kept.union(queries.used)]
    for rows in batches:
        batch = from_table(rows, queries.stream, attributes, source=source)
        numbers = rows.column(numbered_by).to_numpy()
        dead = tuple(replace(one, line=int(numbers[one.event])) for one in batch.dead)
        yield source, replace(batch, lines=numbers[batch.events], dead=dead)


def _queries(plan: Plan) -> Loaded:
    return loaded(plan.snapshot, plan.stream, plan.index, plan.asc)


def _report(plan: Plan, batches: Iterator[tuple[str, EventBatch]]) -> pa.RecordBatch:
    queries = _queries(plan)
    led = queries.index if isinstance(queries.index, Led) else None
    if led is not None:
        led.follow(plan.order)
        led.statistics()  # without what a task that failed has left
    kept = used_attributes(queries.stream, plan.keep)
    schema = match_schema(queries.stream, kept)
    counts = Counts()
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    hits = np.zeros(len(queries.index), np.int64)
    stage = Path(plan.stage)
    with ExitStack() as files:
        matched = files.enter_context(StagedFile(stage, "matches", plan.format))
        dead = files.enter_context(StagedFile(stage, "dead", plan.format))
        for source, batch in batches:
            dead.write(dead_table(batch.dead, plan.batch))
            unknown.update(batch.unknown)
            room = SAMPLES - len(samples)
            samples += [f"{one.source}:{one.line}: {one.reason}" for one in batch.dead[:room]]
            total = 0
            for matches in queries.index.match_chunks(batch):
                total += matches.total
                hits += np.bincount(matches.positions, minlength=len(hits))
                for table in match_tables(
                    batch,
                    matches,
                    schema,
                    kept,
                    queries.versions,
                    batch_id=plan.batch,
                    set_version=plan.version,
                    source=source,
                ):
                    matched.write(table)
            counts += Counts(len(batch.events), len(batch.dead), batch.blank, total)
    told = {
        "counts": asdict(counts),
        "files": {"matches": matched.name, "dead": dead.name},
        "unknown": unknown,
        "samples": samples,
        "learned": None if led is None else _learned(led),
    }
    positions = np.flatnonzero(hits)
    return pa.RecordBatch.from_pydict(
        {
            "report": [json.dumps(told)],
            "positions": [positions.tobytes()],
            "hits": [hits[positions].tobytes()],
        }
    )


def _learned(led: Led) -> dict[str, Any]:
    return {"sequence": led.describe()["order"], "statistics": led.statistics().as_json()}


def gathered(rows: Iterable[Any]) -> Report:
    """The reports of all tasks as one."""
    counts = Counts()
    files: dict[str, list[str]] = {"matches": [], "dead": []}
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    hits = np.zeros(0, np.int64)
    learned: list[dict[str, Any]] = []
    for row in rows:
        told = json.loads(row.report)
        counts += Counts(**told["counts"])
        unknown.update(told["unknown"])
        samples += told["samples"]
        learned += [told["learned"]] if told["learned"] else []
        for kind, name in told["files"].items():
            files[kind] += [name] if name else []
        positions = np.frombuffer(row.positions, np.int64)
        here = np.zeros(positions.max(initial=-1) + 1, np.int64)
        here[positions] = np.frombuffer(row.hits, np.int64)
        hits = summed(hits, here)
    return Report(counts, files, dict(unknown), samples[:SAMPLES], hits, learned)


def summed(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sum of two arrays, the shorter one filled up with zeros.

    >>> summed(np.array([1, 2]), np.array([5])).tolist()
    [6, 2]
    """
    shorter, longer = sorted((one, other), key=len)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total
