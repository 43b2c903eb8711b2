"""Queries in the order of their registration, and the report of the load that they came from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from headgate._display import format_count, render_table
from headgate.errors import QuerySetError, SqlError, UsageError, did_you_mean
from headgate.predicate import Satisfiability, collect_columns, decide_satisfiability
from headgate.schema import Schema
from headgate.sql import render_schema, render_select
from headgate.sql.query import Query, find_attribute, find_id_problem

MAX_COMPARED_IDS = 10_000  # for the hint which id may be meant


def decide_query_satisfiability(query: Query) -> Satisfiability:
    """Decide whether a query can ever give a row, given the CHECK and NOT NULL of its streams."""
    attributes = {c: find_attribute(query, c) for c in collect_columns(query.where)}
    # A domain that allows everything narrows nothing.
    domains = {c: a.domain for c, a in attributes.items() if not a.domain.is_everything}
    required = [c for c, a in attributes.items() if not a.nullable]
    return decide_satisfiability(query.where, domains, required)


def compute_query_version(query: Query) -> str:
    """Return a hash of the query's bound SQL: equal text up to spelling gives equal versions."""
    return hashlib.blake2b(render_select(query).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class RowError:
    """A query that was not accepted."""

    error: SqlError
    id: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the error as it stands in the `errors` list of `headgate check`."""
        position = self.error.position
        hint = f"; {self.error.hint}" if self.error.hint else ""
        return {
            "file": position.file,
            "line": position.line,
            "column": position.column,
            "id": self.id,
            "message": self.error.message + hint,
            "text": self.error.text,
        }


@dataclass
class LoadReport:
    """Counts and errors of all files that a query set was read from."""

    accepted: int = 0
    errors: list[RowError] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of queries that were read, accepted or not."""
        return self.accepted + len(self.errors)

    def __repr__(self) -> str:
        return f"<LoadReport: {self.accepted:,} accepted, {len(self.errors):,} refused>"

    def _repr_html_(self) -> str:
        rows = ((row.id or "", row.error) for row in self.errors)
        return render_table(self.summary(), ("query", "refused because"), rows, len(self.errors))

    def reasons(self) -> Sequence[tuple[str, int]]:
        """Return the reasons for refusal with their counts, most frequent first."""
        return Counter(row.error.topic for row in self.errors).most_common()

    def summary(self) -> str:
        """Return the counts and the most frequent reasons in one line.

        >>> LoadReport(accepted=3).summary()
        '3 of 3 queries accepted'
        """
        text = f"{self.accepted:,} of {self.total:,} queries accepted"
        reasons = self.reasons()
        shown = "; ".join(f"{reason} ({count:,})" for reason, count in reasons[:5])
        more = f"; and {len(reasons) - 5} more reasons" if len(reasons) > 5 else ""
        return f"{text}; refused: {shown}{more}" if shown else text


@dataclass(frozen=True, slots=True)
class Change:
    """The difference between two query sets: queries that were added and updated, ids removed."""

    added: tuple[Query, ...] = ()
    removed: tuple[str, ...] = ()
    updated: tuple[Query, ...] = ()

    def __post_init__(self) -> None:
        # a text is a sequence of texts, too: "ab" would remove `a` and `b`
        for name in ("added", "removed", "updated"):
            if isinstance(getattr(self, name), str):
                raise UsageError(f"`{name}` is a text; give a tuple")
        if any(not isinstance(query_id, str) for query_id in self.removed):
            raise UsageError("`removed` are ids; give the texts, such as query.id")
        if any(not isinstance(query, Query) for query in (*self.added, *self.updated)):
            raise UsageError("`added` and `updated` are queries, such as queries['an_id']")

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.updated)


