"""Writing a snapshot: into a directory aside, synced to the disk, then renamed to its name.

Whoever opens the name finds a complete snapshot or nothing. With a parent, the segments that still
hold are shared with it by hard links, so that a small change writes a small file, and either may be
deleted without harm to the other.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from headgate.errors import SnapshotError
from headgate.queries import QuerySet
from headgate.queries.loading import pause_garbage_collection
from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.arrays.arrays import named_arrays
from headgate.snapshot.arrays.texts import pack
from headgate.snapshot.files import checksum, link_or_copy, sync, write_arrays
from headgate.snapshot.manifest import NAME, Entry, Manifest, file_name, manifest_text
from headgate.snapshot.schema_text import schema_text
from headgate.snapshot.segments import Base, Delta, Segment, Tombstones, kind_of
from headgate.snapshot.snapshot import Snapshot, open_snapshot
from headgate.snapshot.step import step_between

MAX_CHANGE = 0.1  # of the base; a snapshot whose steps are larger gets a base of its own
MAX_SEGMENTS = 25


def write_snapshot(
    queries: QuerySet, directory: str | Path, *, parent: Snapshot | None = None
) -> Snapshot:
    """Write the queries to a directory that does not exist yet.

    With a parent, only what has changed since is written, unless that is over a tenth of its base.
    """
    target = Path(directory)
    if target.exists():
        raise _taken(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with stage_beside(target) as stage:
            manifest = write_segments(queries, stage, parent)
            write_manifest(stage, replace(manifest, version=queries.version))
            if not settle(stage, target):
                raise _taken(target)
    except OSError as error:
        raise SnapshotError(f"{target}: cannot be written ({error})") from None
    return open_snapshot(target, verify=False)


def _taken(target: Path) -> SnapshotError:
    return SnapshotError(f"{target}: exists already; a snapshot never changes, choose another name")


@contextmanager
def stage_beside(target: Path) -> Iterator[Path]:
    """A directory in which a snapshot is prepared; whatever is left in it afterwards goes."""
    # not `tempfile`, whose directories nobody else may read
    stage = target.parent / f".{target.name}-{uuid.uuid4().hex}"
    stage.mkdir()
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def settle(stage: Path, target: Path) -> bool:
    """Give a prepared directory its name, unless a snapshot has it."""
    sync(stage)
    try:
        os.rename(stage, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    sync(target.parent)
    return True


def write_manifest(stage: Path, manifest: Manifest) -> None:
    path = stage / NAME
    path.write_text(manifest_text(manifest), encoding="ascii")
    sync(path)


def write_segments(queries: QuerySet, stage: Path, parent: Snapshot | None) -> Manifest:
    """Write or link all segments into a directory; the manifest has no version yet."""
    with pause_garbage_collection():
        kept, new = _plan(queries, parent)
    if parent is not None:
        for entry in kept:
            link_or_copy(parent.directory / entry.file, stage / entry.file)
    entries = list(kept)
    for segment in new:
        entries.append(_write_segment(stage, len(entries), segment))
    return Manifest("", len(queries), schema_text(queries.schema), tuple(entries))


def _write_segment(stage: Path, place: int, segment: Segment) -> Entry:
    kind = kind_of(segment)
    path = stage / file_name(place, kind)
    write_arrays(path, named_arrays(segment))
    return Entry(kind, path.name, len(segment), path.stat().st_size, checksum(path))


def _plan(
    queries: QuerySet, parent: Snapshot | None
) -> tuple[tuple[Entry, ...], tuple[Segment, ...]]:
    """The parent's segments to keep, and those to write."""
    schema = queries.schema
    if parent is not None and parent.schema == schema:
        start = _start(parent)
        step = step_between(start.query_set(), queries)
        if step.size <= _room(start):
            delta = Delta(encode_queries(step.new, schema), np.array(step.places, np.int64))
            written = (Tombstones(pack(step.gone)), delta)
            return start.manifest.segments, tuple(segment for segment in written if len(segment))
    return (), (Base(encode_queries(queries, schema)),)


def _start(parent: Snapshot) -> Snapshot:
    """Where a step can start: at the parent, or at its base once its steps have become many."""
    return parent if len(parent.segments) + 2 <= MAX_SEGMENTS else _base_of(parent)


def _room(snapshot: Snapshot) -> float:
    """How large the next step may be, all steps before it counted."""
    base, *steps = snapshot.manifest.segments
    return MAX_CHANGE * base.count - sum(entry.count for entry in steps)


def _base_of(snapshot: Snapshot) -> Snapshot:
    """The set as it was when the snapshot's base was written."""
    base = snapshot.manifest.segments[:1]
    manifest = replace(snapshot.manifest, segments=base, queries=base[0].count)
    order = np.arange(base[0].count)
    return replace(snapshot, manifest=manifest, segments=snapshot.segments[:1], order=order)
