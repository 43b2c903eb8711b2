"""Who takes part in the BE-Tree paper's experiments: a name, and how its index is built.

All are built from the same arrays of queries and match the same Arrow tables of events, by the same
protocol: reading the table and encoding its values is on everybody's clock, and what that takes
is told beside the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from headgate.matching import Index, ScanIndex
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries

Build = Callable[[Stream, EncodedQueries], Index]


@dataclass(frozen=True, slots=True)
class Kind:
    """A contestant of this name; its module is imported when it is built.

    One that enumerates lists a query under every value that it accepts. `events`, if not 0, is how
    many are enough to time one that is slow.
    """

    name: str
    build: Build
    enumerates: bool = False
    events: int = 0


def _auto(stream: Stream, encoded: EncodedQueries) -> Index:
    from headgate.matching.keyed.index import KeyedIndex

    return KeyedIndex.from_encoded(stream, encoded)


def _scan(stream: Stream, encoded: EncodedQueries) -> Index:
    return ScanIndex.build(stream, list(decode_queries(encoded, Schema((stream,)))))


def be_tree(name: str, **options: Any) -> Kind:
    """Return a BE-Tree with these options, otherwise as users get it."""

    def build(stream: Stream, encoded: EncodedQueries) -> Index:
        from headgate.matching.be_tree.index import BeTreeIndex
        from headgate.matching.be_tree.options import BeTreeOptions

        index: Index = BeTreeIndex.from_encoded(stream, encoded, BeTreeOptions(**options))
        return index

    return Kind(name, build)


def _rival(
    name: str, module: str, class_name: str, *, enumerates: bool = False, events: int = 0
) -> Kind:
    def build(stream: Stream, encoded: EncodedQueries) -> Index:
        kind = getattr(import_module(f"benchmarks.rivals.{module}"), class_name)
        index: Index = kind.from_encoded(stream, encoded)
        return index

    return Kind(name, build, enumerates, events)


AUTO = Kind("Headgate auto", _auto)
SCAN = Kind("SCAN", _scan, events=800)
BE_TREE = be_tree("BE-Tree")
BATCH = be_tree("BE-Tree batch", construction="batch")
ADVANCED_GRYPHON = _rival("ADGR", "gryphon", "AdvancedGryphonIndex")
GRYPHON = _rival("GR", "gryphon", "GryphonIndex")
K_INDEX = _rival("k-index", "k_index", "KIndex", enumerates=True, events=2_000)
PROPAGATION = _rival("Propagation", "propagation", "PropagationIndex")
APP = _rival("APP", "counting", "AppIndex", enumerates=True)
SIFT = _rival("SIFT", "counting", "SiftByStepsIndex", enumerates=True)  # as published
VECTORISED = _rival("SIFT, vectorised", "counting", "SiftIndex", enumerates=True)

EVERYBODY = (
    *(BE_TREE, AUTO, BATCH, ADVANCED_GRYPHON, K_INDEX),
    *(PROPAGATION, APP, GRYPHON, VECTORISED, SIFT, SCAN),
)
