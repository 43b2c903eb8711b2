"""What Python workers do for a query that runs for ever: reduce rows, and keep its shards.

A task reduces all rows that it reads to one small row per shard. A shard takes these, joins them
with what it stores, and gives the new output. What it stores lies in Spark's state store, in parts
of bounded size, so state, output and offsets are committed together. A worker that has the shard of
the same state in memory already does not read it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headgate.errors import EventError, StateError
from headgate.events import EventBatch
from headgate.events.batch import select_attributes
from headgate.events.tables import batch_from_table
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.sql import Script

if TYPE_CHECKING:
    from headgate.stateful.runtime.reduction import Reduction
    from headgate.stateful.runtime.running_query import Run

Mode = Literal["update", "complete"]
Invalid = Literal["fail", "skip"]

REDUCED = "shard int, stream string, reduced binary"
ANSWER = "answer binary"
PART_BYTES = 1 << 20  # of a state; RocksDB is slow with values of many megabytes
PIECE_BYTES = 16 << 20  # of an answer
DIGEST = 16
ROWS_AT_ONCE = 100_000
MERGED_AT_ONCE = 16
KEPT = 64  # shards that a worker holds on to


@dataclass(frozen=True, slots=True)
class Sent:
    """A query as it is sent to the workers: as SQL, of which each makes what it needs, once."""

    schema: str
    query: str
    mode: Mode
    expand: bool
    invalid: Invalid
    shards: int

    def bound(self) -> Query:
        return _bound(self.schema, self.query)

    def reduction(self) -> Reduction:
        return _reduction(self.schema, self.query)

    def begin(self) -> Run:
        from headgate.stateful.runtime.running_query import Run

        return Run(self.bound(), mode=self.mode, expand=self.expand)


@lru_cache(maxsize=KEPT)
def _bound(declarations: str, query: str) -> Query:
    script = Script(Schema())
    (*_, bound) = script.read(f"{declarations}{query}")
    assert isinstance(bound, Query), bound
    return bound


@lru_cache(maxsize=KEPT)
def _reduction(declarations: str, query: str) -> Reduction:
    from headgate.stateful.runtime.reduction import Reduction

    return Reduction(_bound(declarations, query))


@dataclass(frozen=True, slots=True)
class Reducer:
    """For `mapInArrow` over the used columns of a stream, by the name `reduce`."""

    sent: Sent
    stream: str
    columns: tuple[str, ...]

    def reduce(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows of a task as one small row per shard."""
        reduction = self.sent.reduction()
        parts: list[bytes] = []
        for rows in gathered(batches):
            parts.append(reduction.reduced(self.stream, self._events(rows, reduction)))
            if len(parts) == MERGED_AT_ONCE:
                parts = [reduction.merged(self.stream, parts)]
        if parts:
            whole = reduction.merged(self.stream, parts)
            found = reduction.shard(self.stream, whole, self.sent.shards)
            yield self._rows(found)

    def _events(self, rows: pa.Table, reduction: Reduction) -> EventBatch:
        stream = self.sent.bound().schema.stream(self.stream)
        used = reduction.attributes(self.stream)
        return valid(rows, self.columns, stream, used, self.sent.invalid)

    def _rows(self, found: dict[int, bytes]) -> pa.RecordBatch:
        """A row for each shard: all hear of every batch, and the first that there is makes them."""
        every = range(self.sent.shards)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(every, pa.int32()),
                pa.array([self.stream] * len(every), pa.string()),
                pa.array([found.get(shard) for shard in every], pa.binary()),
            ],
            names=["shard", "stream", "reduced"],
        )


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in larger tables: Spark's batches are small, and each costs a fixed time."""
    found: list[pa.RecordBatch] = []
    for batch in batches:
        found.append(batch)
        if sum(each.num_rows for each in found) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(found)
            found = []
    if found:
        yield pa.Table.from_batches(found)


