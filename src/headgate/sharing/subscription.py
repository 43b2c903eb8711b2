"""A query that a peer has registered: what it selects of one stream, and where its rows go."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import UsageError
from headgate.predicate import Column, Predicate, collect_columns
from headgate.queries import Query
from headgate.sharing.sampled import Bits, SampledStream, count_bits


@dataclass(frozen=True, eq=False, slots=True)
class Subscription:
    """A filter, its target, and the sample rows that it wants. Equal only to itself."""

    query: Query
    target: str
    rows: Bits
    count: int
    outputs: frozenset[str]
    attributes: frozenset[str]

    @property
    def id(self) -> str:
        return self.query.id

    @property
    def needs(self) -> frozenset[str]:
        """The attributes from which the query can be answered, where there are other rows, too."""
        return self.outputs | self.attributes

    @property
    def where(self) -> Predicate:
        return self.query.where


def subscribe(query: Query, target: str, sampled: SampledStream) -> Subscription:
    """Raises UsageError for what is no filter: only these are decided on each row alone."""
    if query.kind != "filter":
        raise UsageError(f"`{query.id}` is a {query.kind}; only filters can share streams")
    rows = sampled.find_rows(query.where)
    stream = sampled.stream
    names = [o.expression.name for o in query.outputs if isinstance(o.expression, Column)]
    outputs = frozenset(stream[name].name for name in names or stream.names)
    used = frozenset(stream[column.name].name for column in collect_columns(query.where))
    return Subscription(query, target, rows, count_bits(rows), outputs, used)
