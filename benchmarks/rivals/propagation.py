"""Propagation (Fabret et al. 2001, "Filtering algorithms and implementation for very fast
publish/subscribe systems").

Each entry is in the cluster (`clusters`) of its access predicate (`access`): one or two of its
equality predicates, by which an event looks it up. A predicate that accepts one code is an
equality. What is left of the entries of a cluster is checked column by column: the first predicates
of all, then the second ones of those that passed. Entries without an equality are one cluster,
which every event checks. IN, `<>` and NOT IN are never access predicates, and are checked in full
at last.

An event may also be an expression (section 8.6.11 of the BE-Tree paper): then it looks up all the
values that it names (Equation 25).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rivals.clusters import make_clusters
from benchmarks.rivals.entries import Entries, Numbers
from benchmarks.rivals.kernels.propagation import hash_keys, look_up_events
from benchmarks.rivals.static_index import Events, Layout, StaticIndex
from headgate.errors import UsageError
from headgate.matching.encoding.code_book import CodeBook, Regions
from headgate.matching.matches import Matches, concatenate_matches
from headgate.predicate import Predicate, Within
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.schema import ValueSet


class Keys(NamedTuple):
    """Where clusters are found: of value v alone `single[v]`; of a pair of values by a hash table,
    linear from a number's own place, whose size is a power of two. An attribute's partners, of
    greater number, are `partner[partners[c]:partners[c + 1]]`. −1 is no cluster."""

    single: Any
    partners: Any
    partner: Any
    key: Any
    cluster: Any


class PropagationIndex(StaticIndex):
    """Looks queries up by one or two of their equality predicates.

    >>> from benchmarks.workloads import generate_range_queries
    >>> queries = generate_range_queries(1, seed=2)
    >>> index = PropagationIndex.from_encoded(queries.stream, queries.encode())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "propagation"
    title = "Propagation"
    how = "by one or two of its equality predicates; without any it is looked at for every event"

    def match_ranges(self, expressions: Iterable[Predicate]) -> Matches:
        """Return the matches of events that are conjunctions themselves (stabbing subscription).

        A query is found when each of its predicates shares a value with the event's predicate on
        the same attribute; a query with OR, when that holds for one of its conjunctions.
        """
        built = self._build()
        pieces = built.match(expression_events(expressions, built.book))
        matches = [Matches(p.offsets, p.positions, self._ids, first=p.row) for p in pieces]
        return concatenate_matches(matches, self._ids)

    def _lay_out(self, entries: Entries) -> Layout:
        clusters, known = make_clusters(entries)
        keys = make_keys(known, entries)
        narrow = entries.list_intervals(entries.narrow)
        every = entries.list_intervals(np.ones(len(entries.atom), np.bool_))
        columns = len(entries.greatest)
        room = tuple(np.zeros(columns, np.int32) for _ in range(2))
        first = np.zeros(columns, np.int64)
        kept = np.empty(max(1, int(np.diff(clusters.start).max(initial=0))), np.int64)
        return Layout(
            (*clusters, *keys, *narrow, *every),
            partial(
                look_up_events, keys, clusters, narrow, every, entries.base, (*room, first, kept)
            ),
        )


def make_keys(known: Numbers, entries: Entries) -> Keys:
    """Return the keys of clusters, by value and by pair of values."""
    count = entries.values
    single = np.full(entries.values, -1, np.int32)
    singles = np.flatnonzero((known < 0) & (known > -count - 1))
    single[known[singles] + count] = singles
    pairs = np.flatnonzero(known >= 0)
    a, b = (
        np.searchsorted(entries.base, numbers, side="right") - 1
        for numbers in (known[pairs] // count, known[pairs] % count)
    )
    schemes = np.unique(np.stack([a, b], axis=1), axis=0)
    columns = len(entries.greatest)
    partners = np.concatenate(([0], np.cumsum(np.bincount(schemes[:, 0], minlength=columns))))
    size = 1 << max(1, (2 * len(pairs)).bit_length())
    table = hash_keys(known[pairs].astype(np.uint64), pairs, size)
    return Keys(single, partners, schemes[:, 1].astype(np.int32), *table)


# Events that are expressions: a set of values for an attribute, where a row has one value.
#
# Under the stabbing subscription of the BE-Tree paper (section 3), an expression matches a query
# when every predicate of the query shares a value with the event's predicate on the same
# attribute.


def expression_events(predicates: Iterable[Predicate], book: CodeBook) -> Events:
    """Return the codes of which each expression has a value, column by column."""
    numbers = {regions.column: number for number, regions in enumerate(book.regions)}
    start = [0]
    intervals: list[tuple[int, int, int]] = []
    for event, predicate in enumerate(predicates):
        for atom in _single(event, predicate):
            assert isinstance(atom, Within)
            number = numbers.get(atom.column)
            if number is not None:
                codes = _codes(atom.values, book.regions[number])
                intervals.extend((number, low, high) for low, high in codes)
        start.append(len(intervals))
    column, low, high = np.array(intervals, np.int32).reshape(-1, 3).T.copy()
    return Events(np.array(start, np.int64), column, low, high)


def _single(event: int, predicate: Predicate) -> Conjunction:
    parts = to_conjunctions(predicate)
    if len(parts) != 1 or not all(isinstance(atom, Within) for atom in parts[0]):
        raise UsageError(
            f"event {event} is not one conjunction of comparisons with constants; split an OR"
        )
    return parts[0]


def _codes(values: ValueSet, regions: Regions) -> Iterator[tuple[int, int]]:
    """Yield the intervals of codes that a set of values reaches into, ascending and apart."""
    first, last = 0, -1
    for interval in values.intervals:
        low = 1 if interval.low is None else bisect_right(regions.cuts, interval.low) + 1
        high = (
            regions.greatest
            if interval.high is None
            else bisect_left(regions.cuts, interval.high) + 1
        )
        if low > last + 1:
            if first:
                yield first, last
            first = low
        last = high
    yield first, last
