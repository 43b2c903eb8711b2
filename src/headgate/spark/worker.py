"""What a Python worker of Spark holds on to: the index of each snapshot that it was asked about.

Spark keeps its Python workers between tasks, so an index is built once in each of them, from a
snapshot whose arrays are mapped into memory, and serves every task and micro-batch until newer
versions push it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events import EventBatch, Piece, read_piece
from headgate.matching import Index, index
from headgate.predicate import columns
from headgate.queries import query_version
from headgate.query import Query
from headgate.schema import Stream
from headgate.snapshot import fingerprint, open_snapshot

KEPT = 2  # the version in use, and the one that takes over
BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """The queries of one stream, ready to match.

    `stream` checks only what the queries use; `used` names these attributes in declared order.
    """

    index: Index
    stream: Stream
    used: tuple[str, ...]
    versions: Versions

    def read(
        self, piece: Piece, keep: Collection[str] = (), *, bury: bool = False
    ) -> Iterator[EventBatch]:
        """The events of a piece of a file, as `headgate match` reads them.

        Of a text every attribute is parsed, of a typed file only what is used or kept.
        """
        typed = (piece.format or Path(piece.path).suffix.removeprefix(".")) == "parquet"
        columns = {*self.used, *keep} if typed else None
        return read_piece(piece, self.stream, columns=columns, batch_rows=BATCH_ROWS, bury=bury)


class Versions:
    """The versions of queries by their positions, each computed when it is first asked for."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._queries = queries
        self._known: dict[int, str] = {}

    def of(self, positions: npt.NDArray[np.int64]) -> pa.Array[Any]:
        distinct, places = np.unique(positions, return_inverse=True)
        found: Any = pa.array([self._of(position) for position in distinct.tolist()], pa.string())
        taken: pa.Array[Any] = found.take(pa.array(places))
        return taken

    def _of(self, position: int) -> str:
        version = self._known.get(position)
        if version is None:
            version = self._known[position] = query_version(self._queries[position])
        return version


def loaded(directory: str, stream: str, kind: str = "auto") -> Loaded:
    """The queries on one stream in a snapshot, which is verified when it is opened.

    It is known by its manifest too: a directory may be deleted and published to anew.
    """
    return _loaded(directory, fingerprint(Path(directory)), stream, kind)


@lru_cache(maxsize=KEPT)
def _loaded(directory: str, _: str, stream: str, kind: str) -> Loaded:
    queries = open_snapshot(directory).query_set()
    chosen = queries.schema.the_stream(stream)
    filters = queries.filters(chosen.name)
    names = {column.name for query in filters for column in columns(query.where)}
    return Loaded(
        index(queries, kind, stream=chosen.name),
        chosen.checked_on(names),
        tuple(attribute.name for attribute in chosen if attribute.name in names),
        Versions(filters),
    )
