"""Write a snapshot: into a stage, flushed to the disk, which is then renamed.

A reader sees a complete snapshot or none. With a parent, the segments that still
hold are shared with it by hard links, so that a small change writes a small file, and either may be
deleted without harm to the other.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headgate.errors import SnapshotError, UsageError
from headgate.queries import QuerySet
from headgate.queries.loading import pause_garbage_collection
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries, decode_queries, encode_queries
from headgate.snapshot.arrays.texts import pack
from headgate.snapshot.files import checksum, flatten_arrays, link_or_copy, sync, write_arrays
from headgate.snapshot.manifest import (
    MANIFEST_NAME,
    Entry,
    Manifest,
    file_name,
    render_manifest,
    schema_to_sql,
)
from headgate.snapshot.revision import Revision, compare_set, compute_step, rewind
from headgate.snapshot.segments import (
    Base,
    Delta,
    Segment,
    Tombstones,
    find_segment_flaw,
    kind_of,
)
from headgate.snapshot.snapshot import Snapshot, open_snapshot
from headgate.snapshot.validation_record import record_validation

MAX_CHANGE = 0.1  # of the base; a snapshot whose steps are larger gets a base of its own
MAX_SEGMENTS = 25


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSet:
    """A set of queries that are arrays already: ten million objects would not fit in memory."""

    schema: Schema
    queries: EncodedQueries

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def version(self) -> str:
        """A hash of the arrays."""
        digest = hashlib.blake2b(schema_to_sql(self.schema).encode(), digest_size=16)
        for array in flatten_arrays(self.queries).values():
            digest.update(array.data)
        return digest.hexdigest()

    def query_set(self) -> QuerySet:
        """Return the queries as objects."""
        return QuerySet(self.schema, decode_queries(self.queries, self.schema))


def write_snapshot(
    queries: QuerySet | EncodedSet, directory: str | Path, *, parent: Snapshot | None = None
) -> Snapshot:
    """Write the queries to a directory that does not exist yet.

    With a parent, only what has changed since is written, unless that is over a tenth of its base.
    """
    target = Path(directory)
    if target.exists():
        raise _name_taken_error(target)
    try:
        # the stage lies next to the target, since a rename works only within a file system
        target.parent.mkdir(parents=True, exist_ok=True)
        with make_stage(target) as stage:
            _, manifest = write_set(queries, stage, parent)
            write_manifest(stage, replace(manifest, version=queries.version))
            # somebody else has made it since the check above
            if not rename_stage(stage, target):
                raise _name_taken_error(target)
    except OSError as error:
        raise SnapshotError(f"{target}: cannot be written ({error})") from None
    return open_snapshot(target)


def _name_taken_error(target: Path) -> SnapshotError:
    return SnapshotError(f"{target}: exists already; a snapshot never changes, choose another name")


@contextmanager
def make_stage(target: Path) -> Iterator[Path]:
    """Make a directory to prepare a snapshot in; remove what is left of it afterwards."""
    # not `tempfile`, whose directories no other user may read
    stage = target.parent / f".{target.name}-{uuid.uuid4().hex}"
    stage.mkdir()
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def rename_stage(stage: Path, target: Path) -> bool:
    """Give a prepared directory its name; return False if a snapshot has it already."""
    sync(stage)
    try:
        os.rename(stage, target)
    except OSError as error:
        # a directory that is not empty is a snapshot; an empty one would be replaced
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    sync(target.parent)
    return True


def write_manifest(stage: Path, manifest: Manifest) -> None:
    """Write the manifest into a directory."""
    path = stage / MANIFEST_NAME
    path.write_text(render_manifest(manifest), encoding="ascii")
    sync(path)


def write_set(
    queries: QuerySet | EncodedSet, stage: Path, parent: Snapshot | None
) -> tuple[Revision | None, Manifest]:
    """Write or link all segments into a directory; return a manifest without a version.

    With it comes the revision that the set is, if the parent can be compared with it.
    """
    if isinstance(queries, EncodedSet):
        base = (Base(queries.queries),)
        return None, _write_new_segments(stage, (), base, queries.schema, len(queries))
    # the collector would walk a million query objects again and again, and free none
    with pause_garbage_collection():
        encoded = encode_queries(queries, queries.schema)
        # another schema may number streams and attributes differently, so nothing can be kept
        if parent is None or parent.schema != queries.schema:
            base = (Base(encoded),)
            return None, _write_new_segments(stage, (), base, queries.schema, len(queries))
        revision = compare_set(parent, queries, encoded)
        return revision, write_revision(revision, stage)


def write_revision(revision: Revision, stage: Path) -> Manifest:
    """Write what a revision changes, and link the rest; return a manifest without a version."""
    parent, schema = revision.parent, revision.parent.schema
    start = revision
    step = compute_step(parent.order, revision.entries)
    # a snapshot of many steps is changed from its base
    if step.size and len(parent.segments) + 2 > MAX_SEGMENTS:
        start = rewind(revision, _rewind_to_base(parent))
        step = compute_step(start.parent.order, start.entries)
    # too much has changed: all queries in one base
    if step.size > _compute_max_step(start.parent):
        return _write_new_segments(stage, (), (Base(revision.encode_all()),), schema, len(revision))
    new = encode_queries(start.queries_of(start.entries[step.places]), schema)
    # removed first, so that a changed query may come again under its id
    tombstones = Tombstones(pack(start.parent.ids_at(step.removed)))
    written = [s for s in (tombstones, Delta(new, step.places)) if len(s)]
    shared = start.parent.manifest.segments
    for entry in shared:
        link_or_copy(parent.directory / entry.file, stage / entry.file)
    return _write_new_segments(stage, shared, written, schema, len(revision))


def _write_new_segments(
    stage: Path, shared: Sequence[Entry], new: Sequence[Segment], schema: Schema, count: int
) -> Manifest:
    """Write segments, and return the manifest of them and the shared ones."""
    entries, text = list(shared), schema_to_sql(schema)
    # their file names go on from those of the shared ones
    for segment in new:
        # queries that were made by hand may say what no reader would accept
        flaw = find_segment_flaw(segment, schema)
        if flaw is not None:
            raise UsageError(f"these queries cannot be stored; their {flaw}")
        entry = _write_segment(stage, len(entries), segment)
        record_validation(entry, text)
        entries.append(entry)
    return Manifest("", count, text, tuple(entries))


def _write_segment(stage: Path, place: int, segment: Segment) -> Entry:
    kind = kind_of(segment)
    path = stage / file_name(place, kind)
    write_arrays(path, flatten_arrays(segment))
    return Entry(kind, path.name, len(segment), path.stat().st_size, checksum(path))


def _compute_max_step(snapshot: Snapshot) -> float:
    """Return how large the next step may be, all steps before it counted."""
    base, *steps = snapshot.manifest.segments
    return MAX_CHANGE * base.count - sum(entry.count for entry in steps)


def _rewind_to_base(snapshot: Snapshot) -> Snapshot:
    """Return the set as it was when the snapshot's base was written."""
    base = snapshot.manifest.segments[:1]
    manifest = replace(snapshot.manifest, segments=base, queries=base[0].count)
    order = np.arange(base[0].count)
    return replace(snapshot, manifest=manifest, segments=snapshot.segments[:1], order=order)
