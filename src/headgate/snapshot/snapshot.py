"""A snapshot that is open: its arrays are in memory or mapped, its queries a call away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import SnapshotError, SqlError
from headgate.queries import LoadReport, Query, QuerySet
from headgate.queries.loading import pause_garbage_collection
from headgate.queries.queryset import refuse_unknown_id
from headgate.schema import Schema, Stream
from headgate.snapshot import machine_cache
from headgate.snapshot.arrays import EncodedQueries, decode_queries
from headgate.snapshot.arrays.operands import decode_columns
from headgate.snapshot.arrays.queries import decode_frames
from headgate.snapshot.arrays.selection import (
    concatenate_queries,
    expand_ranges,
    select_queries,
)
from headgate.snapshot.arrays.texts import LENIENT, Texts, pack
from headgate.snapshot.files import check_size, checksum_content, read_content
from headgate.snapshot.manifest import MANIFEST_NAME, Entry, Manifest, read_manifest, read_schema
from headgate.snapshot.segments import (
    OrderError,
    Positions,
    Segment,
    Tombstones,
    check_unique,
    find_segment_flaw,
    order_living,
    parse_segment,
)
from headgate.snapshot.validation_record import (
    make_validation_key,
    record_validation,
    was_validated,
)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """An immutable set of queries on disk.

    The queries of all segments, one segment behind the other, have positions; `order` holds the
    positions of the living ones in the order of the set.
    """

    directory: Path
    manifest: Manifest
    schema: Schema
    segments: tuple[Segment, ...]
    order: Positions

    @property
    def version(self) -> int | str:
        """The publisher's number, or else the hash of the set."""
        return self.manifest.version

    def __len__(self) -> int:
        return len(self.order)

    @property
    def stored(self) -> list[EncodedQueries]:
        """The queries of each segment that has some, the removed ones too."""
        return [s.queries for s in self.segments if not isinstance(s, Tombstones)]

    def verify_files(self) -> None:
        """Raise a SnapshotError if a file is not what was opened: a copy of it may have been."""
        for entry in self.manifest.segments:
            path = self.directory / entry.file
            if checksum_content(read_content(path, entry.size)) != entry.blake2b:
                raise _changed_error(path)

    def mark_filters(self, stream: Stream) -> npt.NDArray[np.bool_]:
        """Return, by position, whether a stored query is a filter on a stream."""
        marks = [np.zeros(0, np.bool_)]
        for queries in self.stored:
            frames = decode_frames(queries.frames, self.schema)
            is_filter = [f.kind == "filter" and f.stream_name == stream.name for f in frames]
            marks.append(np.array(is_filter, np.bool_)[queries.frame])
        return np.concatenate(marks)

    def find_filters(self, stream: Stream) -> Positions:
        """Return the positions of the living filters on a stream, in the order of the set."""
        return self.order[self.mark_filters(stream)[self.order]]

    def find_attributes(self, stream: Stream) -> frozenset[str]:
        """Return the names of the attributes that the living filters on a stream mention."""
        is_filter = np.zeros(sum(map(len, self.stored)), np.bool_)
        is_filter[self.find_filters(stream)] = True
        names: set[str] = set()
        start = 0
        for queries in self.stored:
            numbers = np.flatnonzero(is_filter[start : start + len(queries)])
            start += len(queries)
            offsets, program = queries.trees.offsets, queries.trees.program
            if len(numbers) < len(queries):
                program = program[expand_ranges(offsets[numbers], offsets[numbers + 1])]
            # from the entries of programs to atoms, and from these to columns
            atoms = queries.atoms
            is_used = np.zeros(len(atoms), np.bool_)
            is_used[program[program >= 0]] = True
            columns = decode_columns(atoms.columns, self.schema)
            used = np.union1d(atoms.column[is_used], atoms.second[is_used]).tolist()
            names.update(columns[number].name for number in used if number >= 0)
        return frozenset(names)

    def list_others(self) -> list[Query]:
        """Return the queries that are no filters, in the order of the set; no other is decoded."""
        is_other = [np.zeros(0, np.bool_)]
        for queries in self.stored:
            frames = decode_frames(queries.frames, self.schema)
            kinds = np.array([frame.kind != "filter" for frame in frames], np.bool_)
            is_other.append(kinds[queries.frame])
        return self.queries_at(self.order[np.concatenate(is_other)[self.order]])

    def filters(self, stream: Stream) -> list[Query]:
        """Return the filters on a stream, in the order of the set; no other query is decoded."""
        return self.queries_at(self.find_filters(stream))

    def select_filters(self, stream: Stream) -> EncodedQueries:
        """Return the living filters on a stream as arrays, segment after segment."""
        is_filter = np.zeros(sum(map(len, self.stored)), np.bool_)
        is_filter[self.find_filters(stream)] = True
        parts, start = [], 0
        for queries in self.stored:
            numbers = np.flatnonzero(is_filter[start : start + len(queries)])
            parts.append(select_queries(queries, numbers, self.schema))
            start += len(queries)
        return parts[0] if len(parts) == 1 else concatenate_queries(parts, self.schema)

    def queries_at(self, positions: Positions) -> list[Query]:
        """Return the queries at some positions, in their order; no other query is decoded."""
        by_position: dict[int, Query] = {}
        start = 0
        for queries in self.stored:
            end = start + len(queries)
            inside = positions[(positions >= start) & (positions < end)]
            selected = select_queries(queries, inside - start, self.schema)
            decoded = decode_queries(selected, self.schema)
            by_position.update(zip(inside.tolist(), decoded, strict=True))
            start = end
        return [by_position[position] for position in positions.tolist()]

    def find_ids(self, ids: Texts) -> Positions:
        """Return the position of the living query of each id, −1 where there is none."""
        positions = np.full(len(ids), -1, np.int64)
        is_alive = np.zeros(sum(map(len, self.stored)), np.bool_)
        is_alive[self.order] = True
        start = 0
        for queries in self.stored:
            # by position: the place in `ids`, if it is there; the dead have ids, too
            places: Any = pc.index_in(queries.ids.arrow(), value_set=ids.arrow())
            end = start + len(queries)
            is_found = is_alive[start:end] & np.asarray(places.is_valid())
            positions[np.asarray(places.fill_null(0))[is_found]] = start + np.flatnonzero(is_found)
            start = end
        return positions

    def query(self, query_id: str) -> Query:
        """Return the query of an id; no other one is decoded."""
        positions = self.find_ids(pack([query_id]))
        if positions[0] < 0:
            raise refuse_unknown_id(query_id, self.ids_at(self.order))
        return self.queries_at(positions)[0]

    def ids_at(self, positions: Positions) -> list[str]:
        """Return the ids of the queries at some positions."""
        ids = pa.chunked_array([part.ids.arrow() for part in self.stored], pa.large_binary())
        taken: list[Any] = ids.take(positions).to_pylist()
        return [text.decode("utf-8", LENIENT) for text in taken]

    def query_set(self) -> QuerySet:
        """Return the queries as they were when the snapshot was written, in the same order."""
        with pause_garbage_collection():
            stored = [q for queries in self.stored for q in decode_queries(queries, self.schema)]
            # positions count through all segments, the dead included
            alive = (stored[position] for position in self.order.tolist())
            version = self.version if isinstance(self.version, int) else None
            report = LoadReport(accepted=len(self))
            return QuerySet(self.schema, alive, version=version, report=report)


