"""Conjunctions of predicates on integer attributes, as arrays: a million of them in seconds.

| operator     | the values that predicate k accepts                       | `low` and `high`   |
|--------------|-----------------------------------------------------------|--------------------|
| =, BETWEEN   | `low[k]` to `high[k]`                                     | its ends           |
| <, <=        | up to `high[k]`                                           | 0 and its end      |
| >=, >        | from `low[k]`                                             | its end, greatest  |
| IN           | those listed                                              | least and greatest |
| <>           | all but `low[k]`, which is `high[k]`                      | what is refused    |
| NOT IN       | all but those listed                                      | least and greatest |

So where there is no IN, <> and NOT IN, a query is a box: `low <= value <= high`, both included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchmarks.workloads.conjunction_encoding import encode
from benchmarks.workloads.integer_events import (
    ABOVE,
    BETWEEN,
    IN,
    NOT_IN,
    OPERATORS,
    Codes,
    IntegerEvents,
    Numbers,
    Offsets,
)
from headgate.queries import Query, Source
from headgate.schema import Schema, Stream
from headgate.snapshot.arrays import EncodedQueries, decode_queries
from headgate.sql import WhereReader

EventDraw = Callable[[int, np.random.Generator], IntegerEvents]


@dataclass(frozen=True, eq=False)
class Listed:
    """The values of IN and NOT IN, ascending: predicate `predicate[j]` has `offsets[j:j + 2]`."""

    predicate: Offsets
    offsets: Offsets
    values: Numbers

    def part(self, start: int, stop: int) -> Listed:
        """Return the lists of the predicates from `start` up to `stop`, numbered from 0."""
        first, last = np.searchsorted(self.predicate, (start, stop)).tolist()
        offsets = self.offsets[first : last + 1]
        values = self.values[offsets[0] : offsets[-1]]
        return Listed(self.predicate[first:last] - start, offsets - offsets[0], values)


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Query i is the AND of the predicates `offsets[i]` up to `offsets[i + 1]`.

    Predicate k is about attribute number `attribute[k]`; what it says is in the table above. Values
    run from 0 to `cardinality` − 1. Queries are called q0, q1, …, from `first` on.
    """

    stream: Stream
    cardinality: int
    offsets: Offsets
    attribute: Numbers
    operator: Codes
    low: Numbers
    high: Numbers
    listed: Listed
    draw_events: EventDraw
    first: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def schema(self) -> Schema:
        return Schema((self.stream,))

    def events(self, count: int, *, seed: int) -> IntegerEvents:
        """Return events that match as often as was asked for when the queries were made."""
        return self.draw_events(count, np.random.default_rng([seed, 1]))

    def part(self, start: int, stop: int) -> Conjunctions:
        """Return the queries from `start` up to `stop`, under the ids that they have here."""
        offsets = self.offsets[start : stop + 1]
        low, high = int(offsets[0]), int(offsets[-1])
        return replace(
            self,
            offsets=offsets - low,
            attribute=self.attribute[low:high],
            operator=self.operator[low:high],
            low=self.low[low:high],
            high=self.high[low:high],
            listed=self.listed.part(low, high),
            first=self.first + start,
        )

    def where_clauses(self) -> Iterator[str]:
        """Yield each query as a WHERE clause, its predicates in their order."""
        predicates = self._predicates()
        for size in np.diff(self.offsets).tolist():
            yield " AND ".join(next(predicates) for _ in range(size))

    def queries(self) -> list[Query]:
        """Return the queries as objects; equal predicates are one object."""
        return list(decode_queries(self.encode(), self.schema))

    def encode(self) -> EncodedQueries:
        """Return what `encode_queries` makes of the queries, without an object for each of them."""
        return encode(self)

    def _predicates(self) -> Iterator[str]:
        names = self.stream.names
        lists = self._lists()
        columns = (self.attribute, self.operator, self.low, self.high)
        for number, code, low, high in zip(*(c.tolist() for c in columns), strict=True):
            name, operator = names[number], OPERATORS[code]
            if code == BETWEEN:
                yield f"{name} BETWEEN {low} AND {high}"
            elif code in (IN, NOT_IN):
                yield f"{name} {operator} ({next(lists)})"
            else:
                constant = (low, high + 1, high, low, low - 1)[code] if code <= ABOVE else low
                yield f"{name} {operator} {constant}"

    def _lists(self) -> Iterator[str]:
        values, offsets = self.listed.values.tolist(), self.listed.offsets.tolist()
        for start, stop in pairwise(offsets):
            yield ", ".join(map(str, values[start:stop]))


# WHERE clauses on one stream as queries.


def bind_queries(stream: Stream, clauses: Iterable[str], prefix: str) -> list[Query]:
    """Return the clauses as queries, with the ids prefix0, prefix1, …"""
    read = WhereReader(stream).read
    source = (Source(stream, stream.name),)
    return [Query(f"{prefix}{i}", source, read(clause)) for i, clause in enumerate(clauses)]
