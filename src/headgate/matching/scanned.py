"""Queries that another index leaves to a scan, because their OR has too many parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.events import EventBatch
from headgate.matching.found import Found, from_pairs
from headgate.matching.scan import ScanIndex
from headgate.predicate.conjunctions import Conjunction, to_conjunctions
from headgate.queries import Query
from headgate.schema import Stream


class Scanned:
    """A scan with the positions that its queries have in the other index."""

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

    def added_to(self, found: Iterator[Found], batch: EventBatch, known: int) -> Iterator[Found]:
        """What the other index finds, piece by piece, with what the scan does; without queries that
        came after the first `known`."""
        return (self._together(piece, batch, known) for piece in found) if len(self) else found

    def _together(self, piece: Found, batch: EventBatch, known: int) -> Found:
        scanned = self._scan.match(batch.table.slice(piece.row, piece.end - piece.row))
        at = np.array([self._positions.get(name, -1) for name in scanned.known_ids], np.int64)
        rows = np.arange(len(scanned))
        mine = np.repeat(rows, np.diff(scanned.offsets))
        positions = at[scanned.positions]
        kept = (positions >= 0) & (positions < known)
        return from_pairs(
            piece.row,
            len(rows),
            np.concatenate((np.repeat(rows, np.diff(piece.offsets)), mine[kept])),
            np.concatenate((piece.positions, positions[kept])),
        )


def few_conjunctions(query: Query) -> tuple[Conjunction, ...] | None:
    """The query as an OR of conjunctions; None where there are too many."""
    try:
        return to_conjunctions(query.where)
    except ExpansionTooLarge:
        return None
