"""Matching in a worker of Spark: what a route runs there, and the results that it gives.

Results are made from positions by one `take` for each column: no object is made for an event, an id
or a pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StringType, StructField, StructType

from headgate.matching import Matches
from headgate.matching.known_ids import KnownIds, as_known_ids
from headgate.spark.frames import Array
from headgate.spark.transport import PackedSnapshot, SharedSnapshot
from headgate.spark.worker import IndexConfig, LoadedQueries, QueryVersions, load_cached

Output = Literal["array", "pairs", "count"]

RESULT_TYPES: dict[Output, str] = {
    "array": "struct<queries: array<string>, error: string>",
    "count": "struct<matches: int, error: string>",
    "pairs": "array<struct<query_id: string, query_version: string, error: string>>",
}
ADDED_COLUMNS: dict[Output, tuple[str, ...]] = {
    "array": ("queries", "error"),
    "count": ("matches", "error"),
    "pairs": ("query_id", "query_version", "error"),
}
PAIR_FIELDS = StructType([StructField(name, StringType()) for name in ADDED_COLUMNS["pairs"]])
MAX_PIECE_BYTES = 16 << 20
MAX_TEXT_BYTES = 256 << 20  # of kept texts that repeat, even if they are all the longest
PAIR_BYTES = 32  # of a pair without its id: a version, and the bookkeeping of Arrow


@dataclass(frozen=True, slots=True)
class Matcher:
    """The Arrow UDF of a route, by the name `match`; pickled to the workers."""

    place: SharedSnapshot | PackedSnapshot
    stream: str
    index: IndexConfig
    names: tuple[str, ...]
    output: Output

    def match(self, batches: Iterator[Array]) -> Iterator[Array]:
        """Yield a result for each event, in order."""
        queries, ids, pair_bytes = self._load()
        for columns in batches:
            arrays = columns if isinstance(columns, tuple) else (columns,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            for matches in queries.index.match_chunks(batch):
                for piece in split_matches(matches, MAX_PIECE_BYTES // pair_bytes):
                    yield self._build_result(piece, ids, queries.versions)

    def map_pairs(
        self, kept: Sequence[tuple[int, str]], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of pairs, and of errors, for `mapInArrow`; they begin with the kept columns.

        The columns of a batch are those of the attributes, and then others; `kept` has numbers of
        columns with their names.
        """
        queries, ids, pair_bytes = self._load()
        names = [*(name for _, name in kept), *ADDED_COLUMNS["pairs"]]
        for batch in batches:
            attributes = batch.columns[: len(self.names)]
            events = pa.RecordBatch.from_arrays(attributes, names=list(self.names))
            arrays = [batch.column(number) for number, _ in kept]
            max_rows = _limit_rows(arrays, pair_bytes)
            for matches in queries.index.match_chunks(events):
                for piece in split_matches(matches, max_rows):
                    offsets, pairs = list_pairs(piece, ids, queries.versions)
                    numbers = np.arange(piece.first, piece.first + len(piece))
                    rows = np.repeat(numbers, np.diff(offsets))
                    # the pairs of one event may be more than fit
                    for start in range(0, len(rows), max_rows):
                        chosen: Any = pa.array(rows[start : start + max_rows])
                        columns = [array.take(chosen) for array in arrays]
                        columns += [array.slice(start, max_rows) for array in pairs]
                        yield pa.RecordBatch.from_arrays(columns, names=names)

    def report_errors(self, reasons: Sequence[str]) -> Array:
        """Return the results of events that are not valid, for these reasons."""
        offsets = np.zeros(len(reasons) + 1, np.int64)
        piece = Matches(offsets, np.zeros(0, np.int32), (), dict(enumerate(reasons)))
        return self._build_result(piece, KnownIds(), QueryVersions(lambda _: ()))

    def _load(self) -> tuple[LoadedQueries, KnownIds, int]:
        """Return the queries, all their ids, and the bytes that a pair may have."""
        queries = load_cached(self.place.open_on_worker(), self.stream, self.index)
        # an index knows all its ids: each match takes its own from these
        ids = as_known_ids(queries.index.match([]).known_ids)
        # reckoned with the longest id, so that a piece stays below its limit
        return queries, ids, ids.measure_longest() + PAIR_BYTES

    def _build_result(self, piece: Matches, ids: KnownIds, versions: QueryVersions) -> Array:
        if self.output == "pairs":
            return build_pairs(piece, ids, versions)
        result = build_id_lists(piece, ids) if self.output == "array" else count_matches(piece)
        names = list(ADDED_COLUMNS[self.output])
        return pa.StructArray.from_arrays([result, list_errors(piece)], names=names)


