"""The shards of a continuous query: what Python workers reduce, join and store.

A task reduces all rows that it reads to one small row per shard. A shard joins these with its state
and gives the new output. Its state is in Spark's state store, in parts of bounded size, so state,
output and offsets are committed together. A worker that has the shard with the same state in memory
does not read it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headgate.errors import EventError, StateError
from headgate.events import EventBatch
from headgate.events.batch import select_attributes
from headgate.events.tables import batch_from_table
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.spark.stateful.skipped import SKIPPED
from headgate.sql import Script

if TYPE_CHECKING:
    from headgate.stateful.runtime.reduction import StreamReducer
    from headgate.stateful.runtime.running_query import RunningQuery

Mode = Literal["update", "complete"]
Invalid = Literal["fail", "skip"]

REDUCED_SCHEMA = "shard int, stream string, reduced binary, skipped long"
ANSWER_SCHEMA = "answer binary"
MAX_PART_BYTES = 1 << 20  # of a state: RocksDB is slow with values of many megabytes
MAX_PIECE_BYTES = 16 << 20  # of an answer
DIGEST_BYTES = 16
MAX_REDUCED_ROWS = 100_000
MAX_UNMERGED = 16
MAX_CACHED_SHARDS = 64  # in one worker

STATE_STORE_CLASS = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
IN_MEMORY_STORE = "HDFSBackedStateStoreProvider"  # Spark's default has no transformWithState
CHANGELOG_CHECKPOINTS = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def use_rocks_db(session: SparkSession) -> None:
    """Keep states in RocksDB, on disk, unless the session has chosen a store already.

    With changelog checkpoints only what changed in a batch is written; without them each batch
    costs a tenth of a second more.
    """
    if str(session.conf.get(STATE_STORE_CLASS)).endswith(IN_MEMORY_STORE):
        session.conf.set(STATE_STORE_CLASS, ROCKS_DB)
        session.conf.set(CHANGELOG_CHECKPOINTS, "true")


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A query as it is sent to the workers: as SQL, of which each builds what it needs, once."""

    schema: str
    query: str
    mode: Mode
    expand: bool
    invalid: Invalid
    shards: int

    def bind(self) -> Query:
        """Return the query with its streams."""
        return _bind(self.schema, self.query)

    def build_reduction(self) -> StreamReducer:
        """Return what the query takes of its streams."""
        return _build_reduction(self.schema, self.query)

    def start_run(self) -> RunningQuery:
        """Return a run of the query without state."""
        from headgate.stateful.runtime.running_query import RunningQuery

        return RunningQuery(self.bind(), mode=self.mode, expand=self.expand)


@lru_cache(maxsize=MAX_CACHED_SHARDS)
def _bind(declarations: str, query: str) -> Query:
    script = Script(Schema())
    # the declarations come first, and the query last
    (*_, bound) = script.read(f"{declarations}{query}")
    assert isinstance(bound, Query), bound
    return bound


@lru_cache(maxsize=MAX_CACHED_SHARDS)
def _build_reduction(declarations: str, query: str) -> StreamReducer:
    from headgate.stateful.runtime.reduction import StreamReducer

    return StreamReducer(_bind(declarations, query))


