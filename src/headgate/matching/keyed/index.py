"""The keyed index: an event looks only at queries that one of its own values leads to.

`build_from_snapshot` builds one from the arrays of a snapshot, without an object for any query. The
base of a snapshot is placed once on a machine and mapped by all processes (`stored`), since all
versions that follow from it share it. A new version then costs no more than its own changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any, Self

import numpy as np
import pyarrow as pa

from headgate.events.dict_reader import DictReader
from headgate.events.typed_tables import TypedTable, read_typed_batch, read_typed_table
from headgate.matching.base import BaseIndex
from headgate.matching.keyed.batch import Workspaces, match_batch, match_one
from headgate.matching.keyed.parts import (
    Part,
    Parts,
    add_queries,
    build_parts,
    is_stale,
    merge_parts,
    remove_queries,
)
from headgate.matching.keyed.segment import Segment
from headgate.matching.keyed.stored import load_base
from headgate.matching.known_ids import KnownIds, LivingPositions
from headgate.matching.matches import (
    MatchedIds,
    Matches,
    Numbers,
    Positions,
    to_events,
    to_numbered_events,
)
from headgate.matching.protocol import Placement
from headgate.portable import count_processors
from headgate.queries import Query
from headgate.schema import Attribute, Schema, Stream
from headgate.snapshot import Snapshot
from headgate.snapshot.arrays import EncodedQueries, decode_queries
from headgate.snapshot.arrays.selection import concatenate_queries, select_queries

MAX_CACHED_BASES = 2

# The bases of snapshots, placed, by checksum, schema and stream; the last used are at the end.
_bases: OrderedDict[tuple[str, str, str], Segment] = OrderedDict()
_bases_lock = Lock()


@dataclass(frozen=True, slots=True, eq=False)
class PreparedParts:
    """What every match needs that depends on the parts alone: it is kept until they change."""

    parts: Parts
    largest_last: Parts  # as a match takes them
    attributes: tuple[Attribute, ...]  # that the queries mention, in the order of the stream
    reader: DictReader
    workspaces: Workspaces

    @classmethod
    def of(cls, parts: Parts, stream: Stream) -> Self:
        """Work it out for some parts."""
        names = _collect_columns(parts)
        attributes = tuple(attribute for attribute in stream if attribute.name in names)
        largest_last = tuple(sorted(parts, key=lambda part: len(part.segment)))
        return cls(parts, largest_last, attributes, DictReader(stream, attributes), Workspaces())


class KeyedIndex(BaseIndex):
    """An index that places each query under the rarest condition that must hold for it.

    Guarantee: that of `scan`, event for event. Queries may come and go in one thread while others
    match: a match sees the changes that were complete when it began. New queries are placed by the
    first match that sees them; all are placed again in the background, and no match waits. A
    match uses up to `threads` threads, by default one for each core that the process may use.

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.sql import parse_where
    >>> from headgate.queries import Source
    >>> s = Stream("s", (Attribute("a", INT),))
    >>> big = Query("big", (Source(s, "s"),), parse_where("a > 10", s))
    >>> index = KeyedIndex.build(s, [big])
    >>> index.match([{"a": 11}, {"a": 3}, {"a": None}]).ids().to_pylist()
    [['big'], [], []]
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self.threads = count_processors()
        self._schema = Schema((stream,))
        self._parts: Parts = ()
        self._prepared: PreparedParts | None = None
        # changes since the last match, by position
        self._new: dict[int, Query] = {}
        self._removed: list[int] = []
        # a merge in the background, the number of first parts that it works on, and the positions
        # that were removed since it began
        self._merging: Thread | None = None
        self._fixed = 0
        self._removed_since: list[int] = []

    @classmethod
    def from_encoded(cls, stream: Stream, encoded: EncodedQueries) -> Self:
        """Return an index over queries that are arrays already, all filters on the stream."""
        schema = Schema((stream,))
        parts = build_parts(encoded, np.arange(len(encoded)), schema)
        return cls.from_parts(stream, schema, parts, KnownIds([encoded.ids.arrow()]))

    @classmethod
    def from_parts(cls, stream: Stream, schema: Schema, parts: Parts, ids: KnownIds) -> Self:
        """Return an index over parts that are built already, and the ids of all their positions."""
        index = cls(stream)
        index._schema, index._parts, index._ids = schema, parts, ids
        index._positions = LivingPositions(ids)
        return index

    @classmethod
    def take_over(cls, stream: Stream, ids: Sequence[str], queries: dict[int, Query]) -> Self:
        """Return an index whose positions are given out already, some of them to these queries."""
        index = cls(stream)
        index._ids = list(ids)
        index._positions = {query.id: position for position, query in queries.items()}
        index._new = queries
        return index

    def _add(self, query: Query, position: int) -> None:
        self._new[position] = query

    def _discard(self, query_id: str, position: int) -> None:
        del query_id
        # a query that no match has seen yet is in no part
        if self._new.pop(position, None) is None:
            self._removed.append(position)

    @property
    def columns(self) -> set[str]:
        """The attributes that the queries mention."""
        return _collect_columns(self._apply_changes())

    def queries_at(self, positions: Positions) -> list[Query]:
        """Return the queries at some positions, all of which must be held."""
        by_position: dict[int, Query] = {}
        for part in self._apply_changes():
            numbers = part.numbers(positions)
            queries = select_queries(part.segment.encoded, numbers, self._schema)
            held_positions = part.segment.positions[numbers].tolist()
            by_position.update(
                zip(held_positions, decode_queries(queries, self._schema), strict=True)
            )
        return [by_position[position] for position in positions.tolist()]

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        prepared = self._prepare()
        parts, spaces = prepared.largest_last, prepared.workspaces
        table: TypedTable | None = None
        if isinstance(events, pa.Table | pa.RecordBatch):
            table = read_typed_table(events, self.stream, prepared.attributes)
        if table is not None:
            pieces = match_batch(parts, table, self.threads, spaces)
            yield from to_numbered_events(pieces, table.rows, self._ids)
            return
        # other forms of events, and tables in which a row may be no event
        batch = self._read(events, [attribute.name for attribute in prepared.attributes])
        table = read_typed_batch(batch.table, len(batch.events))
        yield from to_events(batch, match_batch(parts, table, self.threads, spaces), self._ids)

    def match_one(self, event: Mapping[str, Any]) -> MatchedIds:
        prepared = self._prepare()
        ordinals = prepared.reader.read(event) if type(event) is dict else None
        if ordinals is None:
            return super().match_one(event)
        positions = match_one(prepared.largest_last, ordinals, prepared.workspaces)
        return MatchedIds(positions, self._ids)

    def _prepare(self) -> PreparedParts:
        """Return the parts with all changes so far, and what was worked out for them before."""
        parts = self._apply_changes()
        prepared = self._prepared
        if prepared is None or prepared.parts is not parts:
            prepared = self._prepared = PreparedParts.of(parts, self.stream)
        return prepared

    def _apply_changes(self) -> Parts:
        """Return the parts with all changes so far; begin a merge if it is time for one."""
        with self._lock:
            if self._removed or self._new:
                parts = remove_queries(self._parts, self._removed)
                self._parts = add_queries(parts, self._new, self._schema, self._fixed)
                # a merge that began before still holds them, and removes them when it is done
                self._removed_since += self._removed
                self._removed, self._new = [], {}
                if self._merging is None and is_stale(self._parts):
                    self._fixed, self._removed_since = len(self._parts), []
                    self._merging = Thread(target=self._merge)
                    self._merging.start()
            return self._parts

    def _merge(self) -> None:
        """Merge the first parts, and again if by then too much has come in behind them."""
        try:
            while self._fixed:
                parts = self._parts[: self._fixed]
                # without the lock, since it takes long; matches go on with the old parts
                whole = merge_parts(parts, self._schema)
                with self._lock:
                    merged = remove_queries(whole, self._removed_since)
                    # parts that came meanwhile stay behind the merged one
                    self._parts = merged + self._parts[len(parts) :]
                    self._removed_since = []
                    self._fixed = len(self._parts) if is_stale(self._parts) else 0
        finally:
            with self._lock:
                self._merging, self._fixed = None, 0

    def settle(self) -> None:
        """Wait until no merge is under way."""
        while (merging := self._merging) is not None:
            merging.join()

    def locate(self, query_id: str) -> Placement:
        position = self._position_of(query_id)
        for part in self._apply_changes():
            for number in part.numbers(np.array([position])).tolist():
                return part.segment.locate(number, self._schema)
        raise AssertionError(f"`{query_id}` is in no part")

    def describe(self) -> dict[str, Any]:
        parts = self._apply_changes()
        built = [part.segment.built for part in parts]
        figures = [arrays.figures for arrays in built]
        return {
            "kind": "keyed",
            "queries": len(self),
            "positions": len(self._ids),
            "parts": [len(part.segment) for part in parts],
            "removed": sum(part.removed for part in parts),
            "clusters": sum(part.clusters for part in figures),
            "entries": sum(part.entries for part in figures),
            "bitmaps": sum(part.bitmaps for part in figures),
            "in_bitmaps": sum(part.in_bitmaps for part in figures),
            "in_grid": sum(len(arrays.grid.query) for arrays in built),
            "estimated_us": [
                {"by_grid": round(part.grid_ns / 1000, 2), "by_keys": round(part.keys_ns / 1000, 2)}
                for part in figures
            ],
            "without_key": sum(len(arrays.clusters.unkeyed) for arrays in built),
            "never_true": sum(part.never_true for part in figures),
            "bytes": sum(arrays.bytes for arrays in built),
        }


