"""The state of a job's continuous queries: in memory, and on the disk after each batch.

    state/synopses/7    {"checksum": …, "states": [{"id": …, "definition": …, "bytes": 120}, …]}
                        and then the states, one behind the other

A file is complete and synced before the log says that its batch is finished, and the log has its
checksum. So after a crash the state is exactly what the finished batches gave: a batch that is
replayed meets the state that it met before.

A query that is new, or whose definition changed, starts without state; the state of a query that
was removed is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.errors import JobError, Overflow, StateError
from headgate.snapshot.files import link_or_copy, sync
from headgate.spark.job.batch.rows import label_rows
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.commit.output import make_directory
from headgate.spark.job.event_reduction import ContinuousQuery
from headgate.spark.job.progress import BoundedProgress
from headgate.spark.stateful.shard import Mode
from headgate.stateful.runtime.running_query import RunningQuery

ReducedEvents = Mapping[str, Mapping[str, Sequence[bytes]]]
"""What tasks reduced the events of a batch to, by the id of a query and then by stream."""

StateKey = tuple[str, str]
"""The id of a query and its definition."""


class RunningQueries:
    """A run of each bounded continuous query, and its state on the disk.

    A batch calls `follow`, `process`, `save` and, once the log has it, `mark_finished`, in this
    order and on the driver.
    """

    def __init__(
        self,
        files: StateFiles,
        log: BatchLog,
        *,
        mode: Mode,
        expand: bool,
        note: Callable[[str], None],
    ) -> None:
        self._files = files
        self._log = log
        self._mode = mode
        self._expand = expand
        self._note = note
        self._runs: dict[ContinuousQuery, RunningQuery] = {}
        self._changed = True
        self._previous: dict[StateKey, bytes] = {}  # states that the last run of the job left
        if log.last_batch is not None and log.state_checksum is not None:
            self._previous = files.read(log.last_batch, log.state_checksum)

    def follow(self, queries: Sequence[ContinuousQuery]) -> None:
        """Take up the queries of the next batch."""
        # equal queries have equal ids and definitions, so their runs continue
        if set(self._runs) != set(queries):
            keys = {(query.id, query.definition) for query in self._runs}.union(self._previous)
            ids = {query_id for query_id, _ in keys}
            for query in queries:
                if query.id in ids and (query.id, query.definition) not in keys:
                    self._note(f"query `{query.id}` has changed, and starts without state")
            # a query that is not among them any more loses its state with its run
            self._runs = {
                query: self._runs.get(query) or self._start_run(query) for query in queries
            }
            self._changed = True
        self._previous = {}

    def process(
        self, batch: int, reduced: ReducedEvents
    ) -> Iterator[tuple[ContinuousQuery, pa.Table]]:
        """Yield the new rows of each query that has any."""
        for query, run in self._runs.items():
            by_stream = reduced.get(query.id)
            if not by_stream:
                continue
            self._changed = True
            try:
                rows = run.take(by_stream)
            except Overflow as error:
                raise JobError(
                    f"query `{query.id}` cannot continue: {error}; "
                    "to continue without it, name the others as `queries` in [continuous]"
                ) from None
            if rows.num_rows:
                yield query, label_rows(rows, batch, query.id, query.version)

    def save(self, batch: int) -> str | None:
        """Write the state after a batch to the disk, and return its checksum for the log."""
        if not self._runs:
            return None
        if (
            self._changed
            or self._log.last_batch is None
            or (checksum := self._log.state_checksum) is None
        ):
            states = {query: run.state() for query, run in self._runs.items()}
            return self._files.write(batch, states)
        # a batch without events for any query needs no new file: the last one is linked
        self._files.copy(batch, self._log.last_batch)
        return checksum

    def mark_finished(self, batch: int) -> None:
        """Delete the states before a batch, which the log has now."""
        self._changed = False
        self._files.delete_before(batch)

    def progress(self, rows: Mapping[str, int]) -> dict[str, BoundedProgress]:
        """Return what each query gave, from `rows`, and what it stores."""
        progress = {}
        for query, run in self._runs.items():
            stored, limit = run.stored, run.memory_limit
            progress[query.id] = BoundedProgress(
                rows.get(query.id, 0),
                stored.values,
                stored.bytes,
                None if limit is None else limit.values,
                None if limit is None else limit.bytes,
            )
        return progress

    def _start_run(self, query: ContinuousQuery) -> RunningQuery:
        run = RunningQuery(query.query, mode=self._mode, expand=self._expand)
        state = self._previous.get((query.id, query.definition))
        if state is not None:
            try:
                # here
                run.restore(state)
            except StateError as error:
                raise JobError(
                    f"query `{query.id}` cannot continue from its state: {error}; "
                    "start afresh with another `sink.path` and `checkpoint`"
                ) from None
        return run


class StateFiles:
    """The files of states in a directory; those of the last finished batch and the next are kept.

    Guarantee: what `write` or `copy` has returned from is found by `read` after any crash.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, batch: int, states: Mapping[ContinuousQuery, bytes]) -> str:
        """Write the states after a batch to the disk, and return their checksum."""
        # in this order the states follow the header
        entries = [
            {"id": query.id, "definition": query.definition, "bytes": len(state)}
            for query, state in states.items()
        ]
        checksum = _checksum(entries, b"".join(states.values()))
        header = json.dumps({"checksum": checksum, "states": entries})
        make_directory(self._directory)
        draft = self._directory / f".{batch}"
        with draft.open("wb") as file:
            file.write(header.encode() + b"\n")
            file.writelines(states.values())
        sync(draft)
        self._place(draft, batch)
        return checksum

    def copy(self, batch: int, before: int) -> None:
        """Make the states after a batch the same as those after one before it."""
        draft = self._directory / f".{batch}"
        # left by a try that died
        with suppress(FileNotFoundError):
            draft.unlink()
        link_or_copy(self._directory / str(before), draft)
        self._place(draft, batch)

    def read(self, batch: int, checksum: str) -> dict[StateKey, bytes]:
        """Return the states after a batch; raise a JobError if the log has another checksum."""
        path = self._directory / str(batch)
        try:
            header, _, content = path.read_bytes().partition(b"\n")
            described = json.loads(header)
            entries = described["states"]
            # a file of another run of the batch would be sound, but not the one that was logged
            if not checksum == described["checksum"] == _checksum(entries, content):
                raise ValueError("its checksum is another")
        except FileNotFoundError:
            raise _state_lost(path, "is gone") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise _state_lost(path, f"was changed or damaged ({error})") from None
        states, start = {}, 0
        for entry in entries:
            end = start + entry["bytes"]
            states[entry["id"], entry["definition"]] = content[start:end]
            start = end
        return states

    def delete_before(self, batch: int) -> None:
        """Delete the files of earlier batches, which no start will need."""
        if self._directory.is_dir():
            for name in os.listdir(self._directory):
                # also drafts that a crash has left
                if name.lstrip(".").isdigit() and int(name.lstrip(".")) < batch:
                    (self._directory / name).unlink()

    def _place(self, draft: Path, batch: int) -> None:
        os.replace(draft, self._directory / str(batch))
        sync(self._directory)


def _checksum(entries: list[dict[str, Any]], content: bytes) -> str:
    digest = blake2b(json.dumps(entries).encode(), digest_size=16)
    digest.update(content)
    return digest.hexdigest()


def _state_lost(path: Path, problem: str) -> JobError:
    return JobError(
        f"{path}: the state of the continuous queries {problem}; restore it, "
        "or start afresh with another `sink.path` and `checkpoint`"
    )
