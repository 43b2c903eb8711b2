"""Which queries want which events, in compressed sparse row form.

`Matches` is what users get, by event. `RowMatches` is what indexes give, by row of a batch: an
event that could not be read is no row, and has an error instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate._display import format_count, render_table
from headgate.events import EventBatch
from headgate.matching.known_ids import KnownIds, as_known_ids

Numbers = npt.NDArray[np.int64]

MAX_SHOWN_IDS = 10  # of an event, in a notebook


@dataclass(frozen=True, slots=True)
class Matches:
    """The queries that each event matches, as positions in an index.

    Event i matches the queries at `positions[offsets[i]:offsets[i + 1]]`, in no particular order:
    sorting them can take longer than the match. `matches[i]`, `ids` and `in_order` sort.

    Parameters
    ----------
    offsets : ndarray of int64
        Where the positions of each event begin, and the end of the last.
    positions : ndarray of int64
        The positions of the matching queries, event after event.
    known_ids : sequence of str, or a pyarrow Array of them
        The id of the query at each position.
    errors : mapping of int to str
        Why an event could not be read, by its number. Such an event has no matches, and an error
        never looks like "no match".
    first : int
        The number of the first event, if these matches are one chunk of many.

    Examples
    --------
    >>> matches = Matches(np.array([0, 2, 2]), np.array([1, 0]), ["low", "high"])
    >>> len(matches), matches[0], matches[1]
    (2, ['low', 'high'], [])
    >>> matches.ids().to_pylist()
    [['low', 'high'], []]
    """

    offsets: Numbers
    positions: Numbers
    known_ids: Sequence[str] = field(repr=False)
    errors: Mapping[int, str] = field(default_factory=dict)
    first: int = 0

    def __post_init__(self) -> None:
        # an Arrow array would give its own scalars
        if isinstance(self.known_ids, pa.Array):
            object.__setattr__(self, "known_ids", as_known_ids(self.known_ids))

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> list[str]:
        """Return the ids of the queries that one event of this chunk matches."""
        if not 0 <= event < len(self):
            raise IndexError(f"event {event} of {len(self)}")
        return self._list_ids(self.positions[self.offsets[event] : self.offsets[event + 1]])

    def _list_ids(self, positions: Numbers) -> list[str]:
        """Return the ids at some positions, in ascending order of these."""
        if isinstance(self.known_ids, KnownIds):
            return self.known_ids.list_at(np.sort(positions))
        return [self.known_ids[position] for position in sorted(positions.tolist())]

    def __repr__(self) -> str:
        return f"<Matches: {self._summarize()}>"

    def _repr_html_(self) -> str:
        rows = ((self.first + event, self._list_few(event)) for event in range(len(self)))
        return render_table(self._summarize(), ("event", "queries"), rows, len(self))

    def _summarize(self) -> str:
        errors = f", {len(self.errors):,} not read" if self.errors else ""
        return f"{format_count(len(self), 'event')}, {format_count(self.total, 'match')}{errors}"

    def _list_few(self, event: int) -> str:
        """Return the first ids that an event matches, without sorting them all."""
        reason = self.errors.get(self.first + event)
        if reason is not None:
            return f"not read: {reason}"
        positions = self.positions[self.offsets[event] : self.offsets[event + 1]]
        more = len(positions) - MAX_SHOWN_IDS
        if more > 0:
            positions = np.partition(positions, MAX_SHOWN_IDS)[:MAX_SHOWN_IDS]
        shown = ", ".join(self._list_ids(positions))
        return f"{shown} and {more:,} more" if more > 0 else shown or "none"

    def up_to(self, limit: int) -> Matches:
        """Return the matches of the events whose number is below a limit.

        Parameters
        ----------
        limit : int
            The number of the first event that is left out.

        Returns
        -------
        Matches
            The matches of the events before it.
        """
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
        """Return a list of query ids for each event."""
        offsets: Any = pa.array(self.offsets.astype(np.int32))
        ids = as_known_ids(self.known_ids).take(self.in_order().positions)
        lists: pa.ListArray[Any] = pa.ListArray.from_arrays(offsets, ids)
        return lists

    def in_order(self) -> Matches:
        """Return the same matches, with the positions of each event in ascending order."""
        # one sort of event · width + position is faster than a sort for each event
        width = int(self.positions.max(initial=0)) + 1
        events = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return replace(self, positions=np.sort(events * width + self.positions) - events * width)


def concatenate_matches(chunks: Sequence[Matches], known_ids: Sequence[str]) -> Matches:
    """Return consecutive chunks as one."""
    # offsets of a chunk begin at 0, so all are summed up again from the counts
    counts = [np.diff(chunk.offsets) for chunk in chunks]
    offsets = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum().astype(np.int64)
    positions = [np.empty(0, np.int64), *(chunk.positions for chunk in chunks)]
    errors = {event: reason for chunk in chunks for event, reason in chunk.errors.items()}
    return Matches(offsets, np.concatenate(positions), known_ids, errors)


@dataclass(frozen=True, slots=True, eq=False)
class RowMatches:
    """The matches of consecutive rows of a batch, the first of which is `row`.

    Row `row + i` matches the queries at `positions[offsets[i]:offsets[i + 1]]`.
    """

    row: int
    offsets: Numbers
    positions: Numbers

    @classmethod
    def from_pairs(cls, row: int, count: int, rows: Numbers, positions: Numbers) -> RowMatches:
        """Return the matches of `count` rows, given as pairs of a row, from 0, and a position."""
        # stable, so that the positions of a row stay in the order in which they came
        order = np.argsort(rows, kind="stable")
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
        return cls(row, offsets, positions[order])

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.row + len(self.offsets) - 1

    def below(self, limit: int) -> RowMatches:
        """Return the matches with positions below a limit: without queries that came meanwhile."""
        is_below = self.positions < limit
        # by place in `positions`: how many before it are below the limit
        kept_before = np.concatenate(([0], np.cumsum(is_below)))
        return replace(self, offsets=kept_before[self.offsets], positions=self.positions[is_below])


def to_events(
    batch: EventBatch, pieces: Iterable[RowMatches], ids: Sequence[str]
) -> Iterator[Matches]:
    """Return the matches of consecutive rows as those of events, with errors for the unreadable."""
    # Events of a batch have consecutive numbers, of which rows and errors have one each.
    errors = sorted((letter.event, letter.reason) for letter in batch.dead)
    numbers = batch.events  # the event of each row
    total = len(numbers) + len(errors)
    first = min([event for event, _ in errors[:1]] + numbers[:1].tolist(), default=0)
    last = first + total
    for piece in pieces:
        # a chunk reaches up to the event of the next row, over the unreadable events before it
        end = last if piece.end == len(numbers) else int(numbers[piece.end])
        counts = np.zeros(end - first + 1, np.int64)
        counts[numbers[piece.row : piece.end] - first + 1] = np.diff(piece.offsets)
        yield Matches(
            np.cumsum(counts), piece.positions, ids, _select_errors(errors, first, end), first
        )
        first = end
    # unreadable events behind the last row, or a batch without any row
    if first < last:
        nothing = np.empty(0, np.int64)
        offsets = np.zeros(last - first + 1, np.int64)
        yield Matches(offsets, nothing, ids, _select_errors(errors, first, last), first)


def _select_errors(errors: list[tuple[int, str]], first: int, end: int) -> dict[int, str]:
    return dict(errors[bisect_left(errors, (first, "")) : bisect_left(errors, (end, ""))])
