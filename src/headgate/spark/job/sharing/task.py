"""What a task does: read its share of the events, and walk the plan over their rows.

The nodes of an application are only places in a plan: a task takes its rows through all of them.
Results and what leaves the application go from the Python worker straight to the disk.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.errors import JobError
from headgate.events import EventBatch, Piece, read_piece
from headgate.schema import Stream
from headgate.sharing.plan import Delivery
from headgate.sharing.plan_execution import find_receiver, run_plan
from headgate.spark.job.batch.rows import dead_table
from headgate.spark.job.batch.task import SAMPLES
from headgate.spark.job.batch.work import read, shares_in, typed
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.commit.output import StagedFile
from headgate.spark.job.continuous_query import folder_of
from headgate.spark.job.sharing.exchange import sent_as
from headgate.spark.job.sharing.link_traffic import Carried, Key, key_of, weighed
from headgate.spark.job.sharing.plans import Loaded, loaded
from headgate.spark.job.state import labelled
from headgate.spark.worker import BATCH_ROWS

REPORT = "report string"
DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Walking:
    """What every task of a batch knows that reads a source; `plan` is where the plan is.

    `stream` is None for what comes from another application: each file tells its plan and flow.
    Results are staged in `stage`, and what leaves the application in `sending`.
    """

    batch: int
    application: str
    plan: str
    stream: str | None
    format: str
    stage: str
    sending: str | None

    @property
    def reports(self) -> str:
        return REPORT

    def on_pieces(
        self, shares: Sequence[Sequence[Piece]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over the numbers of the shares."""
        for pieces in shares_in(batches, shares):
            if self.stream is None:
                yield self._report(_arrived(pieces))
            else:
                stream = self._entering
                events = read(pieces, stream, stream.names)
                yield self._report((self.plan, None, batch) for _, batch in events)

    def on_rows(
        self, source: str, numbered_by: str, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over typed rows, which a column numbers."""
        stream = self._entering
        events = typed(batches, stream, stream.names, source, numbered_by)
        yield self._report((self.plan, None, batch) for _, batch in events)

    @property
    def _entering(self) -> Stream:
        """An event is checked on every attribute, whichever queries there are."""
        assert self.stream is not None
        return loaded(self.plan).plan.origins[self.stream].stream

    def _report(self, batches: Iterable[Arrived]) -> pa.RecordBatch:
        walk = _Walk(self)
        for path, flow, batch in batches:
            walk.add(path, flow, batch)
        return pa.RecordBatch.from_pydict({"report": [json.dumps(walk.end())]})


Arrived = tuple[str, int | None, EventBatch]
"""Rows, with the plan by which they go on, and the flow at whose end they are."""


def _arrived(pieces: Sequence[Piece]) -> Iterator[Arrived]:
    """What another application has sent; its rows were checked where they entered."""
    for piece in pieces:
        path, number = sent_as(piece.path)
        plan = loaded(path).plan
        flow = plan.flows[number]
        stream = plan.origins[flow.stream].stream.keep_checks_on(())
        for batch in read_piece(piece, stream, columns=flow.columns, batch_rows=BATCH_ROWS):
            if batch.dead:
                raise JobError(f"{piece.path}: was changed or damaged: {batch.dead[0].reason}")
            yield path, number, batch


class _Walk:
    """The way of a task's events through the nodes, one batch of them after the other."""

    def __init__(self, work: Walking) -> None:
        self._work = work
        self._counts = Counts()
        self._unknown: Counter[str] = Counter()
        self._samples: list[str] = []
        self._carried: defaultdict[Key, Carried] = defaultdict(Carried)
        self._results = HeldBack(Path(work.stage), work.format)
        self._sent = HeldBack(Path(work.sending or work.stage), "parquet")

    def add(self, path: str, flow: int | None, batch: EventBatch) -> None:
        work, found = self._work, loaded(path)
        name = batch.stream.name
        rows = pa.Table.from_batches([batch.table])
        if flow is None:
            origin = found.plan.origins[name]
            self._carried[key_of(path, origin)] += weighed(origin, rows, origin.stream)
        answers = self._walk(path, flow, rows, found, name)
        self._results.add(DEAD, dead_table(batch.dead, work.batch))
        self._unknown.update(batch.unknown)
        room = SAMPLES - len(self._samples)
        self._samples += [f"{one.source}:{one.line}: {one.reason}" for one in batch.dead[:room]]
        self._counts += Counts(
            len(batch.events), len(batch.dead), batch.blank, matches=0, answers=answers
        )

    def _walk(self, path: str, flow: int | None, rows: pa.Table, found: Loaded, name: str) -> int:
        """Take rows onward; returns how many came out as results."""
        work, plan, answers = self._work, found.plan, 0
        for moving, carried in run_plan(plan, name, rows, flow=flow, application=work.application):
            stream = plan.origins[name].stream
            self._carried[key_of(path, moving)] += weighed(moving, carried, stream)
            if isinstance(moving, Delivery):
                answers += carried.num_rows
                query_id = moving.query.id
                table = labelled(carried, work.batch, query_id, found.versions[query_id])
                self._results.add(folder_of(query_id), table)
            elif find_receiver(plan, moving) is not None:
                self._sent.add(f"{moving.number} {path}", carried)
        return answers

    def end(self) -> dict[str, Any]:
        """Write what is held back, and tell all."""
        return {
            "counts": asdict(self._counts),
            "unknown": self._unknown,
            "samples": self._samples,
            "files": self._results.end(),
            "sent": self._sent.end(),
            "carried": self._told(),
        }

    def _told(self) -> dict[str, list[tuple[str, str, int, int]]]:
        """What was carried, by plan."""
        found: defaultdict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
        for (path, kind, name), one in self._carried.items():
            found[path].append((kind, name, one.rows, one.bytes))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """What all tasks of a batch did together."""

    counts: Counts
    unknown: dict[str, int]
    samples: list[str]
    files: dict[str, list[Path]]
    sent: dict[tuple[str, int], list[Path]]
    carried: dict[Key, Carried]


def gathered(rows: Iterable[Any], stage: Path, sending: Path | None) -> Walked:
    """The reports of all tasks as one."""
    counts = Counts()
    unknown: Counter[str] = Counter()
    samples: list[str] = []
    files: defaultdict[str, list[Path]] = defaultdict(list)
    sent: defaultdict[tuple[str, int], list[Path]] = defaultdict(list)
    carried: defaultdict[Key, Carried] = defaultdict(Carried)
    for row in rows:
        told = json.loads(row.report)
        counts += Counts(**told["counts"])
        unknown.update(told["unknown"])
        samples += told["samples"]
        for folder, names in told["files"].items():
            files[folder] += [stage / name for name in names]
        for key, names in told["sent"].items():
            number, _, path = key.partition(" ")
            assert sending is not None
            sent[path, int(number)] += [sending / name for name in names]
        for path, lines in told["carried"].items():
            for kind, name, some, size in lines:
                carried[path, kind, name] += Carried(some, size)
    return Walked(counts, dict(unknown), samples[:SAMPLES], files, sent, dict(carried))


MOST_BYTES = 64 << 20  # that are held back


class HeldBack:
    """Tables by folder; one file is open at a time, however many folders there are.

    A folder without rows has no file.
    """

    def __init__(self, stage: Path, format: str) -> None:
        self._stage = stage
        self._format = format
        self._tables: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._files: defaultdict[str, list[str]] = defaultdict(list)
        self._bytes = 0

    def add(self, folder: str, table: pa.Table) -> None:
        if not table.num_rows:
            return
        self._tables[folder].append(table)
        self._bytes += table.nbytes
        if self._bytes > MOST_BYTES:
            self._write()

    def end(self) -> dict[str, list[str]]:
        """The names of all files by folder, on the disk now."""
        self._write()
        return dict(self._files)

    def _write(self) -> None:
        for folder, tables in self._tables.items():
            with StagedFile(self._stage, "rows", self._format) as file:
                file.write(pa.concat_tables(tables))
            self._files[folder].append(str(file.name))
        self._tables.clear()
        self._bytes = 0
