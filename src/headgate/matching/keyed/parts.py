"""Changes to the parts of an index: what came is a part of its own, until parts are put together.

As in a log-structured merge tree, a new part swallows the parts before it that are not much larger,
so that there are few parts and a query is filed anew only some times. Large parts are put together
in the background. A tuple of parts never changes, so whoever matches against it is not disturbed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headgate.matching.keyed.segment import Numbers, Part, segment_of
from headgate.queries import Query
from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries, encode_queries
from headgate.snapshot.arrays.selection import concatenated, selected

SWALLOWED = 2  # times as large as what comes, at most
LARGE = 5_000  # queries of a part that are filed anew only in the background
STALE = 0.05  # removed queries, and those in other parts, as a share of the largest part

FEWEST_STALE = 1_000  # of them, that are worth a rebuild

Parts = tuple[Part, ...]


def without(parts: Parts, gone: Sequence[int]) -> Parts:
    """The parts without the queries at some positions."""
    if not gone:
        return parts
    positions = np.array(sorted(gone), np.int64)
    return tuple(part.without(positions) for part in parts)


def with_new(parts: Parts, new: Mapping[int, Query], schema: Schema, settled: int) -> Parts:
    """The parts with new queries, by their positions, which are above all others.

    The first `settled` of the parts are left as they are.
    """
    if not new:
        return parts
    encoded = encode_queries(new.values(), schema)
    positions = np.fromiter(new, np.int64, len(new))
    swallowed: list[Part] = []
    size = len(new)
    while len(parts) > settled and len(parts[-1].segment) <= min(LARGE, SWALLOWED * size):
        parts, last = parts[:-1], parts[-1]
        swallowed.insert(0, last)
        size += len(last.segment)
    if swallowed:
        older, their_positions = living(swallowed, schema)
        encoded = concatenated([older, encoded], schema)
        positions = np.concatenate([their_positions, positions])
    return parts + filed(encoded, positions, schema)


def put_together(parts: Sequence[Part], schema: Schema) -> Parts:
    """One part that holds the living queries of all, or none if there are none."""
    return filed(*living(parts, schema), schema)


def filed(encoded: EncodedQueries, positions: Numbers, schema: Schema) -> Parts:
    """A part of these queries, or none if there are none."""
    return (Part.of(segment_of(encoded, positions, schema)),) if len(encoded) else ()


def living(parts: Sequence[Part], schema: Schema) -> tuple[EncodedQueries, Numbers]:
    """The living queries of some parts, and their positions."""
    numbers = [np.flatnonzero(part.living) for part in parts]
    encoded = [
        selected(part.segment.encoded, alive, schema)
        for part, alive in zip(parts, numbers, strict=True)
    ]
    positions = [part.segment.positions[alive] for part, alive in zip(parts, numbers, strict=True)]
    return concatenated(encoded, schema), np.concatenate(positions)


def stale(parts: Sequence[Part]) -> bool:
    """Is it time to put the parts together?"""
    if not parts:
        return False
    largest = max(len(part.segment) for part in parts)
    dead = sum(part.dead for part in parts)
    elsewhere = sum(len(part.segment) for part in parts) - largest
    return dead + elsewhere > max(STALE * largest, FEWEST_STALE)
