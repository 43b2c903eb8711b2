"""The continuous queries of a job: what they store, and what each batch gives anew.

Tasks have reduced their events to what a query can tell apart; here these reductions meet what is
stored. A query that is new, or has become another, begins with nothing; what one stored that is
gone is forgotten.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.errors import JobError, Overflow, StateError
from headgate.snapshot.files import link_or_copy, sync
from headgate.spark.job.commit.log import BatchLog
from headgate.spark.job.commit.output import make_directory
from headgate.spark.job.config import Mode
from headgate.spark.job.continuous_query import COLUMNS, Standing
from headgate.stateful.runtime.running_query import Run

Reduced = Mapping[str, Mapping[str, Sequence[bytes]]]
"""What tasks have made of the events of a batch, by the id of a query and then by stream."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How many rows a query gave, and what it stores: now, and at most, if that is worked out."""

    rows: int
    values: int
    bytes: int
    most_values: int | None
    most_bytes: int | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Runs:
    """A run of each continuous query, and its state on the disk."""

    def __init__(
        self,
        synopses: Synopses,
        log: BatchLog,
        *,
        mode: Mode,
        expand: bool,
        note: Callable[[str], None],
    ) -> None:
        self._synopses = synopses
        self._log = log
        self._mode = mode
        self._expand = expand
        self._note = note
        self._runs: dict[Standing, Run] = {}
        self._changed = True
        self._before: dict[Key, bytes] = {}  # states that a run before this one has left
        if log.last is not None and log.synopses is not None:
            self._before = synopses.read(log.last, log.synopses)

    def follow(self, queries: Sequence[Standing]) -> None:
        """These are the queries of the next batch."""
        if set(self._runs) != set(queries):
            known = {(one.id, one.definition) for one in self._runs}.union(self._before)
            ids = {query_id for query_id, _ in known}
            for one in queries:
                if one.id in ids and (one.id, one.definition) not in known:
                    self._note(f"query `{one.id}` is another one now, and begins with nothing")
            self._runs = {one: self._runs.get(one) or self._begun(one) for one in queries}
            self._changed = True
        self._before = {}

    def take(self, batch: int, reduced: Reduced) -> Iterator[tuple[Standing, pa.Table]]:
        """The rows that each query gives anew, where there are any."""
        for one, run in self._runs.items():
            mine = reduced.get(one.id)
            if not mine:
                continue
            self._changed = True
            try:
                found = run.take(mine)
            except Overflow as error:
                raise JobError(
                    f"query `{one.id}` cannot go on: {error}; "
                    "to go on without it, name the others as `queries` in [continuous]"
                ) from None
            if found.num_rows:
                yield one, labelled(found, batch, one.id, one.version)

    def keep(self, batch: int) -> str | None:
        """Have on the disk what is stored after a batch; its checksum for the log."""
        if not self._runs:
            return None
        if self._changed or self._log.last is None or self._log.synopses is None:
            return self._synopses.write(batch, {one: r.state() for one, r in self._runs.items()})
        self._synopses.again(batch, self._log.last)
        return self._log.synopses

    def finished(self, batch: int) -> None:
        """The log has it now."""
        self._changed = False
        self._synopses.forget(batch)

    def progress(self, rows: Mapping[str, int]) -> dict[str, Progress]:
        found = {}
        for one, run in self._runs.items():
            stored, most = run.stored, run.most
            found[one.id] = Progress(
                rows.get(one.id, 0),
                stored.values,
                stored.bytes,
                None if most is None else most.values,
                None if most is None else most.bytes,
            )
        return found

    def _begun(self, one: Standing) -> Run:
        run = Run(one.query, mode=self._mode, expand=self._expand)
        state = self._before.get((one.id, one.definition))
        if state is not None:
            try:
                run.restore(state)
            except StateError as error:
                raise JobError(
                    f"query `{one.id}` cannot go on from what it stored: {error}; "
                    "begin anew with another `sink.path` and `checkpoint`"
                ) from None
        return run


def labelled(rows: pa.Table, batch: int, query_id: str, version: str) -> pa.Table:
    """The rows behind columns that say where they come from."""
    values = (pa.scalar(batch, pa.int64()), pa.scalar(query_id), pa.scalar(version))
    columns = [pa.repeat(value, rows.num_rows) for value in values]
    return pa.Table.from_arrays([*columns, *rows.columns], names=[*COLUMNS, *rows.column_names])


Key = tuple[str, str]
"""The id of a query and its definition."""


class Synopses:
    """The files of states in a directory; those of the last finished batch and the next are kept.

    Guarantee: what `write` or `again` has returned from is found by `read` after any crash.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, batch: int, states: Mapping[Standing, bytes]) -> str:
        """Have the states after a batch on the disk; returns their checksum."""
        entries = [
            {"id": one.id, "definition": one.definition, "bytes": len(state)}
            for one, state in states.items()
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

    def again(self, batch: int, before: int) -> None:
        """The states after a batch are those after one before it."""
        draft = self._directory / f".{batch}"
        with suppress(FileNotFoundError):
            draft.unlink()
        link_or_copy(self._directory / str(before), draft)
        self._place(draft, batch)

    def read(self, batch: int, checksum: str) -> dict[Key, bytes]:
        """The states after a batch; a JobError where they are not what the log tells of."""
        path = self._directory / str(batch)
        try:
            header, _, content = path.read_bytes().partition(b"\n")
            told = json.loads(header)
            entries = told["states"]
            if not checksum == told["checksum"] == _checksum(entries, content):
                raise ValueError("its checksum is another")
        except FileNotFoundError:
            raise _lost(path, "is gone") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise _lost(path, f"was changed or damaged ({error})") from None
        found, start = {}, 0
        for entry in entries:
            end = start + entry["bytes"]
            found[entry["id"], entry["definition"]] = content[start:end]
            start = end
        return found

    def forget(self, before: int) -> None:
        """Remove the files of batches before this one, which no start will ask for."""
        if self._directory.is_dir():
            for name in os.listdir(self._directory):
                if name.lstrip(".").isdigit() and int(name.lstrip(".")) < before:
                    (self._directory / name).unlink()

    def _place(self, draft: Path, batch: int) -> None:
        os.replace(draft, self._directory / str(batch))
        sync(self._directory)


def _checksum(entries: list[dict[str, Any]], content: bytes) -> str:
    digest = blake2b(json.dumps(entries).encode(), digest_size=16)
    digest.update(content)
    return digest.hexdigest()


def _lost(path: Path, what: str) -> JobError:
    return JobError(
        f"{path}: what the continuous queries stored {what}; bring it back, "
        "or begin anew with another `sink.path` and `checkpoint`"
    )
