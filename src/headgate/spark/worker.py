"""What a Python worker of Spark holds on to: the index of each snapshot that it was asked about.

Spark keeps its Python workers between tasks, so an index is built once in each of them, from a
snapshot whose arrays are mapped into memory, and serves every task and micro-batch until newer
versions push it out.
"""

from __future__ import annotations

from functools import lru_cache

from headgate.matching import Index, index
from headgate.snapshot import open_snapshot

KEPT = 2  # the version in use, and the one that takes over


@lru_cache(maxsize=KEPT)
def index_of(directory: str, stream: str, kind: str = "auto") -> Index:
    """The index over one stream of the queries in a snapshot, verified when it is opened."""
    return index(open_snapshot(directory).query_set(), kind, stream=stream)
