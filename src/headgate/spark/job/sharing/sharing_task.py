"""The task of a sharing job: read a share of the events, and walk the plan over their rows.

The nodes of an application are only places in a plan: a task takes its rows through all of them.
Results and what leaves the application go from the Python worker straight to the disk.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from headgate.errors import JobError
from headgate.events import EventBatch, Piece, read_piece
from headgate.schema import Stream
from headgate.sharing.plan import Delivery
from headgate.sharing.plan_execution import find_receiver, run_plan
from headgate.spark.job.batch.routing_task import describe_letters
from headgate.spark.job.batch.rows import build_dead_table, label_rows
from headgate.spark.job.batch.work import read_typed_rows, select_shares
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.commit.output import DEAD, Part, StagedFile, encode_folder
from headgate.spark.job.progress import MAX_SAMPLES
from headgate.spark.job.sharing.exchange import LoadedPlan, load_plan, parse_sent_path
from headgate.spark.job.sharing.link_traffic import (
    Traffic,
    TrafficKey,
    build_key,
    measure_traffic,
)
from headgate.spark.worker import BATCH_ROWS, read_pieces

MAX_BUFFERED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class SharingTaskPlan:
    """The work of every task that reads one source in a batch; `plan` is the path of the plan.

    `stream` is None for what comes from another application: each file's path tells its plan and
    flow. Results are staged in `stage`, and what leaves the application in `sending`.
    """

    report_schema: ClassVar[str] = "report string"

    batch_id: int
    application: str
    plan: str
    stream: str | None
    format: str
    stage: str
    sending: str | None

    def process_pieces(
        self, shares: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Process pieces of files, for `mapInArrow` over the numbers of the shares."""
        for pieces in select_shares(batches, shares):
            # files of the exchange may be of different plans: their paths tell which
            if self.stream is None:
                yield self._run_task(_read_arrived(pieces))
            else:
                stream = self._entering
                events = read_pieces(pieces, stream, stream.names)
                yield self._run_task((self.plan, None, batch) for _, batch in events)

    def process_rows(
        self, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Process typed rows, which a column numbers, for `mapInArrow`."""
        stream = self._entering
        events = read_typed_rows(batches, stream, stream.names, source, numbered_by)
        yield self._run_task((self.plan, None, batch) for _, batch in events)

    @property
    def _entering(self) -> Stream:
        """The stream that enters; events are checked on every attribute, whoever reads it."""
        assert self.stream is not None
        return load_plan(self.plan).plan.origins[self.stream].stream

    def _run_task(self, batches: Iterable[Arrived]) -> pa.RecordBatch:
        walk = _PlanWalk(self)
        for path, flow, batch in batches:
            walk.add(path, flow, batch)
        return pa.RecordBatch.from_pydict({"report": [json.dumps(walk.finish())]})


Arrived = tuple[str, int | None, EventBatch]
"""Rows, with the path of their plan, and the flow at whose end they are; None at their origin."""


def _read_arrived(pieces: Sequence[Piece]) -> Iterator[Arrived]:
    """Yield what another application has sent; its rows were checked where they entered."""
    for piece in pieces:
        path, number = parse_sent_path(piece.path)
        plan = load_plan(path).plan
        flow = plan.flows[number]
        # no CHECK is repeated: the rows were valid when they entered
        stream = plan.origins[flow.stream].stream.keep_checks_on(())
        for batch in read_piece(piece, stream, columns=flow.columns, batch_rows=BATCH_ROWS):
            if batch.dead:
                raise JobError(f"{piece.path}: was changed or damaged: {batch.dead[0].reason}")
            yield path, number, batch


class _PlanWalk:
    """The way of a task's events through the nodes, one batch of them after the other."""

    def __init__(self, work: SharingTaskPlan) -> None:
        self._work = work
        self._counts = Counts()
        self._unknown: Counter[str] = Counter()
        self._samples: list[str] = []
        self._traffic: defaultdict[TrafficKey, Traffic] = defaultdict(Traffic)
        self._results = RowBuffer(Path(work.stage), work.format)
        self._sent = RowBuffer(Path(work.sending or work.stage), "parquet")

    def add(self, path: str, flow: int | None, batch: EventBatch) -> None:
        """Take a batch of events through the plan, from its origin or from the end of a flow."""
        loaded = load_plan(path)
        name = batch.stream.name
        rows = pa.Table.from_batches([batch.table])
        # rows enter here; those from a flow were counted at their origin
        if flow is None:
            origin = loaded.plan.origins[name]
            self._traffic[build_key(path, origin)] += measure_traffic(origin, rows, origin.stream)
        # the plan may be an older one than that of this batch, where rows come from elsewhere
        answers = self._walk(path, flow, rows, loaded, name)
        self._results.add(DEAD, build_dead_table(batch.dead, self._work.batch_id))
        self._unknown.update(batch.unknown)
        self._samples += describe_letters(batch.dead[: MAX_SAMPLES - len(self._samples)])
        self._counts += Counts(
            len(batch.events), len(batch.dead), batch.blank, matches=0, answers=answers
        )

    def _walk(
        self, path: str, flow: int | None, rows: pa.Table, loaded: LoadedPlan, name: str
    ) -> int:
        """Take rows onward, and return how many came out as results."""
        work, plan, answers = self._work, loaded.plan, 0
        stream = plan.origins[name].stream
        # each step gives what moves, a flow or a delivery, with the rows that take it
        for moving, moved in run_plan(plan, name, rows, flow=flow, application=work.application):
            self._traffic[build_key(path, moving)] += measure_traffic(moving, moved, stream)
            if isinstance(moving, Delivery):
                answers += moved.num_rows
                query_id = moving.query.id
                table = label_rows(moved, work.batch_id, query_id, loaded.versions[query_id])
                self._results.add(encode_folder(query_id), table)
            # inside the application nothing is stored: `run_plan` takes the rows on by itself
            elif find_receiver(plan, moving) is not None:
                self._sent.add(f"{moving.number} {path}", moved)
        return answers

    def finish(self) -> dict[str, Any]:
        """Write what is still buffered, and return the report."""
        # keys of JSON are texts, so the traffic is grouped by plan
        by_plan: defaultdict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
        for (path, kind, name), traffic in self._traffic.items():
            by_plan[path].append((kind, name, traffic.rows, traffic.bytes))
        return {
            "counts": asdict(self._counts),
            "unknown": self._unknown,
            "samples": self._samples,
            "parts": self._results.finish(),
            "sent": self._sent.finish(),
            "traffic": by_plan,
        }


@dataclass(frozen=True, slots=True, eq=False)
class SharingTaskResult:
    """What all tasks of a batch did together; `parts` by folder, `sent` by plan and flow."""

    counts: Counts
    unknown: dict[str, int]
    samples: list[str]
    parts: dict[str, list[Part]]
    sent: dict[tuple[str, int], list[Part]]
    traffic: dict[TrafficKey, Traffic]


def merge_reports(rows: Iterable[Any]) -> SharingTaskResult:
    """Return the reports of all tasks as one result."""
    counts = Counts()
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    sent: defaultdict[tuple[str, int], list[Part]] = defaultdict(list)
    traffic: defaultdict[TrafficKey, Traffic] = defaultdict(Traffic)
    for row in rows:
        report = json.loads(row.report)
        counts += Counts(**report["counts"])
        unknown.update(report["unknown"])
        samples += report["samples"]
        for folder, staged in report["parts"].items():
            parts[folder] += [Part(**part) for part in staged]
        for key, staged in report["sent"].items():
            # the key of a sent part: the number of its flow, and the path of its plan
            number, _, path = key.partition(" ")
            sent[path, int(number)] += [Part(**part) for part in staged]
        for path, lines in report["traffic"].items():
            for kind, name, row_count, byte_count in lines:
                traffic[path, kind, name] += Traffic(row_count, byte_count)
    return SharingTaskResult(
        counts, dict(unknown), samples[:MAX_SAMPLES], parts, sent, dict(traffic)
    )


class RowBuffer:
    """Rows for many folders, buffered by a task until they are worth a file.

    One file is open at a time, however many folders there are. A folder without rows has no file.
    """

    def __init__(self, stage: Path, format: str) -> None:
        self._stage = stage
        self._format = format
        self._tables: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._parts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._bytes = 0

    def add(self, folder: str, table: pa.Table) -> None:
        """Buffer rows of a folder, and write all folders when the buffer is full."""
        if not table.num_rows:
            return
        self._tables[folder].append(table)
        # one limit for all folders: a task may have thousands of them
        self._bytes += table.nbytes
        if self._bytes > MAX_BUFFERED_BYTES:
            self._flush()

    def finish(self) -> dict[str, list[dict[str, Any]]]:
        """Write what is buffered, and return all parts by folder, as a report has them."""
        self._flush()
        return dict(self._parts)

    def _flush(self) -> None:
        for folder, tables in self._tables.items():
            # a file for each flush; a folder may have more than one
            with StagedFile(self._stage, "rows", self._format) as file:
                file.write(pa.concat_tables(tables))
            assert file.part is not None
            self._parts[folder].append(asdict(file.part))
        self._tables.clear()
        self._bytes = 0