def valid(
    rows: pa.Table | pa.RecordBatch,
    columns: tuple[str, ...],
    stream: Stream,
    used: tuple[str, ...],
    invalid: Invalid,
) -> EventBatch:
    """The rows as events; an EventError for one that is not valid, unless these are skipped.

    `columns` are attributes: `mapInArrow` cannot take columns with dots in their names.
    """
    checked = stream.keep_checks_on(used)
    table = rows.rename_columns(list(columns))
    batch = batch_from_table(table, checked, select_attributes(checked, used), unknown=())
    if batch.dead and invalid == "fail":
        one = batch.dead[0]
        raise EventError(
            f"a row of stream {stream.name} is not valid: {one.reason}, in {one.raw}; "
            "invalid='skip' leaves such rows out"
        )
    return batch


class Shard(StatefulProcessor):
    """A shard of a query: takes reductions, gives new output as Arrow, and stores the rest.

    What is stored stands in the state store as `parts`, and `known` has the digest of each. A Run
    in memory is used where it has these very digests, so a batch that Spark runs again, here or
    elsewhere, begins with the state of the batch before it. `known` also has the number of shards:
    with another one, rows would not meet those that were kept.
    """

    def __init__(self, sent: Sent) -> None:
        self.sent = sent

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.known = handle.getValueState("known", "digests binary, shards int")
        self.parts = handle.getMapState("parts", "number int", "content binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        reduced: dict[str, list[bytes]] = {}
        for row in rows:
            if row.reduced is not None:
                reduced.setdefault(row.stream, []).append(bytes(row.reduced))
        before = self._digests()
        run = _runs.taken(self.sent, key[0], before) or self._restored(before)
        answer = run.take(reduced)
        _runs.keep(self.sent, key[0], self._stored(run.state(), before), run)
        yield from (Row(answer=piece) for piece in pieces(answer))

    def _digests(self) -> bytes:
        """Those of the state, which is nothing at first."""
        digests, shards = self.known.get() or (b"", self.sent.shards)
        if shards != self.sent.shards:
            raise StateError(
                f"the query began with {shards} shards, and has {self.sent.shards} now; "
                "give it as many as then, or begin anew with another checkpoint"
            )
        return bytes(digests)

    def _restored(self, digests: bytes) -> Run:
        run = self.sent.begin()
        if digests:
            parts = []
            for number in range(len(digests) // DIGEST):
                content = bytes((self.parts.getValue((number,)) or (b"",))[0])
                if _digest(content) != digests[number * DIGEST : (number + 1) * DIGEST]:
                    raise StateError(
                        f"part {number} of a query's state is damaged; "
                        "begin anew with another checkpoint"
                    )
                parts.append(content)
            run.restore(b"".join(parts))
        return run

    def _stored(self, state: bytes, before: bytes) -> bytes:
        """The digests of a state, of which the parts that changed have been stored."""
        parts = [state[at : at + PART_BYTES] for at in range(0, len(state), PART_BYTES)]
        digests = b"".join(map(_digest, parts))
        for number, part in enumerate(parts):
            of_part = slice(number * DIGEST, (number + 1) * DIGEST)
            if digests[of_part] != before[of_part]:
                self.parts.updateValue((number,), (part,))
        for number in range(len(parts), len(before) // DIGEST):
            self.parts.removeKey((number,))
        if digests != before:
            self.known.update((digests, self.sent.shards))
        return digests

    def close(self) -> None:
        pass


class Runs:
    """The shards that this worker ran last, each with the digests of its state."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Sent, int], tuple[bytes, Run]] = OrderedDict()

    def taken(self, sent: Sent, shard: int, digests: bytes) -> Run | None:
        """The shard, if it has this state; it is changed next, so it is kept no longer."""
        found = self._kept.pop((sent, shard), None)
        return found[1] if found is not None and found[0] == digests else None

    def keep(self, sent: Sent, shard: int, digests: bytes, run: Run) -> None:
        self._kept[sent, shard] = (digests, run)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)


_runs = Runs()


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


def pieces(answer: pa.Table) -> Iterator[bytes]:
    """The rows of an answer in Arrow's stream format, in pieces of bounded size."""
    rows = max(1, PIECE_BYTES * answer.num_rows // max(1, answer.nbytes))
    for start in range(0, answer.num_rows, rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, answer.schema) as writer:
            writer.write_table(answer.slice(start, rows))
        yield sink.getvalue().to_pybytes()


def answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow` over pieces: their rows."""
    for batch in batches:
        for piece in batch.column(0):
            yield from pa.ipc.open_stream(piece.as_buffer())
