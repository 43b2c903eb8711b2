"""Queries that another index leaves to a scan, because their OR has too many parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.events import EventBatch
from headgate.matching.found import Found
from headgate.matching.scan import ScanIndex
from headgate.predicate.conjunctions import Conjunction, conjunctions
from headgate.query import Query
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

    def added_to(self, found: Iterator[Found], batch: EventBatch) -> Iterator[Found]:
        """What the other index finds, with what the scan does; found now, not when asked for."""
        if not self._positions:
            return found
        scanned = self._scan.match(batch.table)
        at = np.array([self._positions.get(name, -1) for name in scanned.known_ids], np.int64)
        return (_together(one, scanned.offsets, at[scanned.positions]) for one in found)


def _together(piece: Found, offsets: np.ndarray, positions: np.ndarray) -> Found:
    """A piece with the matches of the same rows among all others."""
    own = offsets[piece.row : piece.end + 1]
    counts = np.arange(len(own) - 1)
    rows = np.concatenate(
        (np.repeat(counts, np.diff(piece.offsets)), np.repeat(counts, np.diff(own)))
    )
    both = np.concatenate((piece.positions, positions[own[0] : own[-1]]))
    return replace(
        piece,
        offsets=piece.offsets + (own - own[0]),
        positions=both[np.argsort(rows, kind="stable")],
    )


def few_conjunctions(query: Query) -> tuple[Conjunction, ...] | None:
    """The query as an OR of conjunctions; None where there are too many."""
    try:
        return conjunctions(query.where)
    except ExpansionTooLarge:
        return None
