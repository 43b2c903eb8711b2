"""A query that bounded memory is not enough for, in a streaming query of Spark of its own.

Spark keeps its state and its offsets, apart from those of the job. As with the job, the rows of a
batch appear under its number by one rename, and a batch that Spark runs again after a crash puts
the same rows in their place. A query that has become another begins anew, with the first event
that there is, and its batches are numbered on from the last.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import HeadgateError, JobError
from headgate.snapshot.files import sync
from headgate.spark.cap import why_stopped
from headgate.spark.failure import reason
from headgate.spark.frames import arrow_schema
from headgate.spark.streaming.checkpoint import last_planned, planned_files
from headgate.spark.streaming.described import Mode
from headgate.spark.streaming.output import UNBOUNDED, make_directory, new_stage
from headgate.spark.streaming.runs import labelled
from headgate.spark.streaming.sinks import Sink
from headgate.spark.streaming.staged import StagedFile
from headgate.spark.streaming.standing import Standing, folder_of

FILE = "query.json"
STAGED = "name string, rows long"


class Stopped(Exception):
    """Raised in a batch that came when the job was already ending: Spark will ask for it again."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How many rows a query gave, and how many Spark keeps for it: now, and at most."""

    rows: int
    state_rows: int
    most_state_rows: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Alone:
    """One such query: it starts, gives the rows of batch after batch to the sink, and ends.

    `state` is a directory for all of them. `why_ended` and `failure` say of a query that is not
    `active` any more what became of it.
    """

    def __init__(
        self, one: Standing, state: Path, sink: Sink, most: int, note: Callable[[str], None]
    ) -> None:
        self.one = one
        self.folder = folder_of(one.id, UNBOUNDED)
        self._sink = sink
        self._most = most
        state = state / Path(self.folder).name
        self._first = _first_batch(state, one, note)
        self._checkpoint = state / str(self._first)
        self._query: StreamingQuery | None = None
        self._busy = threading.Lock()
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._given = self._told = 0

    @property
    def is_new(self) -> bool:
        """Is there no batch yet of which its state knows?"""
        return self._first == 0 and last_planned(self._checkpoint) is None

    def start(self, frame: DataFrame, mode: Mode, trigger: dict[str, str | bool]) -> None:
        """Begin to run a frame, or go on where it ended."""
        aggregate = self.one.query.kind == "aggregate"
        writer = frame.writeStream.outputMode(mode if aggregate else "append")
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        writer = writer.foreachBatch(self._take).trigger(**trigger)  # type: ignore[arg-type]
        self._query = writer.start()

    @property
    def active(self) -> bool:
        return self._query is not None and self._query.isActive

    @property
    def waits(self) -> bool:
        """Has it looked for events and found none, or ended?"""
        if self._query is None or not self._query.isActive:
            return True
        status = self._query.status
        return str(status["message"]).startswith("Waiting") and not status["isDataAvailable"]

    @property
    def why_ended(self) -> str | None:
        """Why it was stopped at its cap, if it was."""
        return None if self._query is None else why_stopped(self._query)

    @property
    def failure(self) -> HeadgateError | None:
        """Why it failed, if it did; a batch that was cut off by the cap has not."""
        if self._query is None or self.why_ended or self._stopping.is_set():
            return None
        error = self._error or self._query.exception()
        if error is None or isinstance(error, HeadgateError):
            return error
        return JobError(
            f"query `{self.one.id}` failed on Spark's own join: {reason(error)}; "
            "the next start tries its batch again, and its rows will be in the output once"
        )

    def stop(self) -> None:
        """End after the batch that is running now."""
        self._stopping.set()
        if self._query is not None:
            with self._busy:
                pass
            self._query.stop()

    def progress(self) -> Growth:
        """What it gave since this was asked last, and what it keeps."""
        last = None if self._query is None else self._query.lastProgress
        kept = [] if last is None else [state.numRowsTotal for state in last.stateOperators]
        given, before = self._given, self._told
        self._told = given
        return Growth(given - before, sum(kept), self._most)

    def _take(self, frame: DataFrame, number: int) -> None:
        """What Spark calls for each batch."""
        with self._busy:
            try:
                if self._stopping.is_set():
                    raise Stopped
                self._process(frame, number)
            except BaseException as error:
                self._error = self._error or error
                raise

    def _process(self, frame: DataFrame, number: int) -> None:
        self._check_files(number)
        stage = new_stage(self._sink.stages)
        batch, columns = self._first + number, arrow_schema(frame.schema)
        writing = Writing(self.one, batch, columns, str(stage), self._sink.format)
        numbered = frame.toDF(*[f"c{n}" for n in range(len(columns))])
        staged = numbered.mapInArrow(writing.write, STAGED).collect()
        self._sink.add(batch, self.folder, [stage / row.name for row in staged])
        shutil.rmtree(stage, ignore_errors=True)
        self._given += sum(row.rows for row in staged)

    def _check_files(self, number: int) -> None:
        """Spark would pass over a file that has gone without a word."""
        for source in (self._checkpoint / "sources").iterdir():
            for name in planned_files(self._checkpoint, int(source.name), number):
                if not os.path.exists(name):
                    raise JobError(
                        f"{name}: is gone, and query `{self.one.id}` has yet to read it; "
                        "bring it back"
                    )


@dataclass(frozen=True, slots=True)
class Writing:
    """For `mapInArrow` over the rows of a batch, by the name `write`."""

    one: Standing
    batch: int
    columns: pa.Schema
    stage: str
    format: str

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage the rows of a task, and give the name of the file, if there is one."""
        with StagedFile(Path(self.stage), UNBOUNDED, self.format) as file:
            for rows in batches:
                named = pa.Table.from_batches([rows.rename_columns(self.columns.names)])
                table = named.cast(self.columns)
                file.write(labelled(table, self.batch, self.one.id, self.one.version))
        names = [] if file.name is None else [file.name]
        yield pa.RecordBatch.from_pydict(
            {"name": pa.array(names, pa.string()), "rows": pa.array([file.rows][: len(names)])}
        )


def _first_batch(folder: Path, one: Standing, note: Callable[[str], None]) -> int:
    """The number of the first batch under the present definition of a query."""
    before = _remembered(folder / FILE)
    first = 0
    if before is not None:
        if before["definition"] == one.definition:
            return int(before["first"])
        first = int(before["first"]) + (last_planned(folder / str(before["first"])) or 0) + 1
        note(f"query `{one.id}` is another one now, and begins anew with the first event there is")
    make_directory(folder)
    draft = folder / f".{FILE}"
    draft.write_text(json.dumps({"definition": one.definition, "first": first}) + "\n")
    sync(draft)
    os.replace(draft, folder / FILE)
    sync(folder)
    if before is not None:
        shutil.rmtree(folder / str(before["first"]), ignore_errors=True)
    return first


def _remembered(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise JobError(f"{path}: was changed or damaged; bring it back") from None
    return found
