"""Indexes that answer "which queries want these events?": one protocol, one reference.

`build` chooses and builds an index, `protocol` says what an index can do, `matches` what it
returns. `scan` is the reference; `keyed`, `be_tree` and `asc` are faster, and read events and
conditions through `encoding`.

To add an index, write a class that satisfies `protocol.Index` and add it to `KINDS` and
`get_index_class` in `build`. The contract tests then run it against `scan`.
"""

from __future__ import annotations

from headgate.matching.build import (
    KINDS,
    IndexOptions,
    SnapshotIndex,
    build_index,
    build_index_from_snapshot,
    get_index_class,
)
from headgate.matching.matches import MatchedIds, Matches
from headgate.matching.protocol import Index, Placement
from headgate.matching.scan import ScanIndex

__all__ = [
    "KINDS",
    "Index",
    "IndexOptions",
    "MatchedIds",
    "Matches",
    "Placement",
    "ScanIndex",
    "SnapshotIndex",
    "build_index",
    "build_index_from_snapshot",
    "get_index_class",
]
