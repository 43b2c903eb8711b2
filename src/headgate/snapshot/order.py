"""Order the living queries of the segments, and find the least step from one set to another.

The queries of all segments, one segment behind the other, have positions: append-only, never
reused. The order of a set is the positions of its living queries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.queries import Query, QuerySet
from headgate.snapshot.segments import Delta, Positions, Segment, Tombstones


class OrderError(ValueError):
    """An error in segments that do not follow from one another."""


def order_living(segments: Iterable[Segment]) -> Positions:
    """Return the positions of the living queries, in the order of the set."""
    order = np.zeros(0, np.int64)
    ids: list[pa.LargeBinaryArray] = []
    for segment in segments:
        if isinstance(segment, Tombstones):
            order = _without(order, ids, segment)
            continue
        # the positions of a segment's queries begin behind those of all segments before it
        new = np.arange(len(segment), dtype=np.int64)
        places = segment.places if isinstance(segment, Delta) else new
        order = insert_at(order, places, new + sum(map(len, ids)))
        ids.append(segment.queries.ids.arrow())
    return order


def _without(order: Positions, ids: list[pa.LargeBinaryArray], gone: Tombstones) -> Positions:
    """Return the order without the queries of some ids, and their earlier versions."""
    # an id may have had earlier bearers; they were removed before the last one came
    dead = pc.is_in(pa.chunked_array(ids, pa.large_binary()), value_set=gone.ids.arrow())
    alive: Positions = order[~np.asarray(dead)[order]]
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
    between = np.ones(length, np.bool_)
    between[places] = False
    result[places] = new
    result[between] = order
    return result


def check_unique(segments: Iterable[Segment], order: Positions) -> None:
    """Raise if two living queries have one id."""
    arrays = [s.queries.ids.arrow() for s in segments if not isinstance(s, Tombstones)]
    ids = pa.chunked_array(arrays, pa.large_binary()).take(order)
    if pc.count_distinct(ids).as_py() != len(order):
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
    kept = set(places)
    moved_in = [(place, query) for place, query in enumerate(new) if place not in kept]
    staying = {query.id for place, query in enumerate(new) if place in kept}
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
