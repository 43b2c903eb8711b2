"""The contract of an index, which says which queries want which events.

Every index returns exactly what `scan` returns; `headgate.testing` tests that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from headgate.matching.matches import MatchedIds, Matches
from headgate.queries import Query
from headgate.schema import Stream


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an index keeps a query, and which events lead to it.

    Parameters
    ----------
    index : str
        The kind of the index.
    how : str
        The placement in words.
    conditions : tuple of str
        If a key leads to the query: conditions of which one must hold for it to match.
    share : float, optional
        The share of events that is expected to meet one of these conditions.
    """

    index: str
    how: str
    conditions: tuple[str, ...] = ()
    share: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the placement as a JSON object, without what is unknown."""
        fields: dict[str, Any] = {"index": self.index, "how": self.how}
        if self.conditions:
            fields["conditions"] = list(self.conditions)
        if self.share is not None:
            fields["share"] = float(f"{self.share:.2g}")
        return fields


class Index(Protocol):
    """Filters over one stream, each at a position that is never reused.

    Events are a pyarrow Table or RecordBatch, a DataFrame of pandas or Polars, a list of dicts, or
    an `EventBatch`. Call methods from one thread at a time unless an index says otherwise.

    Attributes
    ----------
    stream : Stream
        The stream that the filters read.
    threads : int
        How many threads a match may use, if the index can use more than one.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> index = hg.build_index(queries, stream="trades")
    >>> index.match([{"symbol": "AAPL", "side": "buy", "qty": 5000}, {"symbol": "MSFT"}])[0]
    ['big_buys', 'no_venue', 'maybe_large']
    >>> index.match_one({"symbol": "MSFT"})
    ['no_venue', 'maybe_large']
    >>> index.locate("big_buys").how
    'evaluated for every event'
    >>> index.remove("big_buys")
    >>> "big_buys" in index.match([{"symbol": "AAPL", "side": "buy", "qty": 5000}])[0]
    False
    """

    stream: Stream
    threads: int

    @classmethod
    def build(cls, stream: Stream, queries: Sequence[Query]) -> Self:
        """Return an index that holds the queries, at positions 0, 1, 2 and so on.

        Parameters
        ----------
        stream : Stream
            The stream that the filters read.
        queries : sequence of Query
            Filters on the stream, with ids of their own.

        Returns
        -------
        Index
            An index of this kind.
        """

    def insert(self, query: Query) -> int:
        """Add a query and return its position, one above all given out before.

        Parameters
        ----------
        query : Query
            A filter on the stream.

        Returns
        -------
        int
            The position of the query.

        Raises
        ------
        QuerySetError
            If the id is taken, or the query is not a filter on the stream.
        """

    def remove(self, query_id: str) -> None:
        """Remove a query; its position stays empty.

        Parameters
        ----------
        query_id : str
            The id of a query that the index holds.

        Raises
        ------
        QuerySetError
            If the index holds no query of that id.
        """

    def update(self, query: Query) -> int:
        """Replace the query of the same id, and return the new position.

        Parameters
        ----------
        query : Query
            A filter on the stream, under the id of one that the index holds.

        Returns
        -------
        int
            The position of the new query; the old one stays empty.

        Raises
        ------
        QuerySetError
            If the index holds no query of that id, or refuses the new one.
        """

    def match(self, events: Any) -> Matches:
        """Return the matches of all events at once.

        Parameters
        ----------
        events : Table, RecordBatch, DataFrame, list of dict, or EventBatch
            The events. A value that does not fit its type is an error of its event.

        Returns
        -------
        Matches
            The queries that each event matches, in the order of the events.
        """

    def match_one(self, event: Mapping[str, Any]) -> MatchedIds:
        """Return the ids of the queries that one event matches, as fast as a single event can be.

        Parameters
        ----------
        event : dict
            The event.

        Returns
        -------
        MatchedIds
            A sequence of ids, the same as `match([event])[0]`; they are made when asked for.

        Raises
        ------
        EventError
            If the event cannot be read, with the reason that `match` reports: there is no empty
            answer that would look like "no match".
        """

    def match_chunks(self, events: Any) -> Iterator[Matches]:
        """Return the same matches in consecutive chunks, so that memory stays bounded.

        Parameters
        ----------
        events : Table, RecordBatch, DataFrame, list of dict, or EventBatch
            The events, as in `match`.

        Returns
        -------
        iterator of Matches
            The matches of consecutive events; each chunk says which event is its first.
        """

    def locate(self, query_id: str) -> Placement:
        """Return where a query is kept, and which events lead to it.

        Parameters
        ----------
        query_id : str
            The id of a query that the index holds.

        Returns
        -------
        Placement
            The place in words, and the conditions that lead there.

        Raises
        ------
        QuerySetError
            If the index holds no query of that id.
        """

    def describe(self) -> dict[str, Any]:
        """Return what the index holds and how: `kind`, `queries`, and figures of its own."""

    def __len__(self) -> int:
        """Return the number of queries that the index holds now."""
