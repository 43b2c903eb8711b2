"""A block of lines lies in memory as one stretch of bytes, with the place at which each line ends.

Nothing is made for a single line until somebody wants it: to cut a block into lines takes longer
than to parse it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.events.batch import Numbers

PADDING = 64  # zeros behind the lines, so that a kernel can look a few bytes ahead
MIN_READ = 1 << 13
FIRST_READ_PER_LINE = 256  # bytes, as long as nothing is known of the lines
NEWLINE = 10


@dataclass(frozen=True, slots=True, eq=False)
class LineBlock:
    """Lines with their newlines in `data`, which goes on with padding; `ends` are behind them.

    A block is valid until the next one is read, which may take its memory.
    """

    data: npt.NDArray[np.uint8]
    ends: Numbers

    @property
    def size(self) -> int:
        """The bytes of all lines."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def cut_lines(self, longest: int) -> list[bytes]:
        """Return the lines, of each at most this many bytes."""
        whole = self.data[: self.size].tobytes()
        places = pairwise([0, *self.ends.tolist()])
        return [whole[start : min(end, start + longest)] for start, end in places]


def join_lines(lines: Sequence[bytes]) -> LineBlock:
    r"""Return a block of lines that have been read one by one.

    >>> block = join_lines([b"a\n", b"bc"])
    >>> block.ends.tolist(), block.cut_lines(1)
    ([2, 4], [b'a', b'b'])
    """
    ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)))
    return LineBlock(np.frombuffer(b"".join([*lines, bytes(PADDING)]), np.uint8), ends)


class BlockReader:
    """Reads blocks of lines from a file that can be read from the middle, into memory of its own.

    A read begins at a line and is large enough for the lines that the block before had; a read that
    was too short is done again, twice as long.

    Parameters
    ----------
    file
        A binary file, with `readinto`.
    max_lines, max_bytes
        What a block holds: at most so many lines, and no line more once it has more bytes.
    longest
        Of a longer line only so many bytes are kept.
    """

    def __init__(self, file: Any, *, max_lines: int, max_bytes: int, longest: int) -> None:
        self._file = file
        self._max_lines, self._max_bytes, self._longest = max_lines, max_bytes, longest
        # What is read at once has the longest line that may stand at the end of the largest block.
        self._max_read = max_bytes + longest + 1
        self._size = self._limit(FIRST_READ_PER_LINE * max_lines)
        self._memory = np.empty(0, np.uint8)

    def read(self, offset: int, end: int | None) -> tuple[LineBlock, int]:
        """Return the lines from a byte of the file on, and the byte behind them.

        These are lines that start before `end`; none if the file ends at the offset.
        """
        # Most often the piece ends with its last line, and what comes after it is not read.
        left = self._max_read if end is None else end - offset
        size = min(self._size, left)
        while True:
            data, filled = self._fill(offset, size)
            ends = np.flatnonzero(data[:filled] == NEWLINE) + 1
            is_all = filled < size  # the file ends here
            if is_all and filled and (not len(ends) or ends[-1] < filled):
                ends = np.append(ends, filled)  # a last line without a newline
            # The first line behind which the block must end: at the limit of lines or of bytes, or
            # because it reaches the end of the piece.
            stop = min(int(np.searchsorted(ends, min(self._max_bytes + 1, left))), len(ends)) + 1
            chosen = ends[: min(stop, self._max_lines)]
            if is_all or len(ends) >= min(stop, self._max_lines):
                break
            if size >= self._max_read:
                if len(ends):
                    break
                return self._read_long_line(offset, data, filled)
            size = self._limit(2 * size)
        block = LineBlock(data, chosen)
        # A little more than this block took, for lines are not all of one length.
        self._size = self._limit(block.size + (block.size >> 4))
        return block, offset + block.size

    def _limit(self, size: int) -> int:
        return min(max(size, MIN_READ), self._max_read)

    def _fill(self, offset: int, size: int) -> tuple[npt.NDArray[np.uint8], int]:
        """Read at most `size` bytes, and set the padding behind them."""
        if len(self._memory) < size + PADDING:
            self._memory = np.empty(size + PADDING, np.uint8)
        self._file.seek(offset)
        filled = self._file.readinto(self._memory[:size].data)
        self._memory[filled : filled + PADDING] = 0
        return self._memory, filled

    def _read_long_line(
        self, offset: int, data: npt.NDArray[np.uint8], filled: int
    ) -> tuple[LineBlock, int]:
        """Return the beginning of a line that is longer than all that is read at once."""
        behind = offset + filled
        while part := self._file.readline(self._longest):
            behind += len(part)
            if part.endswith(b"\n"):
                break
        kept = min(filled, self._longest)
        data[kept : kept + PADDING] = 0
        return LineBlock(data, np.array([kept], np.int64)), behind
