"""Match a batch against all parts of an index: in bounded pieces, on one or more threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from threading import Lock, local

import numpy as np

from headgate.events.typed_tables import TypedTable
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.keyed.parts import OUTPUT_SIZE, Part, Workspace
from headgate.matching.matches import Numbers, Positions, RowMatches
from headgate.schema import Ordinal

MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 128, 4096  # of a block, which is one thread's work
MAX_TRUTHS = 1 << 21  # matched patterns and truths of comparisons that are held at once, about
MAX_FREE = 4  # workspaces that are kept, unless one match has used more
FIRST_ROWS_WITH_PATTERNS, ALL_ROWS = 1024, 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The rows from `row` up to `stop`, with the matches of all parts but the largest."""

    row: int
    stop: int
    offsets: Numbers
    positions: Positions


class Workspaces:
    """The workspaces for the parts of an index that no match uses at the moment."""

    def __init__(self) -> None:
        self._free: list[list[Workspace]] = []
        self._lock = Lock()

    def take(self, parts: Sequence[Part], rows: int) -> list[Workspace]:
        """Return a workspace for each part, which may be used until it is given back."""
        with self._lock:
            spaces = self._free.pop() if self._free else None
        if spaces is None or len(spaces[0].offsets) <= rows:
            return [Workspace(part.segment, rows) for part in parts]
        return spaces

    def give_back(self, spaces: list[list[Workspace]]) -> None:
        """Keep some of them for the next match: the last ones, which are as large as it needs."""
        with self._lock:
            self._free = (spaces + self._free)[: max(MAX_FREE, len(spaces))]


