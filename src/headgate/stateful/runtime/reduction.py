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
from headgate.stateful.analysis.case import find_source, list_output_columns
from headgate.stateful.analysis.synopses.branches import Branch
from headgate.stateful.analysis.synopses.plan import SynopsisPlan
from headgate.stateful.runtime.admission import check_runnable, has_windows
from headgate.stateful.runtime.grouping import Numbers
from headgate.stateful.runtime.join import group_compared_columns
from headgate.stateful.runtime.program import Program, compile_program
from headgate.stateful.runtime.weighted_rows import (
    WeightedRows,
    from_table,
    read_frames,
    write_frames,
)


@dataclass(frozen=True, slots=True)
class RequiredValues:
    """The values of an attribute in rows that can take part, and whether it may be NULL there."""

    values: ValueSet
    null: bool


def find_required_values(plan: SynopsisPlan, source: int) -> dict[str, RequiredValues]:
    """Return what attributes of an occurrence must be for a row to take part.

    No row can take part in a query without branches; that is not said either.
    """
    # A row takes part if any branch lets it, so the sets of the branches are united.
    compared = [c for branch in plan.branches for c in branch.reach]
    required = {}
    for column in dict.fromkeys(compared):
        if find_source(plan.query, column) == source:
            values = union(
                branch.reach.get(column, EVERYTHING) if branch.accepts_values(column) else NOTHING
                for branch in plan.branches
            )
            null = any(branch.accepts_null(column) for branch in plan.branches)
            required[column.name] = RequiredValues(values, null)
    return required


def find_shard_columns(program: Program) -> dict[int, Column] | None:
    """Return for each source the attribute to split it by; None where it cannot be split."""
    branches = program.plan.branches
    if not branches:
        return None
    # A class of equal columns must be equal in every branch.
    first, *others = (
        [frozenset(c) for c in _iter_equal_columns(program, branch)] for branch in branches
    )
    classes = [c for c in first if all(any(c <= d for d in other) for other in others)]
    outputs = set(list_output_columns(program.query))
    for together in classes:
        # An answer falls into the same parts only if the attribute is one of its outputs.
        if program.remembers_answer and not together & outputs:
            continue
        of = {find_source(program.query, column): column for column in together}
        # All sources need such a column, of one type, or equal values would have different hashes.
        if len(of) == len(program.sources) and len({c.type for c in together}) == 1:
            return of
    return None


def _iter_equal_columns(program: Program, branch: Branch) -> Iterator[set[Column]]:
    """Yield the classes of columns that are equal in a branch; of a single stream, the outputs."""
    if len(program.sources) == 1:
        yield from ({column} for column in list_output_columns(program.query))
    yield from map(set, group_compared_columns([tie for tie in branch.ties if tie.operator == "="]))


_MARK = struct.Struct("<I")


class StreamReducer:
    """Reduces a query's streams where their rows are; `RunningQuery.take` takes the reductions.

    A reduction is bytes that travel. It knows its query and stream, and two of them merge into one.
    """

    def __init__(self, query: Query) -> None:
        check_runnable(query)
        if has_windows(query):
            raise UsageError(
                f"`{query.id}` has row windows (last_rows), which need the order in which rows "
                "arrive; they run in one process only, by hg.continuous"
            )
        self._program = compile_program(query)
        self._shard_columns = find_shard_columns(self._program)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads, each once."""
        return self._program.streams

    @property
    def can_shard(self) -> bool:
        """Whether some equality splits all streams into parts that never meet."""
        return self._shard_columns is not None

    def attributes(self, stream: str) -> tuple[str, ...]:
        """Return the attributes of a stream that are needed."""
        return self._program.attributes(stream)

    def required_values(self, stream: str) -> list[dict[str, RequiredValues]]:
        """Return what rows of a stream must be to take part, for each occurrence in the query."""
        program = self._program
        return [
            find_required_values(program.plan, source) for source in program.occurrences(stream)
        ]

    def reduce(self, stream: str, batch: EventBatch) -> bytes:
        """Reduce the valid rows of a batch; its dead letters are left to the caller."""
        self._program.check_reads(stream)
        return pack_reduction(self._program, stream, self._program.reduce(stream, batch))

    def merge(self, stream: str, parts: Iterable[bytes]) -> bytes:
        """Merge several reductions of a stream into one."""
        self._program.check_reads(stream)
        return pack_reduction(self._program, stream, merge_reductions(self._program, stream, parts))

    def shard(self, stream: str, reduced: bytes, shards: int) -> dict[int, bytes]:
        """Split a reduction by shard; shards without rows are left out."""
        if self._shard_columns is None or shards < 2:
            return {0: reduced}
        every = unpack_reduction(self._program, stream, reduced)
        # By store, the shard of each row.
        of: dict[int, Numbers] = {}
        for store, rows in every.items():
            column = self._shard_columns[self._program.reducers[store].store.source]
            of[store] = _hash_values(rows, column) % shards
        shard_parts = {}
        for shard in sorted({int(each) for numbers in of.values() for each in numbers}):
            rows_of = {s: every[s].at(np.flatnonzero(of[s] == shard)) for s in every}
            shard_parts[shard] = pack_reduction(self._program, stream, rows_of)
        return shard_parts


def merge_reductions(
    program: Program, stream: str, parts: Iterable[bytes]
) -> dict[int, WeightedRows]:
    """Merge reductions of a stream into what each store takes."""
    opened = [unpack_reduction(program, stream, part) for part in parts]
    merged = {}
    for store in program.stores_of(stream):
        bucketing = program.reducers[store]
        every = [part[store] for part in opened]
        merged[store] = bucketing.merge(every) if every else bucketing.empty()
    return merged


def pack_reduction(program: Program, stream: str, reduced: Mapping[int, WeightedRows]) -> bytes:
    """Write a reduction as bytes, marked by its query and stream."""
    tables = (reduced[store].table() for store in program.stores_of(stream))
    return _make_mark(program, stream) + write_frames(tables)


def unpack_reduction(program: Program, stream: str, data: bytes) -> dict[int, WeightedRows]:
    """Read what `pack_reduction` wrote; StateError if it is of another query or stream."""
    mark = _make_mark(program, stream)
    if data[: len(mark)] != mark:
        raise StateError(f"this is not a reduction of {stream} for `{program.query.id}`")
    stores, tables = program.stores_of(stream), read_frames(data[len(mark) :])
    return {s: read_store(program, s, table) for s, table in zip(stores, tables, strict=True)}


def _make_mark(program: Program, stream: str) -> bytes:
    return _MARK.pack(crc32(f"{program.identity} {stream.lower()}".encode()))


def read_store(program: Program, number: int, table: pa.Table) -> WeightedRows:
    """Read the rows of one store from a table."""
    store = program.reducers[number].store
    summed = () if store.part.distinct else store.aggregated
    return from_table(table, store.kept, len(store.branches), summed)


def _hash_values(rows: WeightedRows, column: Column) -> Numbers:
    """Return a number for each value, the same in every process and batch; 0 for NULL."""
    coded = encode_column(rows.values[column], column.type)
    if coded.ranked is None:
        # Fibonacci hashing: multiply by 2^64 / φ and keep the high bits.
        mixed = coded.codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        hashes = (mixed >> np.uint64(33)).astype(np.int64)
    else:
        # Ranks depend on the batch, so the values themselves are hashed, once for each.
        known = np.array([crc32(str(each).encode()) for each in coded.ranked] or [0], np.int64)
        hashes = known[coded.codes]
    return hashes if coded.valid is None else np.where(coded.valid, hashes, 0)
