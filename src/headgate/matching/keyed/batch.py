"""A batch against all parts of an index, in pieces of bounded size, on one thread or several."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import local

import numpy as np

from headgate.events import EventBatch
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.keyed.segment import OUTPUT, Numbers, Part, Room
from headgate.matching.matches import RowMatches

FEWEST_ROWS, MOST_ROWS = 128, 4096  # of a block, which is one thread's work
KNOWN = 1 << 21  # matched patterns and truths of comparisons that are held at once, about
ROWS_WITH_PATTERNS, ALL_ROWS = 1024, 1 << 62  # that are begun with


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The rows from `row` up to `stop`, with what all parts but the largest found for them."""

    row: int
    stop: int
    offsets: Numbers
    positions: Numbers


def match_parts(parts: Sequence[Part], batch: EventBatch, threads: int) -> Iterator[RowMatches]:
    """The matches of a batch, in order of rows."""
    if not parts:
        return
    rows, start, step = len(batch.events), 0, _rows_at_first(parts)
    while start < rows:
        size = min(step, rows - start)
        columns = EventColumns(batch.table.slice(start, size), size)
        work = _Work(parts, columns)
        for found in _match(work, threads):
            yield RowMatches(start + found.row, found.offsets, found.positions)
        start += size
        if work.known > KNOWN:
            step = max(1, size // 2)
        elif 4 * work.known < KNOWN:
            step = 2 * step


def _rows_at_first(parts: Sequence[Part]) -> int:
    """All where there are no patterns and comparisons; else few, until it is seen how many hold."""
    patterns = any(part.segment.patterns for part in parts)
    compared = sum(len(part.segment.bit_atoms) for part in parts)
    return min(ROWS_WITH_PATTERNS if patterns else ALL_ROWS, max(1, KNOWN // max(1, compared)))


def _match(work: _Work, threads: int) -> Iterator[RowMatches]:
    size = min(MOST_ROWS, max(FEWEST_ROWS, -(-work.rows // (4 * threads))))
    if threads == 1 or work.rows <= size:
        for row in range(0, work.rows, MOST_ROWS):
            yield from work.pieces(row, min(row + MOST_ROWS, work.rows))
    else:
        yield from _on_threads(work, size, threads)


class _Work:
    """What all threads share, and a room for each of them."""

    def __init__(self, parts: Sequence[Part], columns: EventColumns) -> None:
        largest_last = sorted(parts, key=lambda part: len(part.segment))
        prepared = [(part, part.segment.events(columns)) for part in largest_last]
        self.others, self.largest = prepared[:-1], prepared[-1]
        self.rows = len(columns)
        self.known = sum(len(events.matched) + events.bits.size for _, events in prepared)
        self._own = local()

    def pieces(self, row: int, stop: int) -> Iterator[RowMatches]:
        """The matches of these rows, in as many pieces as there is room for."""
        while row < stop:
            block = self._begun(row, stop)
            while block.row < block.stop:
                found, block = self._continued(block)
                yield found
            row = block.stop

    def first(self, row: int, stop: int) -> RowMatches:
        """The first of these pieces."""
        return next(self.pieces(row, stop))

    def _begun(self, row: int, stop: int) -> Block:
        """A block of as many of these rows as there is room for."""
        found = np.empty(0, np.int64), np.empty(0, np.int64)
        for (part, events), room in zip(self.others, self._rooms()[:-1], strict=True):
            found = part.matched(events, row, stop, room, found)
            stop = row + len(found[0]) - 1
        return Block(row, stop, *found)

    def _continued(self, block: Block) -> tuple[RowMatches, Block]:
        """The first matches of a block, and the rest of it."""
        part, events = self.largest
        others = block.offsets, block.positions
        offsets, positions = part.matched(events, block.row, block.stop, self._rooms()[-1], others)
        found = RowMatches(block.row, offsets, positions)
        rest = block.offsets[len(offsets) - 1 :]
        return found, Block(found.end, block.stop, rest, block.positions)

    def _rooms(self) -> list[Room]:
        rooms: list[Room] | None = getattr(self._own, "rooms", None)
        if rooms is None:
            parts = (*self.others, self.largest)
            rooms = self._own.rooms = [Room(part.segment, self.rows) for part, _ in parts]
        return rooms


def _on_threads(work: _Work, size: int, threads: int) -> Iterator[RowMatches]:
    """Blocks of rows are taken by threads, a piece of each; few pieces are held at once.

    Blocks grow to `size` rows as long as there is room for the matches of twice as many.
    """
    most, size = size, FEWEST_ROWS
    waiting: deque[tuple[int, int]] = deque([(0, work.rows)])  # from row to row
    started: deque[tuple[int, Future[RowMatches]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        while waiting or started:
            while waiting and len(started) <= threads:
                row, stop = waiting.popleft()
                end = min(row + size, stop)
                started.append((end, pool.submit(work.first, row, end)))
                if end < stop:
                    waiting.appendleft((end, stop))
            end, future = started.popleft()
            found = future.result()
            yield found
            if found.end < end:
                size = found.end - found.row
                yield from work.pieces(found.end, end)
            elif 2 * len(found.positions) <= OUTPUT:
                size = min(most, 2 * size)