def _collect_columns(parts: Parts) -> set[str]:
    return {column.name for part in parts for column in part.segment.columns}


def build_from_snapshot(snapshot: Snapshot, stream: Stream) -> KeyedIndex:
    """Return an index of the filters on a stream, at their positions among these in the set."""
    # rank: the position in the index of each stored query; −1 if it is removed or no such filter
    stored, is_filter = snapshot.stored, snapshot.mark_filters(stream)
    order = snapshot.find_filters(stream)
    rank = np.full(len(is_filter), -1)
    rank[order] = np.arange(len(order))
    parts: Parts = ()
    if len(order):
        base = len(stored[0])
        parts += _build_base(snapshot, np.flatnonzero(is_filter[:base]), rank[:base], stream)
        parts += _build_deltas(stored[1:], rank[base:], snapshot.schema)
    # without rows where each is its own position: they would be 8 bytes a query
    rows = None if np.array_equal(order, np.arange(len(rank))) else order
    ids = KnownIds([queries.ids.arrow() for queries in stored], rows)
    return KeyedIndex.from_parts(stream, snapshot.schema, parts, ids)


def _build_base(snapshot: Snapshot, numbers: Numbers, rank: Numbers, stream: Stream) -> Parts:
    """Return what is left of the base; its removed queries keep a number, but never match."""
    if not len(numbers):
        return ()
    # a base names attributes by their numbers in the schema, so that this belongs to the key
    manifest = snapshot.manifest
    key = manifest.segments[0].blake2b, manifest.schema, stream.name
    with _bases_lock:
        base_segment = _bases.get(key)
        if base_segment is None:
            base_segment = _bases[key] = load_base(snapshot, numbers, stream.name)
        _bases.move_to_end(key)
        while len(_bases) > MAX_CACHED_BASES:
            _bases.popitem(last=False)
    ranks = rank[numbers]
    if np.array_equal(ranks, base_segment.positions):
        return (Part.from_segment(base_segment),)
    # positions must ascend, so a removed query repeats the one before it
    segment = replace(base_segment, positions=np.maximum.accumulate(ranks))
    return (Part.from_segment(segment, ranks >= 0),)


def _build_deltas(deltas: list[EncodedQueries], rank: Numbers, schema: Schema) -> Parts:
    """Return a part of the living queries that came after the base, in order of rank."""
    living, ranks = [], []
    for queries in deltas:
        # the ranks of this segment's queries, then those of the segments behind it
        segment_rank, rank = rank[: len(queries)], rank[len(queries) :]
        numbers = np.flatnonzero(segment_rank >= 0)
        living.append(select_queries(queries, numbers, schema))
        ranks.append(segment_rank[numbers])
    if not sum(map(len, living)):
        return ()
    # in one segment, whose positions must ascend
    positions = np.concatenate(ranks)
    order = np.argsort(positions)
    queries = select_queries(concatenate_queries(living, schema), order, schema)
    return build_parts(queries, positions[order], schema)
