"""The contract of an index: which queries want these events?

Every index returns exactly what `scan` returns; `headgate.testing` holds it to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

from headgate.matching.filing import Filing
from headgate.matching.matches import Matches
from headgate.queries import Query
from headgate.schema import Stream


class Index(Protocol):
    """Filters over one stream, each at a position that is never reused.

    Events are a pyarrow Table or RecordBatch, a pandas DataFrame, a list of dicts, or an
    `EventBatch`. A method may be called from one thread at a time unless an index says otherwise.
    """

    stream: Stream
    threads: int  # that a match may use, if the index can use more than one

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        """An index that holds the queries, at positions 0, 1, 2, …"""

    def insert(self, query: Query) -> int:
        """Add a query and return its position, one above all given out before."""

    def remove(self, query_id: str) -> None:
        """Take a query out; its position stays empty. An unknown id is an error."""

    def update(self, query: Query) -> int:
        """Put a query in the place of the one with its id; it gets a new position."""

    def match(self, events: Any) -> Matches:
        """The matches of all events at once."""

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        """The same in consecutive pieces, so that memory stays bounded."""

    def filing(self, query_id: str) -> Filing:
        """Where a query is kept, and which events lead to it."""

    def describe(self) -> dict[str, Any]:
        """What the index holds and how: `kind`, `queries`, and its own figures."""

    def __len__(self) -> int:
        """The number of queries that it holds now."""