def match_batch(
    parts: Sequence[Part], table: TypedTable, threads: int, workspaces: Workspaces
) -> Iterator[RowMatches]:
    """Return the matches of a batch, in order of rows.

    The largest part is the last: its matches are handed on, those of the others held for a block.
    `workspaces` belong to these parts, in this order.
    """
    if not parts:
        return
    rows, start, step = table.rows, 0, _choose_first_step(parts)
    while start < rows:
        size = min(step, rows - start)
        work = _Work(parts, EventColumns(table, size, first=start), workspaces)
        try:
            # closed with this generator, so that no thread is in a workspace that is given back
            with closing(_match(work, threads)) as pieces:
                for matches in pieces:
                    yield RowMatches(start + matches.row, matches.offsets, matches.positions)
        finally:
            workspaces.give_back(work.used)
        start += size
        # fewer rows next time if too much was held at once, more if little
        if work.truths > MAX_TRUTHS:
            step = max(1, size // 2)
        elif 4 * work.truths < MAX_TRUTHS:
            step = 2 * step


def match_one(
    parts: Sequence[Part], ordinals: Mapping[str, Ordinal], workspaces: Workspaces
) -> Numbers:
    """Return the positions that one event matches, in no particular order."""
    matches = np.zeros(2, np.int64), np.empty(0, np.int64)
    spaces = workspaces.take(parts, 1)
    try:
        for part, workspace in zip(parts, spaces, strict=True):
            matches = part.match(part.segment.encode_one(ordinals), 0, 1, workspace, matches)
    finally:
        workspaces.give_back([spaces])
    return matches[1]


def _choose_first_step(parts: Sequence[Part]) -> int:
    """Return all rows, or few if there are patterns or comparisons: it is unknown how many hold."""
    has_patterns = any(part.segment.patterns for part in parts)
    comparisons = sum(len(part.segment.bit_atoms) for part in parts)
    rows = FIRST_ROWS_WITH_PATTERNS if has_patterns else ALL_ROWS
    return min(rows, max(1, MAX_TRUTHS // max(1, comparisons)))


def _match(work: _Work, threads: int) -> Generator[RowMatches, None, None]:
    # four blocks for each thread, so that none waits long for the last
    size = min(MAX_BLOCK_ROWS, max(MIN_BLOCK_ROWS, -(-work.rows // (4 * threads))))
    if threads == 1 or work.rows <= size:
        for row in range(0, work.rows, MAX_BLOCK_ROWS):
            yield from work.pieces(row, min(row + MAX_BLOCK_ROWS, work.rows))
    else:
        yield from _match_on_threads(work, size, threads)


class _Work:
    """What all threads share, and a workspace for each thread and part."""

    def __init__(
        self, parts: Sequence[Part], columns: EventColumns, workspaces: Workspaces
    ) -> None:
        encoded = [(part, part.segment.encode_events(columns)) for part in parts]
        self.used: list[list[Workspace]] = []
        self._free = workspaces
        self.others, self.largest = encoded[:-1], encoded[-1]
        self.rows = len(columns)
        self.truths = sum(len(events.matched) + events.bits.size for _, events in encoded)
        self._thread = local()

    def pieces(self, row: int, stop: int) -> Iterator[RowMatches]:
        """Return the matches of these rows, in as many pieces as outputs are filled."""
        while row < stop:
            block = self._begin_block(row, stop)
            while block.row < block.stop:
                matches, block = self._continue_block(block)
                yield matches
            row = block.stop

    def first_piece(self, row: int, stop: int) -> RowMatches:
        """Return the first of these pieces."""
        return next(self.pieces(row, stop))

    def _begin_block(self, row: int, stop: int) -> Block:
        """Match the small parts, over as many of these rows as all of them can take at once."""
        matches = np.empty(0, np.int64), np.empty(0, np.int32)
        for (part, events), workspace in zip(self.others, self._workspaces()[:-1], strict=True):
            matches = part.match(events, row, stop, workspace, matches)
            # a part whose output was full took fewer rows, and so do the next
            stop = row + len(matches[0]) - 1
        return Block(row, stop, *matches)

    def _continue_block(self, block: Block) -> tuple[RowMatches, Block]:
        """Match the largest part; return the first matches of a block, and the rest of it."""
        part, events = self.largest
        others = block.offsets, block.positions
        workspace = self._workspaces()[-1]
        offsets, positions = part.match(events, block.row, block.stop, workspace, others)
        matches = RowMatches(block.row, offsets, positions)
        remaining_offsets = block.offsets[len(offsets) - 1 :]
        return matches, Block(matches.end, block.stop, remaining_offsets, block.positions)

    def _workspaces(self) -> list[Workspace]:
        # kernels write into these, so no two threads may share one
        spaces: list[Workspace] | None = getattr(self._thread, "workspaces", None)
        if spaces is None:
            parts = [part for part, _ in (*self.others, self.largest)]
            spaces = self._free.take(parts, self.rows)
            self.used.append(spaces)
            self._thread.workspaces = spaces
        return spaces


def _match_on_threads(work: _Work, size: int, threads: int) -> Iterator[RowMatches]:
    """Return the matches of blocks of rows, a piece of each from a thread; few are held at once.

    Blocks grow to `size` rows as long as the output has room for the matches of twice as many.
    """
    max_size, size = size, MIN_BLOCK_ROWS
    waiting: deque[tuple[int, int]] = deque([(0, work.rows)])  # from row to row
    started: deque[tuple[int, Future[RowMatches]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        while waiting or started:
            # one block more than threads, so that none waits while a piece is consumed
            while waiting and len(started) <= threads:
                row, stop = waiting.popleft()
                end = min(row + size, stop)
                started.append((end, pool.submit(work.first_piece, row, end)))
                if end < stop:
                    waiting.appendleft((end, stop))
            end, future = started.popleft()
            matches = future.result()
            yield matches
            # the output was full: the rest of the block is matched here, and blocks shrink
            if matches.end < end:
                size = matches.end - matches.row
                yield from work.pieces(matches.end, end)
            elif 2 * len(matches.positions) <= OUTPUT_SIZE:
                size = min(max_size, 2 * size)