@dataclass(frozen=True, slots=True)
class Reducer:
    """Reduces the used columns of a stream, by the name `reduce`; pickled to the tasks."""

    spec: QuerySpec
    stream: str
    columns: tuple[str, ...]

    def reduce(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a task as one small row per shard, for `mapInArrow`."""
        reduction = self.spec.build_reduction()
        parts: list[bytes] = []
        skipped = 0
        for rows in combine_batches(batches):
            events = self._events(rows, reduction)
            skipped += len(events.dead)
            parts.append(reduction.reduce(self.stream, events))
            # merging bounds the memory of a task: a merged reduction is no larger than its parts
            if len(parts) == MAX_UNMERGED:
                parts = [reduction.merge(self.stream, parts)]
        if parts:
            whole = reduction.merge(self.stream, parts)
            by_shard = reduction.shard(self.stream, whole, self.spec.shards)
            yield self._build_rows(by_shard, skipped)

    def _events(self, rows: pa.Table, reduction: StreamReducer) -> EventBatch:
        stream = self.spec.bind().schema.stream(self.stream)
        used = reduction.attributes(self.stream)
        return validate_rows(rows, self.columns, stream, used, self.spec.invalid)

    def _build_rows(self, by_shard: dict[int, bytes], skipped: int) -> pa.RecordBatch:
        """Return a row for each shard: each must see every batch, as `mode="complete"` needs it.

        The first one has the number of rows that were left out.
        """
        shards = range(self.spec.shards)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(shards, pa.int32()),
                pa.array([self.stream] * len(shards), pa.string()),
                pa.array([by_shard.get(shard) for shard in shards], pa.binary()),
                pa.array([skipped, *[0] * (len(shards) - 1)], pa.int64()),
            ],
            names=["shard", "stream", "reduced", SKIPPED],
        )


def combine_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in larger tables: Spark's batches are small, and each costs a fixed time."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(each.num_rows for each in pending) >= MAX_REDUCED_ROWS:
            yield pa.Table.from_batches(pending)
            pending = []
    if pending:
        yield pa.Table.from_batches(pending)


def validate_rows(
    rows: pa.Table | pa.RecordBatch,
    columns: tuple[str, ...],
    stream: Stream,
    used: tuple[str, ...],
    invalid: Invalid,
) -> EventBatch:
    """Return the rows as events; raise an EventError for an invalid one, unless these are skipped.

    `columns` are the attributes of the columns, which are numbered.
    """
    checked = stream.keep_checks_on(used)
    table = rows.rename_columns(list(columns))
    batch = batch_from_table(table, checked, select_attributes(checked, used), unknown=())
    if batch.dead and invalid == "fail":
        letter = batch.dead[0]
        raise EventError(
            f"a row of stream {stream.name} is not valid: {letter.reason}, in {letter.raw}; "
            "invalid='skip' leaves such rows out"
        )
    return batch


class Shard(StatefulProcessor):
    """A shard of a query: takes reductions, gives new output as Arrow, and stores its state.

    The state is in the state store as `parts`, and `known` has the digest of each. A query in
    memory is used only if it has these very digests, so a batch that Spark runs again, here or
    elsewhere, starts with the state of the batch before it. `known` also has the number of shards:
    with another one, rows would not meet those that were stored.
    """

    def __init__(self, spec: QuerySpec) -> None:
        self.spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state; Spark calls this once for each partition of a batch."""
        self.known = handle.getValueState("known", "digests binary, shards int")
        self.parts = handle.getMapState("parts", "number int", "content binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Join the reductions of a batch with the state; Spark calls this for each shard."""
        reduced: dict[str, list[bytes]] = {}
        for row in rows:
            # NULL says only that there was a batch
            if row.reduced is not None:
                reduced.setdefault(row.stream, []).append(bytes(row.reduced))
        # a run in memory counts only if the state store has the very same state
        before = self._read_digests()
        run = _cache.take(self.spec, key[0], before) or self._restore_run(before)
        answer = run.take(reduced)
        _cache.put(self.spec, key[0], self._store_state(run.state(), before), run)
        yield from (Row(answer=piece) for piece in split_answer(answer))

    def _read_digests(self) -> bytes:
        """Return the digests of the state's parts; none before the first batch."""
        digests, shards = self.known.get() or (b"", self.spec.shards)
        if shards != self.spec.shards:
            raise StateError(
                f"the query began with {shards} shards, and has {self.spec.shards} now; "
                "give it as many as then, or start afresh with another checkpoint"
            )
        return bytes(digests)

    def _restore_run(self, digests: bytes) -> RunningQuery:
        run = self.spec.start_run()
        if digests:
            parts = []
            # every part is checked: a damaged state must not give wrong answers
            for number in range(len(digests) // DIGEST_BYTES):
                content = bytes((self.parts.getValue((number,)) or (b"",))[0])
                if _digest(content) != digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]:
                    raise StateError(
                        f"part {number} of a query's state is damaged; "
                        "start afresh with another checkpoint"
                    )
                parts.append(content)
            run.restore(b"".join(parts))
        return run

    def _store_state(self, state: bytes, before: bytes) -> bytes:
        """Store the parts of a state that changed, and return the digests of all."""
        # most batches change few parts of a state, and only these are written
        parts = [state[at : at + MAX_PART_BYTES] for at in range(0, len(state), MAX_PART_BYTES)]
        digests = b"".join(map(_digest, parts))
        for number, part in enumerate(parts):
            of_part = slice(number * DIGEST_BYTES, (number + 1) * DIGEST_BYTES)
            if digests[of_part] != before[of_part]:
                self.parts.updateValue((number,), (part,))
        # the state has shrunk: parts behind its end go
        for number in range(len(parts), len(before) // DIGEST_BYTES):
            self.parts.removeKey((number,))
        # without a change nothing is written, not even the digests
        if digests != before:
            self.known.update((digests, self.spec.shards))
        return digests

    def close(self) -> None:
        """Do nothing: there is nothing open."""


class ShardCache:
    """The shards that this worker ran last, each with the digests of its state.

    A shard is changed by the next batch, so it is taken out while it runs.
    """

    def __init__(self) -> None:
        self._shards: OrderedDict[tuple[QuerySpec, int], tuple[bytes, RunningQuery]] = OrderedDict()

    def take(self, spec: QuerySpec, shard: int, digests: bytes) -> RunningQuery | None:
        """Remove and return a shard, if it has this state."""
        cached = self._shards.pop((spec, shard), None)
        return cached[1] if cached is not None and cached[0] == digests else None

    def put(self, spec: QuerySpec, shard: int, digests: bytes, run: RunningQuery) -> None:
        """Keep a shard with the digests of its state; the oldest is dropped."""
        self._shards[spec, shard] = (digests, run)
        if len(self._shards) > MAX_CACHED_SHARDS:
            self._shards.popitem(last=False)


_cache = ShardCache()


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def split_answer(answer: pa.Table) -> Iterator[bytes]:
    """Yield the rows of an answer in Arrow's stream format, in pieces of bounded size."""
    # as many rows as fit on average, and at least one
    rows = max(1, MAX_PIECE_BYTES * answer.num_rows // max(1, answer.nbytes))
    for start in range(0, answer.num_rows, rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, answer.schema) as writer:
            writer.write_table(answer.slice(start, rows))
        yield sink.getvalue().to_pybytes()


def decode_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of pieces, for `mapInArrow`."""
    for batch in batches:
        for piece in batch.column(0):
            yield from pa.ipc.open_stream(piece.as_buffer())
