"""Which queries of the segments are alive, and in which order.

The queries of all segments, one segment behind the other, have positions: append-only, never
reused. The order of a set is the positions of its living queries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.snapshot.segments import Delta, Positions, Segment, Tombstones


class Disordered(ValueError):
    """Segments that do not follow from one another."""


def living(segments: Iterable[Segment]) -> Positions:
    """The positions of the living queries, in the order of the set."""
    order = np.zeros(0, np.int64)
    ids: list[pa.LargeBinaryArray] = []
    for segment in segments:
        if isinstance(segment, Tombstones):
            order = _without(order, ids, segment)
            continue
        new = np.arange(len(segment), dtype=np.int64)
        places = segment.places if isinstance(segment, Delta) else new
        order = inserted(order, places, new + sum(map(len, ids)))
        ids.append(segment.queries.ids.arrow())
    return order


def _without(order: Positions, ids: list[pa.LargeBinaryArray], gone: Tombstones) -> Positions:
    """Every earlier bearer of the ids is dead; those before the last one were dead already."""
    dead = pc.is_in(pa.chunked_array(ids, pa.large_binary()), value_set=gone.ids.arrow())
    alive: Positions = order[~np.asarray(dead)[order]]
    if len(order) - len(alive) != len(gone):
        raise Disordered("a tombstone is for no query that lives")
    return alive


def inserted(order: Positions, places: Positions, new: Positions) -> Positions:
    """The order with each of `new` put where it belongs; the others fill the places between.

    >>> inserted(np.array([0, 1, 2]), np.array([1, 4]), np.array([7, 8])).tolist()
    [0, 7, 1, 2, 8]
    """
    length = len(order) + len(new)
    if np.any(np.diff(places, prepend=-1, append=length) <= 0):
        raise Disordered("the places of a delta do not ascend within the set")
    result = np.empty(length, np.int64)
    between = np.ones(length, np.bool_)
    between[places] = False
    result[places] = new
    result[between] = order
    return result


def check_unique(segments: Iterable[Segment], order: Positions) -> None:
    """No two living queries may have one id."""
    arrays = [s.queries.ids.arrow() for s in segments if not isinstance(s, Tombstones)]
    found = pa.chunked_array(arrays, pa.large_binary()).take(order)
    if pc.count_distinct(found).as_py() != len(order):
        raise Disordered("two queries have the same id")


def longest_increasing(values: Sequence[int]) -> list[int]:
    """The places of a longest increasing subsequence, in n log n steps (Fredman 1975).

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
    found: list[int] = []
    at = end_places[-1] if end_places else -1
    while at >= 0:
        found.append(at)
        at = before[at]
    return found[::-1]
