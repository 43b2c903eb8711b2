"""What a task makes of its events for the continuous queries: of each, one small reduction."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.events import EventBatch
from headgate.spark.streaming.standing import Standing, reduction

TOGETHER = 16  # reductions that are merged at once


class Reducing:
    """The events of one stream, reduced batch by batch for each query that reads it."""

    def __init__(self, stream: str, queries: Sequence[Standing]) -> None:
        self._stream = stream
        self._reductions = {one.id: reduction(one) for one in queries}
        self._found: dict[str, list[bytes]] = {one.id: [] for one in queries}

    @property
    def attributes(self) -> set[str]:
        """The names of the attributes that the queries use."""
        used = (one.attributes(self._stream) for one in self._reductions.values())
        return {name for names in used for name in names}

    def add(self, batch: EventBatch) -> None:
        if not len(batch.events):
            return
        for query_id, found in self._found.items():
            found.append(self._reductions[query_id].reduced(self._stream, batch))
            if len(found) == TOGETHER:
                found[:] = [self._merged(query_id)]

    def result(self) -> dict[str, bytes]:
        """A reduction for each query that had any event."""
        return {
            query_id: self._merged(query_id) for query_id, found in self._found.items() if found
        }

    def _merged(self, query_id: str) -> bytes:
        found = self._found[query_id]
        if len(found) == 1:
            return found[0]
        return self._reductions[query_id].merged(self._stream, found)
