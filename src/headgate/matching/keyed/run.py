"""A batch against all parts of an index, in pieces of bounded size, on one thread or several."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import local

from headgate.events import EventBatch
from headgate.matching.found import Found
from headgate.matching.keyed.arrays import Events
from headgate.matching.keyed.event_columns import EventColumns
from headgate.matching.keyed.interleave import interleaved
from headgate.matching.keyed.segment import Numbers, Part, Room

FEWEST_ROWS, MOST_ROWS = 128, 4096  # of the block that a thread takes


def match_parts(parts: Sequence[Part], batch: EventBatch, threads: int) -> Iterator[Found]:
    """The matches of a batch, in order of rows."""
    columns = EventColumns(batch)
    work = _Work([(part, part.segment.events(columns)) for part in parts], len(columns))
    size = min(MOST_ROWS, max(FEWEST_ROWS, -(-work.rows // (4 * threads))))
    if not parts:
        return
    if threads == 1 or work.rows <= size:
        yield from _to_end(work, work.found(0, work.rows), work.rows)
    else:
        yield from _on_threads(work, size, threads)


class _Work:
    """What all threads share, and a room for each of them."""

    def __init__(self, parts: list[tuple[Part, Events]], rows: int) -> None:
        self.parts = parts
        self.rows = rows
        self._own = local()

    def found(self, row: int, stop: int) -> Found:
        """The matches of rows from `row` on, of as many as there is room for, up to `stop`."""
        pieces: list[tuple[Numbers, Numbers]] = []
        for (part, events), room in zip(self.parts, self._rooms(), strict=True):
            offsets, positions = part.matched(events, row, stop, room)
            stop = row + len(offsets) - 1
            pieces.append((offsets, positions))
        offsets, positions = _first(pieces[0], stop - row)
        for piece in pieces[1:]:
            others, more = _first(piece, stop - row)
            if len(more):
                positions = interleaved(offsets, positions, others, more)
                offsets = offsets + others
        return Found(row, offsets, positions)

    def _rooms(self) -> list[Room]:
        rooms: list[Room] | None = getattr(self._own, "rooms", None)
        if rooms is None:
            rooms = self._own.rooms = [Room(part.segment, self.rows) for part, _ in self.parts]
        return rooms


def _first(piece: tuple[Numbers, Numbers], rows: int) -> tuple[Numbers, Numbers]:
    offsets, positions = piece
    return offsets[: rows + 1], positions[: offsets[rows]]


def _to_end(work: _Work, found: Found, stop: int) -> Iterator[Found]:
    """What was found, and what is left of its rows."""
    yield found
    while found.end < stop:
        found = work.found(found.end, stop)
        yield found


def _on_threads(work: _Work, size: int, threads: int) -> Iterator[Found]:
    """Blocks of rows are taken by threads; never more of them are under way than threads."""
    starts = iter(range(0, work.rows, size))
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[Future[Found], int]] = deque()

        def submit() -> None:
            start = next(starts, None)
            if start is not None:
                stop = min(start + size, work.rows)
                waiting.append((pool.submit(work.found, start, stop), stop))

        for _ in range(threads):
            submit()
        while waiting:
            first, stop = waiting.popleft()
            found = first.result()
            submit()
            yield from _to_end(work, found, stop)
