"""What a Python worker of Spark holds on to: the index of each snapshot that it was asked about.

Spark keeps its Python workers between tasks, so an index is built once in each of them, from a
snapshot whose arrays are mapped into memory, and serves every task and micro-batch until newer
versions push it out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events import EventBatch, Piece, read_piece
from headgate.matching import Index, build_index_from_snapshot
from headgate.matching.asc.options import AscOptions
from headgate.queries import Query, compute_query_version
from headgate.schema import Stream
from headgate.snapshot import fingerprint, open_snapshot

KEPT = 2  # the version in use, and the one that takes over
BATCH_ROWS = 16_384

Numbers = npt.NDArray[np.int64]


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
        return read_piece(
            piece, self.stream, columns=columns, batch_rows=BATCH_ROWS, dead_letter_errors=bury
        )


class Versions:
    """The versions of queries by their positions, each computed when it is first asked for."""

    def __init__(self, queries_at: Callable[[Numbers], Iterable[Query]]) -> None:
        self._queries_at = queries_at
        self._known: dict[int, str] = {}

    def of(self, positions: Numbers) -> pa.Array[Any]:
        distinct, places = np.unique(positions, return_inverse=True)
        new = np.array([p for p in distinct.tolist() if p not in self._known], np.int64)
        if len(new):
            for position, query in zip(new.tolist(), self._queries_at(new), strict=True):
                self._known[position] = compute_query_version(query)
        found: Any = pa.array([self._known[p] for p in distinct.tolist()], pa.string())
        taken: pa.Array[Any] = found.take(pa.array(places))
        return taken


def loaded(
    directory: str, stream: str, kind: str = "auto", options: AscOptions | None = None
) -> Loaded:
    """The queries on one stream in a snapshot, from an earlier call if they are still the same.

    It is known by its manifest too: a directory may be deleted and published to anew.
    """
    return _kept(directory, fingerprint(Path(directory)), stream, kind, options)


@lru_cache(maxsize=KEPT)
def _kept(directory: str, _: str, stream: str, kind: str, options: AscOptions | None) -> Loaded:
    return load(directory, stream, kind, options)


def load(directory: str, stream: str, kind: str, options: AscOptions | None = None) -> Loaded:
    """The queries on one stream in a snapshot, which is verified when it is opened.

    `options` are those of an index of kind "asc".
    """
    snapshot = open_snapshot(directory)
    chosen = snapshot.schema.stream(stream)
    built = build_index_from_snapshot(
        snapshot,
        kind,
        stream=stream,
        threads=1,  # a task keeps to its core
        options=options,
    )
    used = tuple(attribute.name for attribute in chosen if attribute.name in built.columns)
    return Loaded(
        built.index, chosen.keep_checks_on(built.columns), used, Versions(built.queries_at)
    )
