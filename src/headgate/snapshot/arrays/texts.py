"""Strings as two arrays, to be written to a file as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Python and JSON may hold half of a surrogate pair, which UTF-8 has no bytes for; it is kept as the
# three bytes that it would have, which also keeps the order of code points
LENIENT = "surrogatepass"


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Strings one behind the other in UTF-8: string i is `data[offsets[i]:offsets[i + 1]]`.

    This is the layout of Arrow's large_binary. Bytes compare as the strings do.
    """

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def arrow(self) -> pa.LargeBinaryArray:
        """Return the strings as an Arrow array, without a copy."""
        buffers = [None, pa.py_buffer(self.offsets.data), pa.py_buffer(self.data.data)]
        array = pa.Array.from_buffers(pa.large_binary(), len(self), buffers)
        assert isinstance(array, pa.LargeBinaryArray)
        return array


def pack(strings: Iterable[str]) -> Texts:
    """Return strings as arrays; `unpack` is the inverse.

    >>> pack(["a", "", "né"]).offsets.tolist()
    [0, 1, 1, 4]
    """
    encoded = [string.encode("utf-8", LENIENT) for string in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    return Texts(offsets, np.frombuffer(b"".join(encoded), np.uint8))


def unpack(texts: Texts, start: int = 0, stop: int | None = None) -> list[str]:
    """Return the strings, or those from `start` up to `stop`.

    >>> unpack(pack(["a", "", "né"]), 1)
    ['', 'né']
    """
    stop = len(texts) if stop is None else min(stop, len(texts))
    offsets = texts.offsets[start : stop + 1].tolist()
    first = offsets[0]
    data = texts.data[first : offsets[-1]].tobytes()
    return [
        data[low - first : high - first].decode("utf-8", LENIENT) for low, high in pairwise(offsets)
    ]
