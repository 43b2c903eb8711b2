"""Build a keyed index from the arrays of a snapshot, without an object for any query.

The base of a snapshot is placed once and kept, since all versions that follow from it share it. A
new version then costs no more than its own changes.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from threading import Lock

import numpy as np
import numpy.typing as npt

from headgate.matching.keyed.index import KeyedIndex
from headgate.matching.keyed.parts import Part, Parts, build_parts
from headgate.matching.keyed.segment import Segment, build_segment
from headgate.matching.matches import Numbers
from headgate.schema import Schema, Stream
from headgate.snapshot import Snapshot
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.queries import decode_frames
from headgate.snapshot.arrays.selection import concatenate_queries, select_queries
from headgate.snapshot.arrays.texts import unpack
from headgate.snapshot.segments import Tombstones

CACHED_BASES = 2

_bases: OrderedDict[tuple[str, str, str], Segment] = OrderedDict()
_lock = Lock()


def build_from_snapshot(snapshot: Snapshot, stream: Stream) -> KeyedIndex:
    """Return an index of the filters on a stream, at their positions among these in the set."""
    stored = [s.queries for s in snapshot.segments if not isinstance(s, Tombstones)]
    # rank: the position in the index of each stored query; −1 if it is removed or no such filter
    is_filter = [_find_filters(queries, snapshot.schema, stream) for queries in stored]
    order = snapshot.order[np.concatenate(is_filter)[snapshot.order]]
    rank = np.full(sum(map(len, stored)), -1)
    rank[order] = np.arange(len(order))
    parts: Parts = ()
    if len(order):
        base = len(stored[0])
        parts += _build_base(snapshot, stored[0], np.flatnonzero(is_filter[0]), rank[:base], stream)
        parts += _build_deltas(stored[1:], rank[base:], snapshot.schema)
    return KeyedIndex.from_parts(stream, snapshot.schema, parts, _collect_ids(stored, order))


def _find_filters(queries: EncodedQueries, schema: Schema, stream: Stream) -> npt.NDArray[np.bool_]:
    """Return, by query, whether it is a filter on the stream."""
    frames = decode_frames(queries.frames, schema)
    by_frame = [frame.kind == "filter" and frame.stream_name == stream.name for frame in frames]
    return np.array(by_frame, np.bool_)[queries.frame]


def _build_base(
    snapshot: Snapshot, base: EncodedQueries, numbers: Numbers, rank: Numbers, stream: Stream
) -> Parts:
    """Return what is left of the base; its removed queries keep a number, but never match."""
    if not len(numbers):
        return ()
    # a base names attributes by their numbers in the schema, so that this belongs to the key
    manifest = snapshot.manifest
    key = manifest.segments[0].blake2b, manifest.schema, stream.name
    with _lock:
        base_segment = _bases.get(key)
        if base_segment is None:
            queries = select_queries(base, numbers, snapshot.schema)
            base_segment = build_segment(queries, np.arange(len(numbers)), snapshot.schema)
            _bases[key] = base_segment
        _bases.move_to_end(key)
        while len(_bases) > CACHED_BASES:
            _bases.popitem(last=False)
    ranks = rank[numbers]
    # positions must ascend, so a removed query repeats the one before it
    segment = replace(base_segment, positions=np.maximum.accumulate(ranks))
    return (Part.from_segment(segment, ranks >= 0),)


def _build_deltas(deltas: list[EncodedQueries], rank: Numbers, schema: Schema) -> Parts:
    """Return a part of the living queries that came after the base, in order of rank."""
    living, ranks = [], []
    for queries in deltas:
        mine, rank = rank[: len(queries)], rank[len(queries) :]
        numbers = np.flatnonzero(mine >= 0)
        living.append(select_queries(queries, numbers, schema))
        ranks.append(mine[numbers])
    if not sum(map(len, living)):
        return ()
    positions = np.concatenate(ranks)
    order = np.argsort(positions)
    queries = select_queries(concatenate_queries(living, schema), order, schema)
    return build_parts(queries, positions[order], schema)


def _collect_ids(stored: list[EncodedQueries], order: Numbers) -> list[str]:
    names = [name for queries in stored for name in unpack(queries.ids)]
    return [names[position] for position in order.tolist()]
