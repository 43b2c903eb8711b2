"""The ids of queries by position, which stay in Arrow until somebody asks for one.

A million Python strings would take 0.2 seconds to make, and 60 MB in each process.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.snapshot.arrays.texts import LENIENT

Numbers = npt.NDArray[np.int64]
Array: TypeAlias = "pa.Array[Any]"


class KnownIds(Sequence[str]):
    """The ids of queries by position: those of a snapshot as it stores them, later ones in a list.

    `stored` are arrays of texts or bytes, one behind the other; position p has the one at
    `rows[p]`, or at p itself where there are no rows.

    >>> ids = KnownIds([pa.array([b"a", b"b"]), pa.array([b"c"])], np.array([2, 0]))
    >>> ids.append("new")
    >>> list(ids), ids[-1], ids.take(np.array([2, 0])).to_pylist()
    (['c', 'a', 'new'], 'new', ['new', 'c'])
    """

    def __init__(self, stored: Sequence[Array] = (), rows: Numbers | None = None) -> None:
        arrays = [array for array in stored if len(array)] or [pa.array([], pa.large_binary())]
        self._first = arrays[0]
        self._stored: Any = arrays[0] if len(arrays) == 1 else pa.chunked_array(arrays)
        self._rows = rows
        self._count = len(self._stored) if rows is None else len(rows)
        self._later: list[str] = []

    def __len__(self) -> int:
        return self._count + len(self._later)

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        if isinstance(position, slice):
            return self.list_at(np.arange(*position.indices(len(self))))
        if not -len(self) <= position < len(self):
            raise IndexError(f"position {position} of {len(self)}")
        place = position % len(self)
        if place >= self._count:
            return self._later[place - self._count]
        text = self._stored[place if self._rows is None else int(self._rows[place])].as_py()
        return text if isinstance(text, str) else text.decode("utf-8", LENIENT)

    def __iter__(self) -> Iterator[str]:
        return iter(self[:])

    def append(self, query_id: str) -> None:
        """Add the id of the next position."""
        self._later.append(query_id)

    def take(self, positions: Numbers) -> Array:
        """Return the ids at some positions, as texts of Arrow."""
        later = positions >= self._count
        if not later.any():
            return self._take_stored(positions)
        # those that came later are put behind the others, and all back into their places
        at_later = np.array([self._later[p - self._count] for p in positions[later].tolist()])
        both: Any = pa.concat_arrays(
            [self._take_stored(positions[~later]), pa.array(at_later, pa.string())]
        )
        places = np.empty(len(positions), np.int64)
        places[np.flatnonzero(~later)] = np.arange(len(positions) - len(at_later))
        places[np.flatnonzero(later)] = np.arange(len(positions) - len(at_later), len(positions))
        taken: Array = both.take(pa.array(places))
        return taken

    def list_at(self, positions: Numbers) -> list[str]:
        """Return the ids at some positions as a list."""
        stored = positions[positions < self._count]
        known = [
            text if isinstance(text, str) else text.decode("utf-8", LENIENT)
            for text in self._take_rows(stored).to_pylist()
        ]
        if len(stored) == len(positions):
            return known
        first = iter(known)
        return [
            next(first) if position < self._count else self._later[position - self._count]
            for position in positions.tolist()
        ]

    def measure_longest(self) -> int:
        """Return the bytes of the longest id, of all that are stored."""
        stored = pc.max(pc.binary_length(self._stored)).as_py() or 0
        return max([stored, *(len(name.encode("utf-8", LENIENT)) for name in self._later)])

    def _take_stored(self, positions: Numbers) -> Array:
        # which also makes sure that the bytes are texts: Python knows some that Arrow does not
        texts: Array = self._take_rows(positions).cast(pa.string())
        return texts

    def _take_rows(self, positions: Numbers) -> Any:
        rows: Any = positions if self._rows is None else self._rows[positions]
        # from several arrays Arrow takes by making them one, so the first is preferred
        if not len(rows) or rows.max() < len(self._first):
            return self._first.take(rows)
        taken = self._stored.take(rows)
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


def as_known_ids(ids: Sequence[str] | Array) -> KnownIds:
    """Return ids in a form that many can be taken from at once.

    >>> as_known_ids(["a", "b"]).take(np.array([1, 1])).to_pylist()
    ['b', 'b']
    """
    if isinstance(ids, KnownIds):
        return ids
    return KnownIds([ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string())])


class LivingPositions(MutableMapping[str, int]):
    """The positions of queries by id; a dict, made of all ids when one is first asked for.

    >>> positions = LivingPositions(KnownIds([pa.array(["a", "b"])]))
    >>> len(positions), positions["b"], "c" in positions
    (2, 1, False)
    """

    def __init__(self, ids: KnownIds) -> None:
        self._ids = ids
        self._count = len(ids)
        self._positions: dict[str, int] | None = None

    def _all(self) -> dict[str, int]:
        if self._positions is None:
            self._positions = {name: position for position, name in enumerate(self._ids)}
        return self._positions

    def __len__(self) -> int:
        return self._count if self._positions is None else len(self._positions)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._all()

    def __getitem__(self, query_id: str) -> int:
        return self._all()[query_id]

    def __setitem__(self, query_id: str, position: int) -> None:
        self._all()[query_id] = position

    def __delitem__(self, query_id: str) -> None:
        del self._all()[query_id]
