"""The index that users get unless they ask for another: the best one for the queries at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from headgate.matching.matches import Matches
from headgate.matching.protocol import Index, Placement
from headgate.matching.scan import ScanIndex
from headgate.predicate import IsNull, Within, collect_columns, iter_atoms
from headgate.queries import Query
from headgate.schema import Stream

if TYPE_CHECKING:
    from headgate.matching.asc.index import AscIndex

FEW = 100  # queries that are scanned before the kernels of another index are even loaded
FEW_ATTRIBUTES, CACHED = 32, 4 << 20  # for bitmaps: attributes, and bytes that stay in a cache
MOST_IN_BITMAPS = 10_000  # queries


class AutoIndex:
    """Few queries are scanned. From `FEW` on they are in bitmaps, as long as these are small and
    all conditions are on single values of few attributes; and else they are keyed, and stay so.

    5,000 queries on 20 attributes take less than half as long in bitmaps (`python -m benchmarks
    asc-time`). In trials keys were as fast or faster from 20,000 queries on, and where constants
    are so many that the bitmaps do not stay in a cache. Conditions that compare two attributes, or
    texts with patterns, are filed better by keys.

    >>> from headgate.schema import INT, Attribute
    >>> AutoIndex(Stream("s", (Attribute("a", INT),))).describe()["chosen_because"]
    'there are fewer than 100 queries'
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._index: Index = ScanIndex(stream)
        self._because = f"there are fewer than {FEW} queries"
        self._threads: int | None = None
        self._held: dict[str, tuple[int, Query]] = {}  # by id, until they are keyed
        self._ids: list[str] = []  # by position, until then
        self._columns: set[str] = set()  # that queries in bitmaps mention, or did
        self._bitmaps: AscIndex | None = None  # while this is the index
        self._keyed = False
        self._lock = RLock()  # held while any of these changes

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        index = cls(stream)
        for query in queries:
            index.insert(query)
        return index

    @property
    def chosen(self) -> Index:
        """The index that it is at present."""
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
            return self._take(query, self._index.insert(query))

    def update(self, query: Query) -> int:
        with self._lock:
            self._leave_bitmaps_for(query)
            return self._take(query, self._index.update(query))

    def _take(self, query: Query, position: int) -> int:
        if not self._keyed:
            self._held[query.id] = position, query
            self._ids.append(query.id)
            if self._bitmaps is None and len(self._held) >= FEW:
                self._become_fast()
        return position

    def _become_fast(self) -> None:
        from headgate.matching.asc.index import AscIndex

        queries = self._by_position()
        bitmaps = AscIndex.take_over(self.stream, self._ids, queries)
        if all(self._suits(bitmaps, query) for query in queries.values()):
            self._bitmaps = bitmaps
            because = f"there are at least {FEW} queries, and their bitmaps stay in a cache"
            self._use(bitmaps, because)
        else:
            self._become_keyed()

    def _leave_bitmaps_for(self, query: Query) -> None:
        """Go over to keys, if the set is none for bitmaps any more with this query."""
        if self._bitmaps is not None and not self._suits(self._bitmaps, query):
            self._become_keyed()

    def _suits(self, bitmaps: AscIndex, query: Query) -> bool:
        """Is the query one for these bitmaps, which may have it already?"""
        needed = bitmaps.estimate_bytes(query)
        self._columns |= {column.name for column in collect_columns(query.where)}
        return (
            needed is not None
            and needed <= CACHED
            and all(isinstance(atom, Within | IsNull) for atom in iter_atoms(query.where))
            and len(self._columns) <= FEW_ATTRIBUTES
            and len(bitmaps) < MOST_IN_BITMAPS
        )

    def _become_keyed(self) -> None:
        from headgate.matching.keyed.index import KeyedIndex

        keyed = KeyedIndex.taking_over(self.stream, self._ids, self._by_position())
        self._bitmaps, self._held, self._ids, self._keyed = None, {}, [], True
        self._use(keyed, f"there were at least {FEW} queries, too many or too varied for bitmaps")

    def _by_position(self) -> dict[int, Query]:
        return dict(sorted(self._held.values(), key=lambda one: one[0]))

    def _use(self, index: Index, because: str) -> None:
        self._index, self._because = index, because
        if self._threads is not None:
            index.threads = self._threads

    def remove(self, query_id: str) -> None:
        with self._lock:
            self._index.remove(query_id)
            self._held.pop(query_id, None)

    def match(self, events: Any) -> Matches:
        return self._index.match(events)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        return self._index.match_chunks(events)

    def locate(self, query_id: str) -> Placement:
        return self._index.locate(query_id)

    def describe(self) -> dict[str, Any]:
        return {**self._index.describe(), "chosen_because": self._because}

    def __len__(self) -> int:
        return len(self._index)
