"""The index that users get unless they name another: the best one for the queries at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from headgate.matching.base import DisplayedIndex
from headgate.matching.matches import MatchedIds, Matches
from headgate.matching.protocol import Index, Placement
from headgate.matching.scan import ScanIndex
from headgate.predicate import Matches as PatternMatches
from headgate.predicate import collect_columns, iter_atoms
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import encode_queries
from headgate.snapshot.arrays.atoms import IS_NULL, WITHIN

if TYPE_CHECKING:
    from headgate.matching.asc.index import AscIndex

MIN_INDEXED_QUERIES = 100  # fewer are scanned, and the kernels of other indexes are not loaded
MAX_BITMAP_QUERIES = 10_000
MAX_BITMAP_ATTRIBUTES = 32
MAX_BITMAP_BYTES = 32 << 20
MAX_CONJUNCTIONS = 20_000  # of all queries in bitmaps
MAX_PATTERN_CONJUNCTIONS = 4  # of a query with patterns

# nanoseconds of an event in a keyed index: what bitmaps do not take; a query that has a program and
# that a key leads to; one that the grid finds where values share its rows
KEYED_NS, PROGRAM_NS, GRID_CHECK_NS = 30.0, 2.5, 2.5
MAX_EXACT_VALUES = 1024  # regions of an attribute that have a row each in the grid


class AutoIndex(DisplayedIndex):
    """An index that becomes a scan, bitmaps (`asc`) or keys, by the queries that it holds.

    Fewer than `MIN_INDEXED_QUERIES` queries are scanned: the kernels of the others take a second to
    load. From then on the time of an event is estimated, from the queries alone, for bitmaps and
    for keys, and the less is taken: when all queries of a set are there, and each time when there
    are twice as many. What bitmaps are not fit for is keyed, and stays so: more than
    `MAX_BITMAP_QUERIES`, many attributes, bitmaps that are too large.

    Bitmaps suit equalities and ranges on few attributes, whatever AND and OR join them: an event
    meets few rows before nobody is left. Keys are as fast or faster where every condition is wide,
    and with more queries. On 17 families of queries the choice is the fastest index or nearly so,
    but for what is scanned (`python -m benchmarks auto`; `benchmarks/results/README.md` has the
    figures, and says on which seeds the constants were set). `be_tree` was never the fastest.

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
        self._next_choice = MIN_INDEXED_QUERIES  # queries with which the choice is made again
        self._columns: set[str] = set()  # that queries in bitmaps mention, or mentioned
        self._bitmaps: AscIndex | None = None  # while this is the index
        self.is_keyed = False  # for good, once there are too many or too varied queries
        self._lock = RLock()  # held while any of these changes

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        index = cls(stream)
        # one choice, when all are there, unless there are too many for it
        index._next_choice = MAX_BITMAP_QUERIES + 1
        for query in queries:
            index.insert(query)
        index._next_choice = MIN_INDEXED_QUERIES
        index._choose()
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
        """Note a query that the index took, and choose again if there are enough now."""
        if not self.is_keyed:
            self._queries[query.id] = position, query
            self._ids.append(query.id)
            self._choose()
        return position

    def _choose(self) -> None:
        """Change to bitmaps or keys if there are enough queries for a choice."""
        count = len(self._queries)
        if self.is_keyed or count < self._next_choice:
            return
        self._next_choice = 2 * count
        queries = self._queries_by_position()
        fits = count <= MAX_BITMAP_QUERIES
        bitmaps = self._bitmaps or (self._build_bitmaps(queries) if fits else None)
        if bitmaps is None:
            self._become_keyed("too many or too varied for bitmaps")
        elif bitmaps.estimate_nanoseconds() > _estimate_keyed(self.stream, list(queries.values())):
            self._become_keyed("faster by keys than by bitmaps, as estimated")
        elif self._bitmaps is None:
            self._bitmaps = bitmaps
            self._use(bitmaps, f"{_AT_LEAST}, faster by bitmaps than by keys, as estimated")

    def _build_bitmaps(self, queries: dict[int, Query]) -> AscIndex | None:
        """Return bitmaps of these queries; None if one does not fit."""
        from headgate.matching.asc.index import AscIndex

        # attributes first: their number is known at once
        wheres = (query.where for query in queries.values())
        self._columns = {column.name for where in wheres for column in collect_columns(where)}
        if len(self._columns) > MAX_BITMAP_ATTRIBUTES:
            return None
        bitmaps = AscIndex(self.stream)
        for position, query in queries.items():
            if not self._fits_bitmaps(bitmaps, query):
                return None
            bitmaps.reserve(self._ids, position)
            bitmaps.insert(query)
        bitmaps.reserve(self._ids, len(self._ids))
        return bitmaps

    def _leave_bitmaps_for(self, query: Query) -> None:
        """Change to keys if the set does not fit bitmaps any more with this query."""
        if self._bitmaps is not None and not self._fits_bitmaps(self._bitmaps, query):
            self._become_keyed("too many or too varied for bitmaps")

    def _fits_bitmaps(self, bitmaps: AscIndex, query: Query) -> bool:
        """Return whether a query, which they may hold already, belongs into these bitmaps."""
        size = bitmaps.estimate_size(query)
        if size is None:
            return False
        self._columns |= {column.name for column in collect_columns(query.where)}
        has_patterns = any(isinstance(atom, PatternMatches) for atom in iter_atoms(query.where))
        return (
            size.bytes <= MAX_BITMAP_BYTES
            and bitmaps.conjunctions + size.conjunctions <= MAX_CONJUNCTIONS
            and (not has_patterns or size.conjunctions <= MAX_PATTERN_CONJUNCTIONS)
            and len(self._columns) <= MAX_BITMAP_ATTRIBUTES
            and len(bitmaps) < MAX_BITMAP_QUERIES
        )

    def _become_keyed(self, reason: str) -> None:
        from headgate.matching.keyed.index import KeyedIndex

        keyed = KeyedIndex.take_over(self.stream, self._ids, self._queries_by_position())
        self._bitmaps, self._queries, self._ids, self.is_keyed = None, {}, [], True
        self._use(keyed, f"{_AT_LEAST}, {reason}")

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