def open_snapshot(directory: str | Path, *, known: Snapshot | None = None) -> Snapshot:
    """Open the snapshot in a directory; a SnapshotError names the file that is damaged, and how.

    The checksum of each file is compared, and every array looked over before anything relies on it.
    Of a large file this machine then keeps a copy of its own (`machine_cache`), which all processes
    map; the file itself is not read again, for as long as it has the same size. The
    segments that it shares with one that is `known` are not opened again.
    """
    path = Path(directory)
    manifest = read_manifest(path)
    try:
        schema = read_schema(manifest.schema)
    except SqlError as error:
        raise SnapshotError(f"{path / MANIFEST_NAME}: its schema is not SQL ({error})") from None
    # an entry has the checksum of its segment; what was validated depends on the schema, too
    in_memory: dict[Entry, Segment] = {}
    if known is not None and known.manifest.schema == manifest.schema:
        in_memory = dict(zip(known.manifest.segments, known.segments, strict=True))
    # first each segment by itself, then what they say together
    segments = tuple(
        in_memory.get(entry) or _open_segment(path, entry, manifest, schema)
        for entry in manifest.segments
    )
    try:
        order = order_living(segments)
        check_unique(segments, order)
    except OrderError as error:
        raise SnapshotError(f"{path}: its segments contradict each other; {error}") from None
    if len(order) != manifest.queries:
        counts = f"{len(order):,} queries, the manifest says {manifest.queries:,}"
        raise SnapshotError(f"{path}: its segments hold {counts}")
    return Snapshot(path, manifest, schema, segments, order)


def _open_segment(directory: Path, entry: Entry, manifest: Manifest, schema: Schema) -> Segment:
    path = directory / entry.file
    check_size(path, entry.size)
    if entry.size < machine_cache.MIN_MAPPED_BYTES:
        return _read_segment(path, entry, manifest, schema)[0]
    # this machine's own copy, which was verified and validated before it was made
    key = f"segment-{make_validation_key(entry, manifest.schema)}"
    content = machine_cache.map_entry(key)
    if content is None:
        # processes that start together: one makes the copy, the others wait for it
        with machine_cache.take_turn(key):
            content = machine_cache.map_entry(key)
            if content is None:
                segment, read = _read_segment(path, entry, manifest, schema)
                content = machine_cache.add_entry(key, entry.size, read)
                # a full disk, or no place of this user's own: then it stays in memory
                if content is None:
                    return segment
    return parse_segment(content, entry.kind, is_verified=True)


def _read_segment(
    path: Path, entry: Entry, manifest: Manifest, schema: Schema
) -> tuple[Segment, bytes]:
    """Return a segment that nothing is wrong with, and the content of its file."""
    # what is verified is this copy in memory, whatever happens to the file
    content = read_content(path, entry.size)
    if checksum_content(content) != entry.blake2b:
        raise _changed_error(path)
    try:
        segment = parse_segment(content, entry.kind)
    except ValueError as error:
        raise SnapshotError(f"{path}: {error}") from None
    is_known = was_validated(entry, manifest.schema)
    wrong = None if is_known else find_segment_flaw(segment, schema)
    if wrong is None and len(segment) != entry.count:
        wrong = f"holds {len(segment):,} entries, the manifest says {entry.count:,}"
    if wrong is not None:
        raise SnapshotError(f"{path}: {wrong}")
    record_validation(entry, manifest.schema)
    return segment, content


def _changed_error(path: Path) -> SnapshotError:
    return SnapshotError(f"{path}: its checksum is another; it was changed or damaged")


def is_complete(directory: Path) -> bool:
    """Return whether all files of a snapshot have their sizes; only the manifest is read."""
    try:
        entries = read_manifest(directory).segments
        return all((directory / entry.file).stat().st_size == entry.size for entry in entries)
    except (SnapshotError, OSError):
        return False
