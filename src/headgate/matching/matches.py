"""Which queries want which events, in compressed sparse row form.

`Matches` is what users get, by event. `RowMatches` is what indexes give, by row of a batch: an
event that could not be read is no row, and has an error instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate._display import format_count, render_table
from headgate.errors import UsageError
from headgate.events import EventBatch
from headgate.matching.known_ids import KnownIds, as_known_ids

Numbers = npt.NDArray[np.int64]
# of 32 bits, as indexes give them: they are most of what a match writes
Positions = npt.NDArray[np.signedinteger[Any]]

MAX_SHOWN_IDS = 10  # of an event, in a notebook
MAX_LISTED_IDS = np.iinfo(np.int32).max  # in Arrow's lists, whose offsets have 32 bits


@dataclass(frozen=True, slots=True)
class Matches:
    """The queries that each event matches, as positions in an index.

    Event i matches the queries at `positions[offsets[i]:offsets[i + 1]]`, in no particular order:
    sorting them can take longer than the match. `matches[i]`, `ids` and `in_order` sort.

    Parameters
    ----------
    offsets : ndarray of int64
        Where the positions of each event begin, and the end of the last.
    positions : ndarray of int32
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
    positions: Positions
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
        if self.total > MAX_LISTED_IDS:
            raise UsageError(
                f"{self.total:,} matches are too many for one Arrow array of lists; "
                "take the ids of one chunk of `match_chunks` after the other"
            )
        offsets: Any = pa.array(self.offsets.astype(np.int32))
        ids = as_known_ids(self.known_ids).take(self.in_order().positions)
        lists: pa.ListArray[Any] = pa.ListArray.from_arrays(offsets, ids)
        return lists

    def in_order(self) -> Matches:
        """Return the same matches, with the positions of each event in ascending order."""
        # one sort of event · width + position is faster than a sort for each event
        width = int(self.positions.max(initial=0)) + 1
        events = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        ordered = np.sort(events * width + self.positions) - events * width
        return replace(self, positions=ordered.astype(np.int32))


class MatchedIds(Sequence[str]):
    """The ids of the queries that one event matches, in the order of their positions.

    A sequence of texts that are made only when one is asked for: where many queries match, that
    takes longer than the match. `len` and `positions` make none.

    Parameters
    ----------
    positions : ndarray of int64
        The positions of the matching queries, in any order.
    known_ids : sequence of str
        The id of the query at each position.

    Examples
    --------
    >>> ids = MatchedIds(np.array([1, 0]), ["low", "high"])
    >>> ids, len(ids), "high" in ids, list(ids)
    (['low', 'high'], 2, True, ['low', 'high'])
    """

    __slots__ = ("_ids", "_known_ids", "positions")

    def __init__(self, positions: Numbers, known_ids: Sequence[str]) -> None:
        self.positions = positions
        self._known_ids = known_ids
        self._ids: list[str] | None = None

    def __len__(self) -> int:
        """Return the number of queries that match."""
        return len(self.positions)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._list()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._list())

    def __eq__(self, other: object) -> bool:
        """Return whether the other sequence, such as a list, has the same ids."""
        if isinstance(other, list | tuple | MatchedIds):
            return self._list() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._list())

    def _list(self) -> list[str]:
        if self._ids is None:
            known = self._known_ids
            self._ids = [known[position] for position in np.sort(self.positions).tolist()]
        return self._ids


def concatenate_matches(chunks: Sequence[Matches], known_ids: Sequence[str]) -> Matches:
    """Return consecutive chunks, of which the first begins with event 0, as one."""
    if len(chunks) == 1 and chunks[0].known_ids is known_ids:
        return chunks[0]
    # offsets of a chunk begin at 0, so all are summed up again from the counts
    counts = [np.diff(chunk.offsets) for chunk in chunks]
    offsets = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum().astype(np.int64)
    positions = [np.empty(0, np.int32), *(chunk.positions for chunk in chunks)]
    errors = {event: reason for chunk in chunks for event, reason in chunk.errors.items()}
    return Matches(offsets, np.concatenate(positions), known_ids, errors)


@dataclass(frozen=True, slots=True, eq=False)
class RowMatches:
    """The matches of consecutive rows of a batch, the first of which is `row`.

    Row `row + i` matches the queries at `positions[offsets[i]:offsets[i + 1]]`.
    """

    row: int
    offsets: Numbers
    positions: Positions

    @classmethod
    def from_pairs(cls, row: int, count: int, rows: Numbers, positions: Positions) -> RowMatches:
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
        positions = piece.positions.astype(np.int32, copy=False)
        yield Matches(np.cumsum(counts), positions, ids, _select_errors(errors, first, end), first)
        first = end
    # unreadable events behind the last row, or a batch without any row
    if first < last:
        nothing = np.empty(0, np.int32)
        offsets = np.zeros(last - first + 1, np.int64)
        yield Matches(offsets, nothing, ids, _select_errors(errors, first, last), first)


def to_numbered_events(
    pieces: Iterable[RowMatches], rows: int, ids: Sequence[str]
) -> Iterator[Matches]:
    """Return the matches of consecutive rows as those of events, of which row i is number i."""
    end = 0
    for piece in pieces:
        yield Matches(piece.offsets, piece.positions, ids, {}, piece.row)
        end = piece.end
    # there were no queries to match
    if end < rows:
        yield Matches(np.zeros(rows - end + 1, np.int64), np.empty(0, np.int64), ids, {}, end)


def _select_errors(errors: list[tuple[int, str]], first: int, end: int) -> dict[int, str]:
    return dict(errors[bisect_left(errors, (first, "")) : bisect_left(errors, (end, ""))])
