"""BE-Tree as an index of Headgate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from headgate.errors import UsageError
from headgate.events import EventBatch
from headgate.jit import warn_before_compiling
from headgate.matching.base import BaseIndex
from headgate.matching.be_tree.check import violations
from headgate.matching.be_tree.draw import drawn
from headgate.matching.be_tree.events import EventReader
from headgate.matching.be_tree.growing import GrowingTree
from headgate.matching.be_tree.options import BeTreeOptions
from headgate.matching.be_tree.semantics import (
    Semantics,
    check_semantics,
    matched,
    readable,
)
from headgate.matching.be_tree.weak import weakened
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.matches import Matches, RowMatches, to_events
from headgate.matching.protocol import Placement
from headgate.matching.scan_fallback import ScanFallback, try_conjunctions
from headgate.predicate import And, Predicate, Within, collect_columns
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries

ROWS = 1 << 16  # events that are read at a time
FEWER_ROWS = 4096  # where predicates are evaluated for all of them beforehand

Numbers = npt.NDArray[np.int64]


class BeTreeIndex(BaseIndex):
    """A tree that tells expressions apart by one attribute after the other, and adapts itself.

    "Analysis and optimization for Boolean expression indexing" (BE-Tree), sections 4 to 7. A query
    with OR is an expression for each conjunction; one of more than `conjunctions.CAP` of them is
    scanned instead, because nothing exponential is ever expanded.

    Guarantee: that of `scan`, unless `absent="weak"` was chosen. Cost of a change: O(k log N) for k
    predicates and N points of a domain, apart from cuts; where nothing tells queries apart (LIKE
    alone, or many that are the same) their leaf cannot be cut, and a deletion reads it. What came
    is inserted when somebody matches next. One thread at a time, by a lock; a batch is matched
    against the queries that were there when it began, without those that leave before it is done.

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.queries import Source
    >>> from headgate.sql import parse_where
    >>> s = Stream("s", (Attribute("a", INT),))
    >>> big = Query("big", (Source(s, "s"),), parse_where("a > 10", s))
    >>> index = BeTreeIndex.build(s, [big])
    >>> index.match([{"a": 11}, {"a": 3}, {"a": None}]).ids().to_pylist()
    [['big'], [], []]
    """

    def __init__(self, stream: Stream, options: BeTreeOptions | None = None) -> None:
        super().__init__(stream)
        self.options = options or BeTreeOptions()
        self._scanned = ScanFallback(stream)
        self._tree = GrowingTree(stream, self.options)
        self._others: set[str] = set()  # attributes that no predicate of the tree need mention
        self._others_than_sets: set[str] = set()  # queries with LIKE, IS NULL and the like
        self._reader: EventReader | None = None

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        return cls.of(stream, queries)

    @classmethod
    def of(
        cls, stream: Stream, queries: Iterable[Query], options: BeTreeOptions | None = None
    ) -> Self:
        """An index with options of its own."""
        warn_before_compiling(__package__)
        index = cls(stream, options)
        for query in queries:
            index.insert(query)
        index._tree.settle()
        return index

    @classmethod
    def from_encoded(
        cls, stream: Stream, encoded: EncodedQueries, options: BeTreeOptions | None = None
    ) -> Self:
        """An index over queries that are arrays already, all filters on the stream."""
        return cls.of(stream, decode_queries(encoded, Schema((stream,))), options)

    def _add(self, query: Query, position: int) -> None:
        if self.options.absent == "weak":
            query = replace(query, where=weakened(query.where))
        parts = try_conjunctions(query)
        sets = all(isinstance(atom, Within) for part in parts or () for atom in part)
        if not sets:
            self._others_than_sets.add(query.id)
        if not sets or not isinstance(query.where, And) or parts != (query.where.parts,):
            self._others |= {column.name for column in collect_columns(query.where)}
        if parts is None:
            self._scanned.insert(query, position)
        else:
            self._tree.add(position, parts)

    def _discard(self, query_id: str, position: int) -> None:
        self._others_than_sets.discard(query_id)
        if query_id in self._scanned:
            self._scanned.remove(query_id)
        else:
            self._tree.drop(position)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        with self._lock:
            self._tree.settle()
            used = {column.name for column in self._tree.pool.columns} | self._others
            batch = self._read(events, used)
            found = self._scanned.add_matches(self._found(batch), batch, len(self._ids))
        yield from to_events(batch, self._locked(found), self._ids)

    def match_expressions(
        self, events: Sequence[Predicate | str], semantics: str = "stabbing_subscription"
    ) -> Matches:
        """The queries that events meet which are expressions themselves, as `semantics.py` tells.

        An event is a predicate, or the text of a condition. One that these semantics give no
        meaning to has its reason in `errors`; a query of that kind is refused by name.

        >>> from headgate.schema import INT, Attribute
        >>> from headgate.queries import Source
        >>> from headgate.sql import parse_where
        >>> from headgate.matching.be_tree.semantics import SEMANTICS
        >>> s = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
        >>> wide = Query("wide", (Source(s, "s"),), parse_where("a BETWEEN 0 AND 9", s))
        >>> index = BeTreeIndex.build(s, [wide])
        >>> [index.match_expressions(["a > 5 AND b = 1"], how)[0] for how in SEMANTICS]
        [['wide'], [], [], [], [], []]
        >>> index.match_expressions(["a BETWEEN 3 AND 4"], "enclosure")[0]
        ['wide']
        """
        chosen = check_semantics(semantics)
        with self._lock:
            self._tree.settle()
            self._refuse_others(chosen)
            found: list[Numbers] = []
            errors: dict[int, str] = {}
            for number, event in enumerate(readable(events, self.stream, chosen)):
                if isinstance(event, str):
                    errors[number] = event
                    found.append(np.empty(0, np.int64))
                else:
                    found.append(matched(self._tree, event, chosen))
        offsets = np.cumsum([0, *map(len, found)], dtype=np.int64)
        return Matches(offsets, np.concatenate([offsets[:0], *found]), self._ids, errors)

    def _refuse_others(self, semantics: Semantics) -> None:
        """An error if the index holds a query that these semantics give no meaning to."""
        single = semantics in ("enclosure", "exact")
        wrong = [*self._scanned, *self._others_than_sets]
        reason = "only an OR of conjunctions of comparisons with constants has one"
        if not wrong and single:
            wrong = [name for name, at in self._positions.items() if self._tree.has_several(at)]
            reason = "the parts of an OR may cover an event together"
        if wrong:
            shown = ", ".join(f"`{name}`" for name in sorted(wrong)[:5])
            more = f" and {len(wrong) - 5:,} more" if len(wrong) > 5 else ""
            name = semantics.replace("_", " ")
            raise UsageError(f"{name} has no meaning for {shown}{more}: {reason}")

    def _locked(self, found: Iterator[RowMatches]) -> Iterator[RowMatches]:
        """Each piece is found under the lock, so that no change falls into one."""
        while True:
            with self._lock:
                piece = next(found, None)
            if piece is None:
                return
            yield piece

    def _found(self, batch: EventBatch) -> Iterator[RowMatches]:
        rows, known = len(batch.events), len(self._ids)
        start = 0
        while start < rows:
            pool = self._tree.pool
            self._tree.settle()
            if self._reader is None or self._reader.generation != pool.generation:
                self._reader = EventReader(pool)
            size = min(FEWER_ROWS if self._reader.gives else ROWS, rows - start)
            events = self._reader.read(EventColumns(batch.table.slice(start, size), size))
            row = 0
            while row < size:
                offsets, positions = self._tree.match(events, row)
                found = RowMatches(start + row, offsets, positions)
                yield found if len(self._ids) == known else found.below(known)
                row += len(offsets) - 1
            start += size
            self._tree.adapt()

    def locate(self, query_id: str) -> Placement:
        with self._lock:
            self._position_of(query_id)
            if query_id in self._scanned:
                return Placement("be_tree", "scanned: too many alternatives for a tree")
            self._tree.settle()
            return self._tree.locate(self._positions[query_id])

    def drawing(self, *, deepest: int = 4, widest: int = 5) -> list[tuple[int, str]]:
        """The tree from the root on: how deep each line lies, and what it says."""
        with self._lock:
            self._tree.settle()
            return list(drawn(self._tree, deepest=deepest, widest=widest))

    def check(self) -> list[str]:
        """What is wrong with the tree, rule by rule; nothing, if all is well."""
        with self._lock:
            self._tree.settle()
            return list(violations(self._tree))

    def describe(self) -> dict[str, Any]:
        with self._lock:
            self._tree.settle()
            return {
                "kind": "be_tree",
                "queries": len(self),
                "positions": len(self._ids),
                "scanned": len(self._scanned),
                **self._tree.describe(),
                "options": self.options.as_json(),
            }