_AT_LEAST = f"there were at least {MIN_INDEXED_QUERIES} queries"


def _estimate_keyed(stream: Stream, queries: Sequence[Query]) -> float:
    """Return about how many nanoseconds an event takes in a keyed index, besides reading it.

    The keys are chosen as the index would choose them. A query that is an AND of conditions on
    values is found by its key or by the grid, any other by its key and then its program.
    """
    from headgate.matching.encoding.code_book import build_code_book
    from headgate.matching.keyed.build import CANDIDATE_NS, estimate_costs, estimate_grid
    from headgate.matching.keyed.kernels.keys import choose_keys

    schema = Schema((stream,))
    encoded = encode_queries(queries, schema)
    atoms, trees = encoded.atoms, encoded.trees
    book, intervals = build_code_book(atoms, schema)
    greatest = np.array([regions.greatest for regions in book.regions], np.int64)
    costs = estimate_costs(encoded, intervals, greatest)
    # by query: how often its key holds; those that no key leads to are met by every event
    weight = choose_keys(trees.offsets.copy(), trees.program.copy(), costs)[3]
    weight[np.isinf(weight)] = 1.0

    # by entry of a program: its query, and whether it is a condition on a value
    owner = np.repeat(np.arange(len(queries)), np.diff(trees.offsets))
    is_atom = trees.program >= 0
    is_and = (trees.program <= -16) & (trees.program % 2 == 0)
    is_value = is_atom.copy()
    is_value[is_atom] = np.isin(atoms.kind[trees.program[is_atom]], (WITHIN, IS_NULL))
    # an AND of values has one entry besides these, at its end
    others = np.bincount(owner[~is_value], minlength=len(queries))
    ands = np.bincount(owner[is_and], minlength=len(queries))
    is_pure = (others == 0) | ((others == 1) & (ands == 1))

    # of those in a grid: their attributes, and how many an event should match
    in_grid = is_value & is_pure[owner]
    numbers = trees.program[in_grid]
    columns = np.unique(atoms.column[numbers])
    by_grid = estimate_grid(len(columns), int(is_pure.sum()))
    if len(columns) and greatest[columns].max() >= MAX_EXACT_VALUES:
        chance = np.ones(len(queries))
        np.multiply.at(chance, owner[in_grid], costs[numbers, 1])
        by_grid += GRID_CHECK_NS * float(chance[is_pure].sum())
    by_keys = CANDIDATE_NS * float(weight[is_pure].sum())
    return KEYED_NS + min(by_grid, by_keys) + PROGRAM_NS * float(weight[~is_pure].sum())
