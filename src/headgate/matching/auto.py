"""The index that users get unless they name another: the best one for the queries at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from headgate.matching.base import DisplayedIndex
from headgate.matching.matches import MatchedIds, Matches
from headgate.matching.protocol import Index, Placement
from headgate.matching.scan import ScanIndex
from headgate.predicate import IsNull, Within, collect_columns, iter_atoms
from headgate.queries import Query
from headgate.schema import Stream

if TYPE_CHECKING:
    from headgate.matching.asc.index import AscIndex

MIN_INDEXED_QUERIES = 100  # fewer are scanned, and the kernels of other indexes are not loaded
MAX_BITMAP_QUERIES = 10_000
MAX_BITMAP_ATTRIBUTES = 32
MAX_BITMAP_BYTES = 4 << 20  # that stay in a processor's cache


class AutoIndex(DisplayedIndex):
    """An index that becomes a scan, bitmaps (`asc`) or keys, by the queries that it holds.

    Fewer than `MIN_INDEXED_QUERIES` queries are scanned. From then on they are in bitmaps, as long
    as these are small and all conditions are on single values of few attributes. Otherwise they are
    keyed, and stay so.

    Queries on few attributes take less than half as long in bitmaps: 5,000 on 20 attributes were
    measured (`python -m benchmarks asc-time`). Keys were as fast or faster from 20,000 queries on,
    and with so many constants that the bitmaps do not stay in a cache. Keys also suit conditions
    that compare two attributes, and patterns.

    >>> from headgate.schema import INT, Attribute
    >>> AutoIndex(Stream("s", (Attribute("a", INT),))).describe()["chosen_because"]
    'there are fewer than 100 queries'
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._index: Index = ScanIndex(stream)
        self._reason = f"there are fewer than {MIN_INDEXED_QUERIES} queries"
        self._threads: int | None = None
        # what the next index is built from; empty once queries are keyed, which is for good
        self._queries: dict[str, tuple[int, Query]] = {}  # position and query, by id
        self._ids: list[str] = []  # by position
        self._columns: set[str] = set()  # that queries in bitmaps mention, or mentioned
        self._bitmaps: AscIndex | None = None  # while this is the index
        self.is_keyed = False  # for good, once there are too many or too varied queries
        self._lock = RLock()  # held while any of these changes

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        index = cls(stream)
        for query in queries:
            index.insert(query)
        return index

    @property
    def chosen(self) -> Index:
        """The index that holds the queries at present."""
        return self._index

    @property
    def threads(self) -> int:
        return self._index.threads

    @threads.setter
    def threads(self, threads: int) -> None:
        self._threads = self._index.threads = threads

    def insert(self, query: Query) -> int:
        with self._lock:
            self._leave_bitmaps_for(query)
            return self._remember(query, self._index.insert(query))

    def update(self, query: Query) -> int:
        with self._lock:
            self._leave_bitmaps_for(query)
            return self._remember(query, self._index.update(query))

    def _remember(self, query: Query, position: int) -> int:
        """Note a query that the index took, and change the index if there are enough now."""
        if not self.is_keyed:
            self._queries[query.id] = position, query
            self._ids.append(query.id)
            if self._bitmaps is None and len(self._queries) >= MIN_INDEXED_QUERIES:
                self._leave_scan()
        return position

    def _leave_scan(self) -> None:
        from headgate.matching.asc.index import AscIndex

        queries = self._queries_by_position()
        bitmaps = AscIndex.take_over(self.stream, self._ids, queries)
        if all(self._fits_bitmaps(bitmaps, query) for query in queries.values()):
            self._bitmaps = bitmaps
            count = MIN_INDEXED_QUERIES
            self._use(
                bitmaps, f"there are at least {count} queries, and their bitmaps stay in a cache"
            )
        else:
            self._become_keyed()

    def _leave_bitmaps_for(self, query: Query) -> None:
        """Change to keys if the set does not fit bitmaps any more with this query."""
        if self._bitmaps is not None and not self._fits_bitmaps(self._bitmaps, query):
            self._become_keyed()

    def _fits_bitmaps(self, bitmaps: AscIndex, query: Query) -> bool:
        """Return whether a query, which they may hold already, belongs into these bitmaps."""
        bytes_needed = bitmaps.estimate_bytes(query)
        self._columns |= {column.name for column in collect_columns(query.where)}
        return (
            bytes_needed is not None
            and bytes_needed <= MAX_BITMAP_BYTES
            and all(isinstance(atom, Within | IsNull) for atom in iter_atoms(query.where))
            and len(self._columns) <= MAX_BITMAP_ATTRIBUTES
            and len(bitmaps) < MAX_BITMAP_QUERIES
        )

    def _become_keyed(self) -> None:
        from headgate.matching.keyed.index import KeyedIndex

        keyed = KeyedIndex.take_over(self.stream, self._ids, self._queries_by_position())
        self._bitmaps, self._queries, self._ids, self.is_keyed = None, {}, [], True
        count = MIN_INDEXED_QUERIES
        self._use(keyed, f"there were at least {count} queries, too many or too varied for bitmaps")

    def _queries_by_position(self) -> dict[int, Query]:
        return dict(sorted(self._queries.values(), key=lambda entry: entry[0]))

    def _use(self, index: Index, reason: str) -> None:
        self._index, self._reason = index, reason
        if self._threads is not None:
            index.threads = self._threads

    def remove(self, query_id: str) -> None:
        with self._lock:
            self._index.remove(query_id)
            self._queries.pop(query_id, None)

    def match(self, events: Any) -> Matches:
        return self._index.match(events)

    def match_one(self, event: Mapping[str, Any]) -> MatchedIds:
        return self._index.match_one(event)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        return self._index.match_chunks(events)

    def locate(self, query_id: str) -> Placement:
        return self._index.locate(query_id)

    def describe(self) -> dict[str, Any]:
        return {**self._index.describe(), "chosen_because": self._reason}

    def __len__(self) -> int:
        return len(self._index)
