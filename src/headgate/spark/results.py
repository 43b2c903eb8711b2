"""What a worker makes of the used columns: for each event its queries, their number, or its pairs.

Results leave in pieces of bounded size, however many queries want the same events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.matching import Matches
from headgate.spark.transport import Packed, Shared
from headgate.spark.worker import Versions, loaded

if TYPE_CHECKING:
    Array = pa.Array[Any]
else:
    Array = pa.Array  # Spark evaluates the hints of its UDFs

Output = Literal["array", "pairs", "count"]

TYPES: dict[Output, str] = {
    "array": "struct<queries: array<string>, error: string>",
    "count": "struct<matches: int, error: string>",
    "pairs": "array<struct<query_id: string, query_version: string, error: string>>",
}
ADDED: dict[Output, tuple[str, ...]] = {
    "array": ("queries", "error"),
    "count": ("matches", "error"),
    "pairs": ("query_id", "query_version", "error"),
}
NO_ATTRIBUTE = ""  # the name of a column that is sent only so that events can be counted
PIECE_BYTES = 16 << 20
PAIR_BYTES = 32  # of a pair beside its id: a version, and the bookkeeping of Arrow


@dataclass(frozen=True, slots=True)
class Matcher:
    """An Arrow UDF by the name `match`; workers import its class, and it carries only names."""

    place: Shared | Packed
    stream: str
    index: str
    names: tuple[str, ...]
    output: Output

    def match(self, batches: Iterator[Array]) -> Iterator[Array]:
        """A result for each event, in order."""
        known = loaded(self.place.open_here(), self.stream, self.index)
        ids: Any = pa.array(known.index.match([]).known_ids, pa.string())
        longest = pc.max(pc.binary_length(ids)).as_py() or 0
        for given in batches:
            arrays = given if isinstance(given, tuple) else (given,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            for matches in known.index.match_chunks(batch):
                for piece in pieces(matches, PIECE_BYTES // (longest + PAIR_BYTES)):
                    yield self._result(piece, ids, known.versions)

    def _result(self, piece: Matches, ids: Array, versions: Versions) -> Array:
        if self.output == "pairs":
            return pairs(piece, ids, versions)
        found = lists(piece, ids) if self.output == "array" else counts(piece)
        return pa.StructArray.from_arrays([found, errors(piece)], names=list(ADDED[self.output]))


def pieces(matches: Matches, most: int) -> Iterator[Matches]:
    """Consecutive parts with at most so many pairs each, but never less than an event.

    >>> whole = Matches(np.array([0, 2, 3, 3]), np.array([0, 1, 0]), ["p", "q"], {6: "bad"}, 4)
    >>> [(part.first, part.positions.tolist(), part.errors) for part in pieces(whole, 2)]
    [(4, [0, 1], {}), (5, [0], {6: 'bad'})]
    """
    offsets, start = matches.offsets, 0
    while start < len(matches):
        room = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        end = max(room, start + 1)
        numbers = range(matches.first + start, matches.first + end)
        yield Matches(
            offsets[start : end + 1] - offsets[start],
            matches.positions[offsets[start] : offsets[end]],
            matches.known_ids,
            {event: reason for event, reason in matches.errors.items() if event in numbers},
            numbers.start,
        )
        start = end


def lists(piece: Matches, ids: Array) -> Array:
    """The ids of the queries that want each event, in order of position."""
    return _lists(piece.offsets, ids.take(piece.in_order().positions))


def counts(piece: Matches) -> Array:
    """How many queries want each event."""
    return pa.array(np.diff(piece.offsets), pa.int32())


def errors(piece: Matches) -> Array:
    """The reason why each event was not valid; NULL for those that were."""
    return _texts(len(piece), {event - piece.first: why for event, why in piece.errors.items()})


def pairs(piece: Matches, ids: Array, versions: Versions) -> Array:
    """For each event its queries with their versions, or its error in the place of a query.

    >>> piece = Matches(np.array([0, 2, 2, 3]), np.array([0, 1, 1]), ["p", "q"], {1: "bad"})
    >>> class Numbered(Versions):
    ...     def of(self, positions: Any) -> Any:
    ...         return pa.array([f"v{position}" for position in positions])
    >>> found = pairs(piece, pa.array(["p", "q"]), Numbered([])).to_pylist()
    >>> [[tuple(pair.values()) for pair in event] for event in found]
    [[('p', 'v0', None), ('q', 'v1', None)], [(None, None, 'bad')], [('q', 'v1', None)]]
    """
    wrong = sorted(event - piece.first for event in piece.errors)
    before = np.searchsorted(wrong, np.arange(len(piece.offsets)))
    offsets = piece.offsets + before
    rows = np.insert(np.arange(piece.total), piece.offsets[wrong], -1)
    chosen: Any = pa.array(rows, mask=rows < 0)
    columns = [
        ids.take(piece.positions).take(chosen),
        versions.of(piece.positions).take(chosen),
        _texts(len(rows), {int(offsets[w]): piece.errors[piece.first + w] for w in wrong}),
    ]
    return _lists(offsets, pa.StructArray.from_arrays(columns, names=list(ADDED["pairs"])))


def _lists(offsets: Any, values: Array) -> Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _texts(count: int, known: dict[int, str]) -> Array:
    """So many texts, NULL where none is known."""
    if not known:
        return pa.nulls(count, pa.string())
    texts: list[str | None] = [None] * count
    for place, text in known.items():
        texts[place] = text
    return pa.array(texts, pa.string())
