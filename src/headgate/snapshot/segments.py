"""The segments of a snapshot: a base, deltas and tombstones, which make up the set in order.

A base is a set of queries in order. Tombstones remove queries by their ids, and those that stay
keep their order. A delta inserts queries, each at its place in the result.

The queries of all segments, one segment behind the other, have positions: append-only, never
reused. The order of a set is the positions of its living queries (`order_living`), and `revision`
computes the tombstones and the delta that lead from one set to another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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


def parse_segment(content: bytes, kind: str) -> Segment:
    """Return the segment in the content of a file; raise ValueError if there is none."""
    # an empty segment has the names and types that the file must have
    template = _make_empty(kind)
    return assemble_arrays(template, parse_arrays(content, flatten_arrays(template)))


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


def order_living(segments: Iterable[Segment]) -> Positions:
    """Return the positions of the living queries, in the order of the set."""
    order = np.zeros(0, np.int64)
    # of all queries so far, by position, one array for each segment
    ids: list[pa.LargeBinaryArray] = []
    for segment in segments:
        if isinstance(segment, Tombstones):
            order = _remove_dead(order, ids, segment)
            continue
        # the positions of a segment's queries begin behind those of all segments before it
        new = np.arange(len(segment), dtype=np.int64)
        places = segment.places if isinstance(segment, Delta) else new
        order = insert_at(order, places, new + sum(map(len, ids)))
        ids.append(segment.queries.ids.arrow())
    return order


def _remove_dead(order: Positions, ids: list[pa.LargeBinaryArray], gone: Tombstones) -> Positions:
    """Return the order without the queries of some ids, and their earlier versions."""
    # an id may have had earlier bearers; they were removed before the last one came
    dead = pc.is_in(pa.chunked_array(ids, pa.large_binary()), value_set=gone.ids.arrow())
    alive: Positions = order[~np.asarray(dead)[order]]
    # every tombstone must remove exactly one living query
    if len(order) - len(alive) != len(gone):
        raise OrderError("a tombstone is for no query that lives")
    return alive


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


def check_unique(segments: Iterable[Segment], order: Positions) -> None:
    """Raise if two living queries of different segments have one id; in one they never have."""
    base, *later = [s.queries.ids.arrow() for s in segments if not isinstance(s, Tombstones)]
    ids = pa.chunked_array(later, pa.large_binary()).take(order[order >= len(base)] - len(base))
    # deltas are small: only they are compared with each other, and the base with them
    is_twice = pc.count_distinct(ids).as_py() != len(ids)
    in_base = np.asarray(pc.is_in(base, value_set=ids.combine_chunks()))
    if is_twice or np.any(in_base[order[order < len(base)]]):
        raise OrderError("two queries have the same id")
