"""From the rows of a batch to its events: some events are no rows, and have a reason instead."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headgate.events import EventBatch
from headgate.matching.matches import Matches

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The matches of the rows from `row` on: row `row + i` is wanted by the queries at
    `positions[offsets[i]:offsets[i + 1]]`."""

    row: int
    offsets: Numbers
    positions: Numbers

    @property
    def end(self) -> int:
        return self.row + len(self.offsets) - 1

    def before(self, known: int) -> Found:
        """Without the queries that came after the first `known`, while rows were being matched."""
        old = self.positions < known
        kept = np.concatenate(([0], np.cumsum(old)))
        return replace(self, offsets=kept[self.offsets], positions=self.positions[old])


def from_pairs(row: int, count: int, rows: Numbers, positions: Numbers) -> Found:
    """The matches of `count` rows from pairs of a row, from 0, and the position of a query."""
    order = np.argsort(rows, kind="stable")
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    return Found(row, offsets, positions[order])


def of_events(batch: EventBatch, pieces: Iterable[Found], ids: Sequence[str]) -> Iterator[Matches]:
    """The matches of consecutive rows as those of all events, with reasons for the unreadable."""
    errors = sorted((letter.event, letter.reason) for letter in batch.dead)
    numbers = batch.events
    total = len(numbers) + len(errors)
    first = min([event for event, _ in errors[:1]] + numbers[:1].tolist(), default=0)
    last = first + total
    for found in pieces:
        end = last if found.end == len(numbers) else int(numbers[found.end])
        counts = np.zeros(end - first + 1, np.int64)
        counts[numbers[found.row : found.end] - first + 1] = np.diff(found.offsets)
        yield Matches(np.cumsum(counts), found.positions, ids, _between(errors, first, end), first)
        first = end
    if first < last:
        nothing = np.empty(0, np.int64)
        offsets = np.zeros(last - first + 1, np.int64)
        yield Matches(offsets, nothing, ids, _between(errors, first, last), first)


def _between(errors: list[tuple[int, str]], first: int, end: int) -> dict[int, str]:
    return dict(errors[bisect_left(errors, (first, "")) : bisect_left(errors, (end, ""))])
