"""What a Python worker of Spark keeps in memory: the index of each snapshot that it has used.

Spark keeps its Python workers between tasks, so an index is made once in each of them, and serves
every task and micro-batch until newer versions push it out. Large ones are verified and built once
on a machine, and mapped by its workers (`snapshot.machine_cache`, `matching.keyed.stored`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.events import EventBatch, Piece, read_piece
from headgate.events.file_access import is_typed
from headgate.matching import Index, IndexOptions, build_index_from_snapshot
from headgate.matching.matches import Positions
from headgate.queries import Query, compute_query_version
from headgate.schema import Stream
from headgate.snapshot import fingerprint, open_snapshot

MAX_CACHED_SNAPSHOTS = 2  # the version in use, and the one that takes over
BATCH_ROWS = 16_384  # events that a task parses and matches at once

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedQueries:
    """The queries of one stream, ready to match.

    `stream` checks only what the queries use; `used` names these attributes in declared order.
    """

    index: Index
    stream: Stream
    used: tuple[str, ...]
    versions: QueryVersions


def read_pieces(
    pieces: Iterable[Piece],
    stream: Stream,
    used: Collection[str],
    *,
    dead_letter_errors: bool = True,
) -> Iterator[tuple[str, EventBatch]]:
    """Yield the events of pieces of files in batches, each with the path that it comes from.

    They are read as `headgate match` reads them: of a text every attribute is parsed, of a typed
    file only what is used. With `dead_letter_errors`, what cannot be read becomes a dead letter.
    """
    for piece in pieces:
        batches = read_piece(
            piece,
            stream,
            columns=used if is_typed(piece.path, piece.format) else None,
            batch_rows=BATCH_ROWS,
            dead_letter_errors=dead_letter_errors,
        )
        for batch in batches:
            yield piece.path, batch


class QueryVersions:
    """The versions of queries by their positions, each computed when it is first needed."""

    def __init__(self, queries_at: Callable[[Numbers], Iterable[Query]]) -> None:
        self._queries_at = queries_at
        # by position: the place of a query's version among the known ones, or -1
        self._places = np.zeros(0, np.int32)
        self._known: Any = pa.array([], pa.string())

    def get(self, positions: Positions) -> pa.Array[Any]:
        """Return the version of the query at each position."""
        last = int(positions.max(initial=-1))
        if last >= len(self._places):
            # at least twice as long, so that growing costs little, however far positions reach
            more = max(last + 1, 2 * len(self._places)) - len(self._places)
            self._places = np.append(self._places, np.full(more, -1, np.int32))
        places = self._places[positions]
        if places.min(initial=0) < 0:
            # of a million queries few match in a batch: only their versions are computed
            self._compute(np.unique(positions[places < 0]))
            places = self._places[positions]
        versions: pa.Array[Any] = self._known.take(pa.array(places))
        return versions

    def _compute(self, positions: Numbers) -> None:
        """Add the versions of queries that were not needed before."""
        new = [compute_query_version(query) for query in self._queries_at(positions)]
        first = len(self._known)
        self._places[positions] = np.arange(first, first + len(new))
        self._known = pa.concat_arrays([self._known, pa.array(new, pa.string())])


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """The kind of index that workers build, and the options of that kind, if it has any."""

    kind: str = "auto"
    options: IndexOptions | None = None


def load_cached(directory: str, stream: str, index: IndexConfig) -> LoadedQueries:
    """Return the queries on one stream in a snapshot, from an earlier call if they are the same.

    A snapshot is recognised by its manifest too: a directory may be deleted and published to again.
    """
    return _load_by_fingerprint(directory, fingerprint(Path(directory)), stream, index)


@lru_cache(maxsize=MAX_CACHED_SNAPSHOTS)
def _load_by_fingerprint(directory: str, _: str, stream: str, index: IndexConfig) -> LoadedQueries:
    loaded = load(directory, stream, index)
    _spare_from_collection()
    return loaded


def _spare_from_collection() -> None:
    """Have the garbage collector pass over what is in memory now, until the next call.

    Spark collects all garbage of a worker after each task. Over the modules and an index, which
    stay, that took half as long as matching 14,000 events.
    """
    gc.unfreeze()  # what the last call spared may be garbage now: a version that was replaced
    gc.collect()
    gc.freeze()


def load(directory: str, stream: str, index: IndexConfig) -> LoadedQueries:
    """Return the queries on one stream in a snapshot, verified by this machine."""
    snapshot = open_snapshot(directory)
    chosen = snapshot.schema.stream(stream)
    built = build_index_from_snapshot(
        snapshot,
        index.kind,
        stream=stream,
        threads=1,  # a task keeps to its core
        options=index.options,
    )
    used = tuple(attribute.name for attribute in chosen if attribute.name in built.columns)
    versions = QueryVersions(built.queries_at)
    return LoadedQueries(built.index, chosen.keep_checks_on(built.columns), used, versions)
