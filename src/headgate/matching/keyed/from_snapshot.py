"""An index straight from the arrays of a snapshot, without an object for any query.

The base of a snapshot is filed once and kept, for it is the same in every version that follows from
it. A new version then costs no more than its own changes.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from threading import Lock

import numpy as np
import numpy.typing as npt

from headgate.matching.keyed.index import KeyedIndex
from headgate.matching.keyed.parts import Parts, filed
from headgate.matching.keyed.segment import Numbers, Part, Segment, segment_of
from headgate.schema import Schema, Stream
from headgate.snapshot import Snapshot
from headgate.snapshot.arrays import EncodedQueries
from headgate.snapshot.arrays.frames import frames_from
from headgate.snapshot.arrays.selection import concatenated, selected
from headgate.snapshot.arrays.texts import unpack
from headgate.snapshot.segments import Tombstones

KEPT = 2  # bases that are kept

_bases: OrderedDict[tuple[str, str, str], Segment] = OrderedDict()
_lock = Lock()


def build_from_snapshot(snapshot: Snapshot, stream: Stream) -> KeyedIndex:
    """The filters on a stream, at the positions that they have among these in the set."""
    stored = [s.queries for s in snapshot.segments if not isinstance(s, Tombstones)]
    wanted = [_filters(queries, snapshot.schema, stream) for queries in stored]
    order = snapshot.order[np.concatenate(wanted)[snapshot.order]]
    rank = np.full(sum(map(len, stored)), -1)
    rank[order] = np.arange(len(order))
    parts: Parts = ()
    if len(order):
        base = len(stored[0])
        parts += _base_part(snapshot, stored[0], np.flatnonzero(wanted[0]), rank[:base], stream)
        parts += _later_part(stored[1:], rank[base:], snapshot.schema)
    return KeyedIndex.of_parts(stream, snapshot.schema, parts, _ids(stored, order))


def _filters(queries: EncodedQueries, schema: Schema, stream: Stream) -> npt.NDArray[np.bool_]:
    """By query: is it a filter on the stream?"""
    frames = frames_from(queries.frames, schema)
    found = [frame.kind == "filter" and frame.stream_name == stream.name for frame in frames]
    return np.array(found, np.bool_)[queries.frame]


def _base_part(
    snapshot: Snapshot, base: EncodedQueries, numbers: Numbers, rank: Numbers, stream: Stream
) -> Parts:
    """What is left of the base; its dead queries keep a place, but are never given out."""
    if not len(numbers):
        return ()
    manifest = snapshot.manifest  # a base names attributes by their numbers in the schema
    key = manifest.segments[0].blake2b, manifest.schema, stream.name
    with _lock:
        known = _bases.get(key)
        if known is None:
            queries = selected(base, numbers, snapshot.schema)
            known = segment_of(queries, np.arange(len(numbers)), snapshot.schema)
            _bases[key] = known
        _bases.move_to_end(key)
        while len(_bases) > KEPT:
            _bases.popitem(last=False)
    ranks = rank[numbers]
    segment = replace(known, positions=np.maximum.accumulate(ranks))
    return (Part.of(segment, ranks >= 0),)


def _later_part(deltas: list[EncodedQueries], rank: Numbers, schema: Schema) -> Parts:
    """The living queries of all that came after the base, by rank."""
    alive, ranks = [], []
    for queries in deltas:
        mine, rank = rank[: len(queries)], rank[len(queries) :]
        living = np.flatnonzero(mine >= 0)
        alive.append(selected(queries, living, schema))
        ranks.append(mine[living])
    if not sum(map(len, alive)):
        return ()
    joined = np.concatenate(ranks)
    order = np.argsort(joined)
    return filed(selected(concatenated(alive, schema), order, schema), joined[order], schema)


def _ids(stored: list[EncodedQueries], order: Numbers) -> list[str]:
    names = [name for queries in stored for name in unpack(queries.ids)]
    return [names[position] for position in order.tolist()]