def _limit_rows(kept: Sequence[Array], pair_bytes: int) -> int:
    """Return how many rows of pairs leave at once, of events with these columns."""
    events = max(len(kept[0]), 1) if kept else 1
    average = pair_bytes + sum(array.nbytes for array in kept) // events
    # a few long texts among short ones may be those that repeat
    texts: list[Any] = [
        array for array in kept if pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    ]
    longest = sum(pc.max(pc.binary_length(array)).as_py() or 0 for array in texts)
    return max(1, min(MAX_PIECE_BYTES // average, MAX_TEXT_BYTES // max(longest, 1)))


def split_matches(matches: Matches, max_pairs: int) -> Iterator[Matches]:
    """Yield consecutive parts with at most so many pairs each, but never less than an event.

    >>> whole = Matches(np.array([0, 2, 3, 3]), np.array([0, 1, 0]), ["p", "q"], {6: "bad"}, 4)
    >>> [(part.first, part.positions.tolist(), part.errors) for part in split_matches(whole, 2)]
    [(4, [0, 1], {}), (5, [0], {6: 'bad'})]
    """
    offsets, start = matches.offsets, 0
    while start < len(matches):
        # the last event whose pairs still fit
        last = int(np.searchsorted(offsets, offsets[start] + max_pairs, side="right")) - 1
        end = max(last, start + 1)
        numbers = range(matches.first + start, matches.first + end)
        yield Matches(
            offsets[start : end + 1] - offsets[start],
            matches.positions[offsets[start] : offsets[end]],
            matches.known_ids,
            {event: reason for event, reason in matches.errors.items() if event in numbers},
            numbers.start,
        )
        start = end


def build_id_lists(piece: Matches, ids: KnownIds) -> Array:
    """Return the ids of the queries that want each event, in order of position."""
    return build_lists(piece.offsets, ids.take(piece.in_order().positions))


def count_matches(piece: Matches) -> Array:
    """Return how many queries want each event."""
    return pa.array(np.diff(piece.offsets), pa.int32())


def list_errors(piece: Matches) -> Array:
    """Return why each event was not valid; NULL for those that were."""
    errors = {event - piece.first: reason for event, reason in piece.errors.items()}
    return _build_texts(len(piece), errors)


def build_pairs(piece: Matches, ids: KnownIds, versions: QueryVersions) -> Array:
    """Return for each event its queries with their versions, or its error in place of a query.

    >>> piece = Matches(np.array([0, 2, 2, 3]), np.array([0, 1, 1]), ["p", "q"], {1: "bad"})
    >>> class Numbered(QueryVersions):
    ...     def get(self, positions: Any) -> Any:
    ...         return pa.array([f"v{position}" for position in positions])
    >>> pairs = build_pairs(piece, as_known_ids(["p", "q"]), Numbered([])).to_pylist()
    >>> [[tuple(pair.values()) for pair in event] for event in pairs]
    [[('p', 'v0', None), ('q', 'v1', None)], [(None, None, 'bad')], [('q', 'v1', None)]]
    """
    offsets, pairs = list_pairs(piece, ids, versions)
    names = list(ADDED_COLUMNS["pairs"])
    return build_lists(offsets, pa.StructArray.from_arrays(pairs, names=names))


def list_pairs(piece: Matches, ids: KnownIds, versions: QueryVersions) -> tuple[Any, list[Array]]:
    """Return the ids, versions and errors of all pairs, and where those of each event begin."""
    texts = [ids.take(piece.positions), versions.get(piece.positions)]
    offsets, errors = piece.offsets, {}
    if piece.errors:
        invalid = sorted(event - piece.first for event in piece.errors)
        # each invalid event gets a row of its own, which moves the offsets behind it
        offsets = piece.offsets + np.searchsorted(invalid, np.arange(len(piece.offsets)))
        rows = np.insert(np.arange(piece.total), piece.offsets[invalid], -1)  # -1 for an error
        chosen: Any = pa.array(rows, mask=rows < 0)
        texts = [text.take(chosen) for text in texts]
        errors = {int(offsets[event]): piece.errors[piece.first + event] for event in invalid}
    return offsets, [*texts, _build_texts(len(texts[0]), errors)]


def build_lists(offsets: Any, values: Array) -> Array:
    """Return lists of the values between neighbouring offsets."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _build_texts(count: int, texts_by_place: dict[int, str]) -> Array:
    """Return so many texts, NULL where none is known."""
    if not texts_by_place:
        return pa.nulls(count, pa.string())
    texts: list[str | None] = [None] * count
    for place, text in texts_by_place.items():
        texts[place] = text
    return pa.array(texts, pa.string())
