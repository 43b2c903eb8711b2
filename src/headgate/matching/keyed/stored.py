"""The queries of a base, placed once on a machine and then mapped by all of its processes.

A snapshot holds the queries, and each machine builds the arrays of its indexes from them itself.
Built arrays in the snapshot would save that: 2 to 6 seconds of one core for a million queries, once
for each base and machine. But kernels follow their numbers unchecked, so whoever writes a snapshot
could have every worker read and write anywhere; to validate them would mean to check each record
and bitmap against the conditions, which takes as long as to build them. They would also be three
times as large as the queries, and right for one version of Headgate only.

So the arrays go to the machine's own cache (`snapshot.machine_cache`), built from validated
queries, under a key of all that decides what is in them. What another version has built has
another key, and is never read.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as package_version
from importlib.resources import files
from importlib.resources.abc import Traversable

import numpy as np

from headgate.matching.keyed.build import KeyedArrays
from headgate.matching.keyed.segment import Segment, build_segment, complete_segment
from headgate.matching.matches import Numbers
from headgate.predicate import Column
from headgate.snapshot import Snapshot, machine_cache
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.operands import decode_columns
from headgate.snapshot.arrays.selection import select_queries
from headgate.snapshot.packed_arrays import PackedArrays, load_arrays

# whatever decides how queries are numbered, coded and placed, and how that is written
LAYOUT_SOURCES = (
    ("matching", "keyed"),
    ("matching", "encoding"),
    ("snapshot", "arrays"),
    ("snapshot", "packed_arrays.py"),
    ("predicate", "atoms.py"),
    ("schema",),
)


@dataclass(frozen=True, slots=True, eq=False)
class StoredSegment:
    """A segment as it is in a file; `encoded` is None if it holds all queries of the base."""

    encoded: EncodedQueries | None
    built: KeyedArrays


def load_base(snapshot: Snapshot, numbers: Numbers, stream: str) -> Segment:
    """Return some queries of the base of a snapshot, placed: by this machine before, or else now.

    `numbers` are those of the filters on a stream, all of them.
    """
    entry = snapshot.manifest.segments[0]
    if entry.size < machine_cache.MIN_MAPPED_BYTES:
        return _place(snapshot, numbers)
    key = _make_key(entry.blake2b, snapshot.manifest.schema, stream)
    segment = _find(key, snapshot, len(numbers))
    if segment is None:
        # workers that start together: one builds, the others wait and then find what it has built
        with machine_cache.take_turn(key):
            segment = _find(key, snapshot, len(numbers))
            if segment is None:
                built = _place(snapshot, numbers)
                _store(key, built, snapshot)
                # not kept on a full disk, or without a place of this user's own
                segment = _find(key, snapshot, len(numbers)) or built
    return segment


def _place(snapshot: Snapshot, numbers: Numbers) -> Segment:
    base, schema = snapshot.stored[0], snapshot.schema
    # mostly the whole base, of which a copy would only take memory
    queries = base if _uses_all(base, numbers) else select_queries(base, numbers, schema)
    return build_segment(queries, np.arange(len(numbers)), schema)


def _uses_all(base: EncodedQueries, numbers: Numbers) -> bool:
    """Return whether these are all queries of a base, and mention all of its atoms."""
    if len(numbers) != len(base):
        return False
    program, is_used = base.trees.program, np.zeros(len(base.atoms), np.bool_)
    is_used[program[program >= 0]] = True
    return bool(is_used.all())


def _store(key: str, segment: Segment, snapshot: Snapshot) -> None:
    encoded = None if segment.encoded is snapshot.stored[0] else segment.encoded
    packed = PackedArrays(StoredSegment(encoded, segment.built), _list_columns(snapshot))
    machine_cache.add_entry(key, packed.size, packed.write)


def _find(key: str, snapshot: Snapshot, count: int) -> Segment | None:
    """Return what this machine has built under a key, if it can be read."""
    content = machine_cache.map_entry(key)
    if content is None:
        return None
    try:
        stored: StoredSegment = load_arrays(content, _list_columns(snapshot))
    # which the key rules out, unless somebody changed a group of arrays in a running process
    except ValueError as error:
        machine_cache.drop_entry(key, error)
        return None
    encoded = snapshot.stored[0] if stored.encoded is None else stored.encoded
    return complete_segment(encoded, np.arange(count), stored.built, snapshot.schema)


def _list_columns(snapshot: Snapshot) -> list[Column]:
    """Return the columns of the base: objects of the schema, which the file only numbers."""
    return decode_columns(snapshot.stored[0].atoms.columns, snapshot.schema)


def _make_key(base: str, schema: str, stream: str) -> str:
    parts = (describe_layout(), base, schema, stream)
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    return f"index-{digest}"


@cache
def describe_layout() -> str:
    """Return what tells the arrays that this version builds from those of any other."""
    digest = hashlib.blake2b(digest_size=16)
    for parts in LAYOUT_SOURCES:
        for source in _list_sources(files("headgate").joinpath(*parts)):
            digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return (
        f"{package_version('headgate')} {sys.byteorder} {np.intp().itemsize} {digest.hexdigest()}"
    )


def _list_sources(place: Traversable) -> Iterator[Traversable]:
    """Yield the modules in a package and the packages below it, in order of their names."""
    if place.is_file():
        yield place
        return
    for child in sorted(place.iterdir(), key=lambda path: path.name):
        if child.is_dir() or child.name.endswith(".py"):
            yield from _list_sources(child)