class QuerySet:
    """An ordered collection of queries over one schema, each under an id that never changes.

    Parameters
    ----------
    schema
        The streams and declared aggregates that the queries use.
    queries
        The queries, in the order of their registration.
    version
        The number that a publisher gives the set; without one, a hash of its content.
    report
        What was refused when the set was read.

    Raises
    ------
    QuerySetError
        Where two queries have the same id, or an id is empty, has more than 1,000 characters or
        holds a NUL character.

    Examples
    --------
    >>> from headgate.predicate import TRUE
    >>> from headgate.schema import Stream
    >>> from headgate.sql.query import Source
    >>> trades = Stream("trades", ())
    >>> everything = Query("all", (Source(trades, "trades"),), TRUE)
    >>> queries = QuerySet(Schema((trades,)))
    >>> queries.add(everything)
    >>> len(queries), "all" in queries, queries["all"] is everything
    (1, True, True)
    """

    def __init__(
        self,
        schema: Schema,
        queries: Iterable[Query] = (),
        *,
        version: int | None = None,
        report: LoadReport | None = None,
    ) -> None:
        self.schema = schema
        self.report = report or LoadReport()
        self._queries: dict[str, Query] = {}
        for query in queries:
            self.add(query)
        # Set behind the loop, as `add` forgets the version.
        self._given_version = version

    @property
    def version(self) -> int | str:
        """The number that a publisher gave, or else a hash of schema and queries."""
        return self.content_hash if self._given_version is None else self._given_version

    @property
    def content_hash(self) -> str:
        """A hash of schema and queries, with their order and metadata but not their spelling."""
        # NUL separates the fields, as rendered SQL never holds one.
        digest = hashlib.blake2b(render_schema(self.schema).encode(), digest_size=8)
        for query in self:
            digest.update(f"\0{query.id}\0{render_select(query)}\0{query.metadata}".encode())
        return digest.hexdigest()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the queries, in their order."""
        return tuple(self._queries)

    def add(self, query: Query) -> None:
        """Append a query.

        Parameters
        ----------
        query : Query
            A query under an id that the set does not hold.

        Raises
        ------
        QuerySetError
            If the id is taken, or cannot be one.
        """
        if query.id in self._queries:
            raise QuerySetError(f"there is already a query `{query.id}`; ids are unique in a set")
        if problem := find_id_problem(query.id):
            raise QuerySetError(problem)
        # What has changed is no longer what was published under a number.
        self._queries[query.id] = query
        self._given_version = None

    def remove(self, query_id: str) -> Query:
        """Remove a query and return it.

        Parameters
        ----------
        query_id : str
            The id of a query of the set.

        Returns
        -------
        Query
            The query that was removed.

        Raises
        ------
        QuerySetError
            If the set holds no query of that id.
        """
        query = self[query_id]
        del self._queries[query_id]
        self._given_version = None
        return query

    def diff(self, newer: QuerySet) -> Change:
        """Return what was added, removed and updated on the way to a newer set.

        Parameters
        ----------
        newer : QuerySet
            The set to compare with.

        Returns
        -------
        Change
            The queries that were added and updated, and the ids that were removed.
        """
        return Change(
            added=tuple(query for query in newer if query.id not in self),
            removed=tuple(query.id for query in self if query.id not in newer),
            updated=tuple(q for q in newer if q.id in self and are_different(self[q.id], q)),
        )

    def filters(self, stream: str) -> list[Query]:
        """Return the filters on a stream: what an index holds, since each event decides itself.

        Parameters
        ----------
        stream : str
            The name of the stream, as its schema spells it.

        Returns
        -------
        list of Query
            The filters, in the order of the set.
        """
        return [query for query in self if query.kind == "filter" and query.stream_name == stream]

    def __getitem__(self, query_id: str) -> Query:
        if not isinstance(query_id, str):
            raise UsageError(
                f"queries have ids, which are strings, not {query_id!r}; list(queries)[…] counts"
            )
        try:
            return self._queries[query_id]
        except KeyError:
            raise refuse_unknown_id(query_id, self._queries) from None

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._queries

    def __iter__(self) -> Iterator[Query]:
        return iter(self._queries.values())

    def __len__(self) -> int:
        return len(self._queries)

    def __repr__(self) -> str:
        return f"<QuerySet of {self._describe()}>"

    def _repr_html_(self) -> str:
        refused = f"; {len(self.report.errors):,} refused" if self.report.errors else ""
        title = f"{self._describe()}{refused}"
        rows = ((query.id, query.kind, render_select(query)) for query in self)
        return render_table(title, ("query", "kind", "SQL"), rows, len(self))

    def _describe(self) -> str:
        streams = ", ".join(self.schema.names) or "no streams"
        return f"{format_count(len(self), 'query')} over {streams}"


def refuse_unknown_id(query_id: str, ids: Collection[str]) -> QuerySetError:
    """Return the error for an id that no query has, with the nearest of those that there are."""
    # Comparing with each of very many ids would take too long.
    hint = f"; {did_you_mean(query_id, ids)}" if len(ids) < MAX_COMPARED_IDS else ""
    return QuerySetError(f"no query `{query_id}`{hint}")


def are_different(old: Query, new: Query) -> bool:
    """Return whether a query was updated, and not only spelled in another way."""
    if old == new:
        return False
    # Objects may differ where the rendered SQL does not.
    return old.metadata != new.metadata or compute_query_version(old) != compute_query_version(new)
