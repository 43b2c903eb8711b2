"""BE-Tree as an index of Headgate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.errors import UsageError
from headgate.events import EventBatch
from headgate.matching.base import ConfigurableIndex
from headgate.matching.be_tree.events import EventReader
from headgate.matching.be_tree.inspection import (
    describe_tree,
    draw_tree,
    find_violations,
    locate_query,
)
from headgate.matching.be_tree.options import BeTreeOptions
from headgate.matching.be_tree.semantics import (
    Semantics,
    check_semantics,
    match_event,
    read_events,
    weaken,
)
from headgate.matching.be_tree.tree import BeTree
from headgate.matching.encoding.event_columns import EventColumns
from headgate.matching.matches import Matches, RowMatches, to_events
from headgate.matching.protocol import Placement
from headgate.matching.scan import ScanFallback, try_conjunctions
from headgate.predicate import And, Predicate, Within, collect_columns
from headgate.predicate.normal_form import MAX_CONJUNCTIONS
from headgate.queries import Query
from headgate.schema import Stream

MAX_ROWS = 1 << 16  # events that are read at a time
MAX_PRECOMPUTED_ROWS = 4096  # where predicates are evaluated for all of them beforehand
MAX_NAMED_QUERIES = 5  # in an error message

Numbers = npt.NDArray[np.int64]


class BeTreeIndex(ConfigurableIndex[BeTreeOptions]):
    """A tree that tells expressions apart by one attribute after the other, and adapts itself.

    "Analysis and optimization for Boolean expression indexing" (BE-Tree), sections 4 to 7. A query
    with OR is an expression for each conjunction; one of more than `MAX_CONJUNCTIONS` of them is
    scanned instead, because nothing exponential is ever expanded.

    Guarantee: that of `scan`, unless `absent="weak"` was chosen. Cost of a change: O(k log N) for k
    predicates and N points of a domain, apart from cuts; where nothing tells queries apart (only
    LIKE, or many that are the same) their leaf cannot be cut, and a deletion reads it. New queries
    are inserted before the next match. One thread at a time, by a lock; a batch is matched
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
        super().__init__(stream, options)
        self._scanned = ScanFallback(stream)
        self._tree = BeTree(self.options)
        self._other_attributes: set[str] = set()  # that the tree's predicates may not mention
        self._other_queries: set[str] = set()  # with LIKE, IS NULL and the like, or too much OR
        self._reader: EventReader | None = None

    @staticmethod
    def _default_options() -> BeTreeOptions:
        return BeTreeOptions()

    def _settle(self) -> None:
        self._tree.settle()

    def _add(self, query: Query, position: int) -> None:
        if self.options.absent == "weak":
            query = replace(query, where=weaken(query.where))
        # Events that are expressions meet conjunctions as they are written. Where these are too
        # many, rows are matched by those that no other absorbs.
        parts = try_conjunctions(query, absorb=False)
        if parts is None:
            self._other_queries.add(query.id)
            parts = try_conjunctions(query)
        has_sets_only = all(isinstance(atom, Within) for part in parts or () for atom in part)
        if not has_sets_only:
            self._other_queries.add(query.id)
        # Unless the tree has the very atoms of the query, one of its attributes may be mentioned by
        # no predicate of the tree; it is read all the same.
        if not has_sets_only or not isinstance(query.where, And) or parts != (query.where.parts,):
            self._other_attributes |= {column.name for column in collect_columns(query.where)}
        if parts is None:
            self._scanned.insert(query, position)
        else:
            self._tree.expressions.add(position, parts)

    def _discard(self, query_id: str, position: int) -> None:
        self._other_queries.discard(query_id)
        if query_id in self._scanned:
            self._scanned.remove(query_id)
        else:
            self._tree.expressions.drop(position)

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        with self._lock:
            self._settle()
            used = {column.name for column in self._tree.predicates.columns}
            batch = self._read(events, used | self._other_attributes)
            # what is scanned has the positions of this index
            pieces = self._scanned.add_matches(self._match_rows(batch), batch, len(self._ids))
        yield from to_events(batch, self._hold_lock(pieces), self._ids)

    def _hold_lock(self, pieces: Iterator[RowMatches]) -> Iterator[RowMatches]:
        """Make each piece under the lock, so that no change falls into one."""
        while True:
            with self._lock:
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def _match_rows(self, batch: EventBatch) -> Iterator[RowMatches]:
        rows, known = len(batch.events), len(self._ids)
        start = 0
        while start < rows:
            # Queries may have come and gone since the last piece.
            self._settle()
            predicates = self._tree.predicates
            if self._reader is None or self._reader.generation != predicates.generation:
                self._reader = EventReader(predicates)
            # what is precomputed is held for all rows at once
            max_rows = MAX_PRECOMPUTED_ROWS if self._reader.precomputes else MAX_ROWS
            size = min(max_rows, rows - start)
            events = self._reader.read(EventColumns(batch.table.slice(start, size), size))
            row = 0
            while row < size:
                offsets, positions = self._tree.match(events, row)
                piece = RowMatches(start + row, offsets, positions)
                # queries that came since the batch began are left out
                yield piece if len(self._ids) == known else piece.below(known)
                row += len(offsets) - 1
            start += size
            # between two calls of the kernel, never inside one
            self._tree.adapt()

    def match_expressions(
        self, events: Sequence[Predicate | str], semantics: str = "stabbing_subscription"
    ) -> Matches:
        """Return the queries that events meet which are expressions themselves.

        An event is a predicate, or the text of a condition; `semantics.py` explains the ways in
        which it may meet a query. An event that these semantics give no meaning to has its reason
        in `errors`; a query of that kind is refused by name.

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
            self._settle()
            self._refuse_queries(chosen)
            positions: list[Numbers] = []
            errors: dict[int, str] = {}
            for number, event in enumerate(read_events(events, self.stream, chosen)):
                if isinstance(event, str):
                    errors[number] = event
                    positions.append(np.empty(0, np.int64))
                else:
                    positions.append(match_event(self._tree, event, chosen))
        offsets = np.cumsum([0, *map(len, positions)], dtype=np.int64)
        return Matches(offsets, np.concatenate([offsets[:0], *positions]), self._ids, errors)

    def _refuse_queries(self, semantics: Semantics) -> None:
        """Raise an error if the index holds a query that these semantics give no meaning to."""
        refused = sorted({*self._scanned, *self._other_queries})
        reason = (
            f"only an OR of up to {MAX_CONJUNCTIONS} conjunctions of comparisons with constants, "
            "as it is written, has one"
        )
        if not refused and semantics in ("enclosure", "exact"):
            has_alternatives = self._tree.expressions.has_alternatives
            refused = sorted(n for n, at in self._positions.items() if has_alternatives(at))
            reason = "the parts of an OR may cover an event together"
        if refused:
            shown = ", ".join(f"`{name}`" for name in refused[:MAX_NAMED_QUERIES])
            left_out = len(refused) - MAX_NAMED_QUERIES
            more = f" and {left_out:,} more" if left_out > 0 else ""
            name = semantics.replace("_", " ")
            raise UsageError(f"{name} has no meaning for {shown}{more}: {reason}")

    def locate(self, query_id: str) -> Placement:
        with self._lock:
            position = self._position_of(query_id)
            if query_id in self._scanned:
                return Placement("be_tree", "scanned: too many alternatives for a tree")
            self._settle()
            return locate_query(self._tree, position)

    def draw(self, *, deepest: int = 4, widest: int = 5) -> list[tuple[int, str]]:
        """Return the tree from the root on: how deep each line lies, and what it says."""
        with self._lock:
            self._settle()
            return list(draw_tree(self._tree, deepest=deepest, widest=widest))

    def check(self) -> list[str]:
        """Return what is wrong with the tree, rule by rule; nothing, if all is well."""
        with self._lock:
            self._settle()
            return list(find_violations(self._tree))

    def describe(self) -> dict[str, Any]:
        with self._lock:
            self._settle()
            return {
                "kind": "be_tree",
                "queries": len(self),
                "positions": len(self._ids),
                "scanned": len(self._scanned),
                **describe_tree(self._tree),
                "options": self.options.as_json(),
            }
