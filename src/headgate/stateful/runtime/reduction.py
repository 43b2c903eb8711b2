"""What a bounded query takes of a batch of rows: few weighted rows, as bytes that travel."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa

from headgate.errors import StateError, UsageError
from headgate.events import EventBatch
from headgate.events.columns import encode_column
from headgate.predicate import Column
from headgate.queries import Query
from headgate.schema import EVERYTHING, NOTHING, ValueSet, union
from headgate.stateful.analysis.cases.case import output_columns, source_of
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.plan import Plan
from headgate.stateful.runtime.admission import check_runs, has_windows
from headgate.stateful.runtime.grouping import Numbers
from headgate.stateful.runtime.join import meeting
from headgate.stateful.runtime.program import Program, program_of
from headgate.stateful.runtime.weighted_rows import Weighted, framed, from_table, unframed


@dataclass(frozen=True, slots=True)
class Needed:
    """The values of an attribute in rows that can take part, and whether it may be NULL there."""

    values: ValueSet
    null: bool


def needed(plan: Plan, source: int) -> dict[str, Needed]:
    """What each attribute of an occurrence must be; nothing is said of the others.

    No row can take part in a query without branches; that is not said either.
    """
    compared = [c for branch in plan.branches for c in branch.reach]
    found = {}
    for column in dict.fromkeys(compared):
        if source_of(plan.query, column) == source:
            values = union(
                branch.reach.get(column, EVERYTHING) if branch.accepts_values(column) else NOTHING
                for branch in plan.branches
            )
            null = any(branch.accepts_null(column) for branch in plan.branches)
            found[column.name] = Needed(values, null)
    return found


def shard_columns(program: Program) -> dict[int, Column] | None:
    """For each source the attribute to split it by; None where it cannot be split."""
    branches = program.plan.branches
    if not branches:
        return None
    first, *others = ([frozenset(c) for c in _equal(program, branch)] for branch in branches)
    classes = [c for c in first if all(any(c <= d for d in other) for other in others)]
    outputs = set(output_columns(program.query))
    for together in classes:
        if program.remembers_answer and not together & outputs:
            continue
        of = {source_of(program.query, column): column for column in together}
        if len(of) == len(program.sources) and len({c.type for c in together}) == 1:
            return of
    return None


def _equal(program: Program, branch: Branch) -> Iterator[set[Column]]:
    """The classes of columns that are equal in a branch; of a single stream, what is put out."""
    if len(program.sources) == 1:
        yield from ({column} for column in output_columns(program.query))
    yield from map(set, meeting([tie for tie in branch.ties if tie.operator == "="]))


_MARK = struct.Struct("<I")


class Reduction:
    """How a query's streams are reduced where their rows are; `Run.take` takes what comes of it.

    A reduction is bytes that travel. It knows its query and stream, and two of them merge into one.
    """

    def __init__(self, query: Query) -> None:
        check_runs(query)
        if has_windows(query):
            raise UsageError(
                f"`{query.id}` has row windows (last_rows), which need the order in which rows "
                "arrive; they run in one process only, by hg.continuous"
            )
        self._program = program_of(query)
        self._shard_columns = shard_columns(self._program)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads, each once."""
        return self._program.streams

    @property
    def can_shard(self) -> bool:
        """Is there an equality by which all streams fall into parts that never meet?"""
        return self._shard_columns is not None

    def attributes(self, stream: str) -> tuple[str, ...]:
        """The attributes of a stream that are needed."""
        return self._program.attributes(stream)

    def needed(self, stream: str) -> list[dict[str, Needed]]:
        """What rows of a stream must be to take part, for each of its occurrences in the query."""
        program = self._program
        return [needed(program.plan, source) for source in program.occurrences(stream)]

    def reduced(self, stream: str, batch: EventBatch) -> bytes:
        """The valid rows of a batch; what becomes of its dead letters is for the caller to say."""
        self._program.check_reads(stream)
        return packed(self._program, stream, self._program.reduced(stream, batch))

    def merged(self, stream: str, parts: Iterable[bytes]) -> bytes:
        """Several reductions of a stream as one."""
        self._program.check_reads(stream)
        return packed(self._program, stream, merged(self._program, stream, parts))

    def shard(self, stream: str, reduced: bytes, shards: int) -> dict[int, bytes]:
        """A reduction in parts by shard, those without rows left out."""
        if self._shard_columns is None or shards < 2:
            return {0: reduced}
        every = unpacked(self._program, stream, reduced)
        of: dict[int, Numbers] = {}
        for store, rows in every.items():
            column = self._shard_columns[self._program.bucketings[store].store.source]
            of[store] = _hashed(rows, column) % shards
        found = {}
        for shard in sorted({int(each) for numbers in of.values() for each in numbers}):
            rows_of = {s: every[s].at(np.flatnonzero(of[s] == shard)) for s in every}
            found[shard] = packed(self._program, stream, rows_of)
        return found


def merged(program: Program, stream: str, parts: Iterable[bytes]) -> dict[int, Weighted]:
    """What each store takes of several reductions of a stream."""
    opened = [unpacked(program, stream, part) for part in parts]
    found = {}
    for store in program.stores_of(stream):
        bucketing = program.bucketings[store]
        every = [part[store] for part in opened]
        found[store] = bucketing.merged(every) if every else bucketing.nothing()
    return found


def packed(program: Program, stream: str, reduced: Mapping[int, Weighted]) -> bytes:
    tables = (reduced[store].table() for store in program.stores_of(stream))
    return _mark(program, stream) + framed(tables)


def unpacked(program: Program, stream: str, data: bytes) -> dict[int, Weighted]:
    """What `packed` has packed; StateError if that was for another query or stream."""
    mark = _mark(program, stream)
    if data[: len(mark)] != mark:
        raise StateError(f"this is not a reduction of {stream} for `{program.query.id}`")
    stores, tables = program.stores_of(stream), unframed(data[len(mark) :])
    return {s: of_store(program, s, table) for s, table in zip(stores, tables, strict=True)}


def _mark(program: Program, stream: str) -> bytes:
    return _MARK.pack(crc32(f"{program.identity} {stream.lower()}".encode()))


def of_store(program: Program, number: int, table: pa.Table) -> Weighted:
    store = program.bucketings[number].store
    summed = () if store.part.distinct else store.aggregated
    return from_table(table, store.kept, len(store.branches), summed)


def _hashed(rows: Weighted, column: Column) -> Numbers:
    """A number for each value, the same in every process and batch; 0 for NULL."""
    coded = encode_column(rows.values[column], column.type)
    if coded.ranked is None:
        mixed = coded.codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        found = (mixed >> np.uint64(33)).astype(np.int64)
    else:
        known = np.array([crc32(str(each).encode()) for each in coded.ranked] or [0], np.int64)
        found = known[coded.codes]
    return found if coded.valid is None else np.where(coded.valid, found, 0)
