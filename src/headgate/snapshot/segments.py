"""The segments of a snapshot: a base, deltas and tombstones, which make up the set in order.

A base is a set of queries in order. Tombstones remove queries by their ids, and those that stay
keep their order. A delta inserts queries, each at its place in the result.

The queries of all segments, one segment behind the other, have positions: append-only, never
reused. The order of a set is the positions of its living queries (`order_living`), and `revision`
computes the tombstones and the delta that lead from one set to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries, Texts, encode_queries
from headgate.snapshot.arrays.texts import pack
from headgate.snapshot.arrays.validate import find_flaw, find_text_flaw
from headgate.snapshot.files import assemble_arrays, flatten_arrays, parse_arrays

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """All queries of a set as it was once."""

    queries: EncodedQueries

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Queries that are new, changed or moved; query i stands at `places[i]` when all are in."""

    queries: EncodedQueries
    places: Positions

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, slots=True, eq=False)
class Tombstones:
    """The ids of queries that are gone, or come again in the next delta."""

    ids: Texts

    def __len__(self) -> int:
        return len(self.ids)


Segment = Base | Delta | Tombstones
KINDS = ("base", "delta", "tombstones")


def kind_of(segment: Segment) -> str:
    """Return the kind of a segment, as the manifest names it."""
    return type(segment).__name__.lower()


def parse_segment(content: bytes | mmap, kind: str, *, is_verified: bool = False) -> Segment:
    """Return the segment in the content of a file; raise ValueError if there is none."""
    # an empty segment has the names and types that the file must have
    template = _make_empty(kind)
    arrays = parse_arrays(content, flatten_arrays(template), is_verified=is_verified)
    return assemble_arrays(template, arrays)


def _make_empty(kind: str) -> Segment:
    nothing = encode_queries((), Schema())
    if kind == "base":
        return Base(nothing)
    return Delta(nothing, np.zeros(0, np.int64)) if kind == "delta" else Tombstones(pack(()))


def find_segment_flaw(segment: Segment, schema: Schema) -> str | None:
    """Return what is wrong with the arrays of a segment; None if nothing is."""
    if isinstance(segment, Tombstones):
        return find_text_flaw("ids", segment.ids)
    if isinstance(segment, Delta) and len(segment.places) != len(segment.queries):
        return "places and queries are not equally many"
    return find_flaw(segment.queries, schema)


class OrderError(ValueError):
    """An error in segments that do not follow from one another."""


def order_living(segments: Sequence[Segment]) -> Positions:
    """Return the positions of the living queries, in the order of the set."""
    order = np.zeros(0, np.int64)
    count = 0  # of queries so far
    gone = _find_gone(segments)
    for segment in segments:
        if isinstance(segment, Tombstones):
            # an id may have earlier bearers, removed already, and later ones, not yet there
            rows = next(gone)
            is_dead = np.zeros(count, np.bool_)
            is_dead[rows[rows < count]] = True
            alive = order[~is_dead[order]]
            # every tombstone must remove exactly one living query
            if len(order) - len(alive) != len(segment):
                raise OrderError("a tombstone is for no query that lives")
            order = alive
            continue
        # the positions of a segment's queries begin behind those of all segments before it
        new = np.arange(count, count + len(segment))
        order = insert_at(order, segment.places, new) if isinstance(segment, Delta) else new
        count += len(segment)
    return order


def _find_gone(segments: Sequence[Segment]) -> Iterator[Positions]:
    """Yield the positions of all queries, living or not, with the ids of each tombstones."""
    tombstones = [segment.ids.arrow() for segment in segments if isinstance(segment, Tombstones)]
    if not tombstones:
        return
    # all ids are looked through once, however many steps there are
    mentioned = pa.concat_arrays(tombstones)
    # by position: the place of the id among those mentioned, if it is there
    place = pc.index_in(_collect_ids(segments), value_set=mentioned)
    positions, places = np.flatnonzero(np.asarray(place.is_valid())), np.asarray(place.drop_null())
    for ids in tombstones:
        own = np.asarray(pc.index_in(ids, value_set=mentioned))
        yield positions[np.isin(places, own)]


def _collect_ids(segments: Sequence[Segment]) -> pa.ChunkedArray[Any]:
    """Return the ids of all queries, by position."""
    arrays = [s.queries.ids.arrow() for s in segments if not isinstance(s, Tombstones)]
    return pa.chunked_array(arrays, pa.large_binary())


def insert_at(order: Positions, places: Positions, new: Positions) -> Positions:
    """Return the order with each of `new` at its place; the others fill the places between.

    >>> insert_at(np.array([0, 1, 2]), np.array([1, 4]), np.array([7, 8])).tolist()
    [0, 7, 1, 2, 8]
    """
    length = len(order) + len(new)
    if np.any(np.diff(places, prepend=-1, append=length) <= 0):
        raise OrderError("the places of a delta do not ascend within the set")
    result = np.empty(length, np.int64)
    # the places that the new queries leave free are filled in the old order
    between = np.ones(length, np.bool_)
    between[places] = False
    result[places] = new
    result[between] = order
    return result


def check_unique(segments: Sequence[Segment], order: Positions) -> None:
    """Raise if two living queries of different segments have one id; in one they never have."""
    base, *later = [s.queries.ids.arrow() for s in segments if not isinstance(s, Tombstones)]
    rows = order[order >= len(base)] - len(base)
    if not len(rows):
        return
    ids = pa.chunked_array(later, pa.large_binary()).take(rows)
    # deltas are small: only they are compared with each other, and the base with them
    is_twice = pc.count_distinct(ids).as_py() != len(ids)
    in_base = np.asarray(pc.is_in(base, value_set=ids.combine_chunks()))
    if is_twice or np.any(in_base[order[order < len(base)]]):
        raise OrderError("two queries have the same id")
