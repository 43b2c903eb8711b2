"""Queries that another index leaves to a scan, because their OR has too many parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.events import EventBatch
from headgate.matching.matches import RowMatches
from headgate.matching.scan import ScanIndex
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.queries import Query
from headgate.schema import Stream


class ScanFallback:
    """A scan whose queries have the positions of another index."""

    def __init__(self, stream: Stream) -> None:
        self._scan = ScanIndex(stream)
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def insert(self, query: Query, position: int) -> None:
        self._positions[query.id] = position
        self._scan.insert(query)

    def remove(self, query_id: str) -> None:
        del self._positions[query_id]
        self._scan.remove(query_id)

    def add_matches(
        self, pieces: Iterator[RowMatches], batch: EventBatch, limit: int
    ) -> Iterator[RowMatches]:
        """Return the matches of the other index, with those of the scan that are below a limit."""
        return (self._merge(piece, batch, limit) for piece in pieces) if len(self) else pieces

    def _merge(self, piece: RowMatches, batch: EventBatch, limit: int) -> RowMatches:
        scanned = self._scan.match(batch.table.slice(piece.row, piece.end - piece.row))
        # from the scan's own positions to those of the other index; −1 for a removed query
        position_of = np.array(
            [self._positions.get(query_id, -1) for query_id in scanned.known_ids], np.int64
        )
        positions = position_of[scanned.positions]
        is_wanted = (positions >= 0) & (positions < limit)
        rows = np.arange(len(scanned))
        scanned_rows = np.repeat(rows, np.diff(scanned.offsets))
        return RowMatches.from_pairs(
            piece.row,
            len(rows),
            np.concatenate((np.repeat(rows, np.diff(piece.offsets)), scanned_rows[is_wanted])),
            np.concatenate((piece.positions, positions[is_wanted])),
        )


def try_conjunctions(query: Query) -> tuple[Conjunction, ...] | None:
    """Return the query as an OR of conjunctions; None if there are too many."""
    try:
        return to_conjunctions(query.where)
    except ExpansionTooLarge:
        return None
