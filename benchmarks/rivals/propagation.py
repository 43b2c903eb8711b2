"""Propagation, by Fabret et al. (2001).

After "Filtering algorithms and implementation for very fast publish/subscribe systems".

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

from benchmarks.rivals.entries import Entries, Numbers, Shares
from benchmarks.rivals.kernels.propagation import (
    choose_pairs,
    hash_keys,
    lay_out_columns,
    list_candidates,
    look_up_events,
)
from benchmarks.rivals.static_index import Events, Layout, StaticIndex
from headgate.errors import UsageError
from headgate.matching.encoding.code_book import CodeBook, Regions
from headgate.matching.matches import Matches, concatenate_matches
from headgate.predicate import Predicate, Within
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.schema import ValueSet

# The clusters of Propagation: entries that are found together, their predicates by column.

# Which equality predicates lead to a query in Propagation: one of them, or a pair.
#
# An entry is found where its access predicate holds. The rarer that is, the less often the rest
# of the entry is checked; but for each pair of attributes that is used, an event which has both
# looks into a hash table. So pairs of attributes are taken greedily, as long as they save more
# than they cost, in the manner of Fabret et al. 2001 and with our own estimates of both.

# nanoseconds, the second chosen by trying: what a pair leads to is small, and far from all else
CHECK, LOOK_UP = 10.0, 1500.0
CONSIDERED = 6  # equality predicates of an entry of which pairs are made, the rarest


class Access(NamedTuple):
    """By entry: the places of its access predicates in `Entries.atom`; −1 for none."""

    first: Numbers
    second: Numbers


def choose_access(entries: Entries) -> Access:
    """Return the access predicates of each entry."""
    low, high = entries.hull
    equality = entries.is_hull & (low == high)
    likelihood = entries.likelihood()
    single, owner, first, second = list_candidates(
        entries.start, entries.atom, equality, likelihood, CONSIDERED
    )
    likely = likelihood[entries.atom]
    cost = np.where(single >= 0, CHECK * likely[single], 0.0) if len(likely) else single * 0.0
    pair_cost = CHECK * likely[first] * likely[second]
    scheme, look_up = _schemes(entries, first, second)
    order = np.argsort(scheme, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(scheme, minlength=len(look_up)))))
    gain = np.bincount(scheme, cost[owner] - pair_cost, len(look_up)) - look_up
    chosen = choose_pairs(np.argsort(-gain), starts, order, owner, pair_cost, look_up, cost)
    paired = np.flatnonzero(chosen >= 0)
    access = Access(single.copy(), np.full(len(entries), -1, np.int64))
    access.first[paired], access.second[paired] = first[chosen[paired]], second[chosen[paired]]
    return access


def _schemes(entries: Entries, first: Numbers, second: Numbers) -> tuple[Numbers, Shares]:
    """Return the number of each pair's attributes, and what a look into their table costs."""
    a, b = (entries.column[entries.atom[places]].astype(np.int64) for places in (first, second))
    present = entries.present()
    keys, scheme = np.unique(
        np.minimum(a, b) * len(present) + np.maximum(a, b), return_inverse=True
    )
    both = present[keys // len(present)] * present[keys % len(present)] if len(keys) else keys
    return scheme, LOOK_UP * both


class Clusters(NamedTuple):
    """The clusters, column by column.

    Cluster c has the entries `entry[start[c]:start[c + 1]]`, those with most predicates left
    first, and columns from `columns[c]` on: column j has the predicates `place[j]` to
    `place[j + 1]` of as many of its entries.
    """

    start: Any
    entry: Any
    columns: Any
    place: Any
    predicate: Any  # column, low and high


def make_clusters(entries: Entries) -> tuple[Clusters, Numbers]:
    """Return the clusters and their keys; the first has entries without an access predicate.

    With n = `entries.values`: value v alone has the key v − n, the values v < w together v·n + w.
    """
    access, count = choose_access(entries), entries.values
    values = entries.base[entries.column] + entries.hull[0]
    first, second = (
        np.where(places >= 0, values[entries.atom[places]], -1) if len(places) else places
        for places in access
    )
    pair = np.minimum(first, second) * count + np.maximum(first, second)
    keys = np.where(second >= 0, pair, np.where(first >= 0, first - count, -count - 1))
    known, member = np.unique(np.append(keys, -count - 1), return_inverse=True)
    left = np.ones(len(entries.atom), np.bool_)
    for places in access:
        left[places[places >= 0]] = False
    owner = np.repeat(np.arange(len(entries)), np.diff(entries.start))
    order = np.lexsort((entries.likelihood()[entries.atom], owner))
    atoms = entries.atom[order[left[order]]]
    starts = np.concatenate(([0], np.cumsum(left)))[entries.start]
    rows = np.lexsort((-np.diff(starts), member[:-1]))
    start = np.concatenate(([0], np.cumsum(np.bincount(member[:-1], minlength=len(known)))))
    records = np.stack([entries.column, *entries.hull], axis=1)
    return Clusters(start, rows, *lay_out_columns(start, rows, starts, atoms, records)), known


class Keys(NamedTuple):
    """The way from values to clusters.

    The cluster of value v by itself is `single[v]`; that of a pair of values is in a hash table,
    linear from a number's own place, whose size is a power of two. An attribute's partners, of
    greater number, are `partner[partners[c]:partners[c + 1]]`. −1 is no cluster.
    """

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
        extremes = tuple(np.zeros(columns, np.int32) for _ in range(2))
        first = np.zeros(columns, np.int64)
        passing = np.empty(max(1, int(np.diff(clusters.start).max(initial=0))), np.int64)
        return Layout(
            (*clusters, *keys, *narrow, *every),
            partial(
                look_up_events,
                keys,
                clusters,
                narrow,
                every,
                entries.base,
                (*extremes, first, passing),
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
