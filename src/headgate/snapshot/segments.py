"""The segments of a snapshot: a base, deltas and tombstones, which make up the set in order.

A base is a set of queries in order. Tombstones remove queries by their ids, and those that stay
keep their order. A delta inserts queries, each at its place in the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headgate.schema import Schema
from headgate.snapshot.arrays import EncodedQueries, Texts, encode_queries
from headgate.snapshot.arrays.texts import pack
from headgate.snapshot.arrays.validate import find_flaw, find_text_flaw
from headgate.snapshot.files import assemble_arrays, flatten_arrays, read_arrays

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


def read_segment(path: Path, kind: str) -> Segment:
    """Return the segment in a file, mapped into memory."""
    # an empty segment has the names and types that the file must have
    template = _empty(kind)
    return assemble_arrays(template, read_arrays(path, flatten_arrays(template)))


def _empty(kind: str) -> Segment:
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
