"""Which queries want which events, in compressed sparse row form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Matches:
    """Event i is wanted by the queries at `positions[offsets[i]:offsets[i + 1]]`.

    These are in no particular order: sorting them can take longer than finding them. The ids that
    `matches[i]` and `ids` give are in order of position, and so is everything in `in_order`.
    `first` is the number of the first event, where the matches are a chunk of many. An event that
    could not be read has no matches, and its reason in `errors`, so that an error never looks like
    "no match".
    """

    offsets: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    known_ids: Sequence[str] = field(repr=False)
    errors: Mapping[int, str] = field(default_factory=dict)
    first: int = 0

    def __len__(self) -> int:
        """The number of events."""
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> list[str]:
        """The ids of the queries that want one event of this chunk."""
        if not 0 <= event < len(self):
            raise IndexError(f"event {event} of {len(self)}")
        start, end = self.offsets[event], self.offsets[event + 1]
        return [self.known_ids[position] for position in sorted(self.positions[start:end].tolist())]

    def up_to(self, limit: int) -> Matches:
        """Those of the events whose number is below a limit."""
        count = min(max(0, limit - self.first), len(self))
        offsets = self.offsets[: count + 1]
        errors = {event: reason for event, reason in self.errors.items() if event < limit}
        return replace(
            self, offsets=offsets, positions=self.positions[: offsets[-1]], errors=errors
        )

    @property
    def total(self) -> int:
        """The number of pairs of an event and a query."""
        return len(self.positions)

    def ids(self) -> pa.ListArray[Any]:
        """A list of query ids for each event."""
        known: Any = pa.array(self.known_ids, pa.string())
        offsets: Any = pa.array(self.offsets.astype(np.int32))
        found = known.take(self.in_order().positions)
        lists: pa.ListArray[Any] = pa.ListArray.from_arrays(offsets, found)
        return lists

    def in_order(self) -> Matches:
        """The same, with the positions of each event in ascending order."""
        width = int(self.positions.max(initial=0)) + 1
        events = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return replace(self, positions=np.sort(events * width + self.positions) - events * width)


def joined(chunks: Sequence[Matches], known_ids: Sequence[str]) -> Matches:
    """Consecutive chunks as one."""
    counts = [np.diff(chunk.offsets) for chunk in chunks]
    offsets = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum().astype(np.int64)
    positions = [np.empty(0, np.int64), *(chunk.positions for chunk in chunks)]
    errors = {event: reason for chunk in chunks for event, reason in chunk.errors.items()}
    return Matches(offsets, np.concatenate(positions), known_ids, errors)
