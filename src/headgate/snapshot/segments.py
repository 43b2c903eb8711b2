"""The segments of a snapshot: a base, deltas and tombstones, which make up the set in order.

A base is a set of queries in order. Tombstones remove queries by their ids, and those that stay
keep their order. A delta inserts queries, each at its place in the result.

The queries of all segments, one segment behind the other, have positions: append-only, never
reused. The order of a set is the positions of its living queries (`order_living`), and a step is
the tombstones and the delta that lead from one set to another (`compute_step`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from mmap import mmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.queries import Query, QuerySet
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
    flaw = find_flaw(segment.queries, schema)
    return _find_repeated_id(segment.queries.ids) if flaw is None else flaw


def _find_repeated_id(ids: Texts) -> str | None:
    distinct: int = pc.count_distinct(ids.arrow()).as_py()
    return None if distinct == len(ids) else "ids: two queries have the same one"


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
    found = pc.index_in(_collect_ids(segments), value_set=mentioned)
    positions = np.flatnonzero(np.asarray(found.is_valid()))
    places = np.asarray(found.drop_null())  # of the id among those mentioned
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
    """Raise if two living queries have one id; within a segment that was found out already."""
    base = len(segments[0])
    later = order[order >= base]
    if not len(later):
        return
    ids = _collect_ids(segments)
    new = ids.take(later)
    # those of the base are looked through once, for all that came later
    has_twin = np.asarray(pc.is_in(ids.chunk(0), value_set=new))
    is_twin_alive = has_twin[order[order < base]].any()
    if is_twin_alive or pc.count_distinct(new).as_py() != len(later):
        raise OrderError("two queries have the same id")


@dataclass(frozen=True, slots=True)
class Step:
    """A step between sets: remove `removed`, then put `new` at `places` of the result."""

    removed: tuple[str, ...]
    new: tuple[Query, ...]
    places: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.removed) + len(self.new)


def compute_step(old: QuerySet, new: QuerySet) -> Step:
    """Return the least step from one set to the other, in its exact order.

    A query that is added, removed, or changed where it stands costs only itself. Of those that
    changed places as few as possible are taken out and put in again: all outside a longest
    subsequence that kept its order.
    """
    ranks = {query_id: rank for rank, query_id in enumerate(old.ids)}
    # queries that are the same in both sets: place in the new one, rank in the old
    same = [
        (place, ranks[query.id])
        for place, query in enumerate(new)
        if query.id in ranks and old[query.id] == query
    ]
    places = [place for place, _ in same]
    kept_ranks = [rank for _, rank in same]
    # most changes move nothing, and then all that is the same can stay
    if any(later < earlier for earlier, later in pairwise(kept_ranks)):
        stay = longest_increasing(kept_ranks)
        places = [places[i] for i in stay]
    staying_places = set(places)
    # new, changed and moved queries alike leave their old place and come in again
    moved_in = [(place, query) for place, query in enumerate(new) if place not in staying_places]
    staying = {query.id for place, query in enumerate(new) if place in staying_places}
    return Step(
        removed=tuple(query_id for query_id in old.ids if query_id not in staying),
        new=tuple(query for _, query in moved_in),
        places=tuple(place for place, _ in moved_in),
    )


def longest_increasing(values: Sequence[int]) -> list[int]:
    """Return the places of a longest increasing subsequence, in n log n steps (Fredman 1975).

    >>> longest_increasing([3, 0, 1, 2])
    [1, 2, 3]
    """
    ends: list[int] = []  # the least value in which a subsequence of each length can end
    end_places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        # the longest subsequence that the value can be appended to
        length = bisect_left(ends, value)
        before.append(end_places[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        end_places[length : length + 1] = [place]
    # from the last place back to the first
    backwards: list[int] = []
    place = end_places[-1] if end_places else -1
    while place >= 0:
        backwards.append(place)
        place = before[place]
    return backwards[::-1]
