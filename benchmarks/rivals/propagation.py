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

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rivals.clusters import clustered
from benchmarks.rivals.entries import Entries, Numbers
from benchmarks.rivals.expressions import expression_events
from benchmarks.rivals.static import Filed, StaticIndex
from headgate.jit import inlined_kernel, kernel
from headgate.matching.matches import Matches, RowMatches, concatenate_matches
from headgate.predicate import Predicate

NO_KEY = np.uint64((1 << 64) - 1)


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

    >>> from benchmarks.workloads import range_queries
    >>> queries = range_queries(1, seed=2)
    >>> index = PropagationIndex.from_encoded(queries.stream, queries.encoded())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "propagation"
    title = "Propagation"
    how = "by one or two of its equality predicates; without any it is looked at for every event"

    def match_ranges(self, expressions: Iterable[Predicate]) -> Matches:
        """The matches of events that are conjunctions themselves (stabbing subscription).

        A query is found when each of its predicates shares a value with the event's predicate on
        the same attribute; a query with OR, when that holds for one of its conjunctions.
        """
        built = self._ready()
        found = built.found(expression_events(expressions, built.book))
        return concatenate_matches([self._matches(piece) for piece in found], self._ids)

    def _matches(self, found: RowMatches) -> Matches:
        return Matches(found.offsets, found.positions, self._ids, first=found.row)

    def _file(self, entries: Entries) -> Filed:
        clusters, known = clustered(entries)
        keys = keys_of(known, entries)
        narrow = entries.spelt_out(entries.narrow)
        every = entries.spelt_out(np.ones(len(entries.atom), np.bool_))
        columns = len(entries.greatest)
        room = tuple(np.zeros(columns, np.int32) for _ in range(2))
        first = np.zeros(columns, np.int64)
        kept = np.empty(max(1, int(np.diff(clusters.start).max(initial=0))), np.int64)
        return Filed(
            (*clusters, *keys, *narrow, *every),
            partial(looked_up, keys, clusters, narrow, every, entries.base, (*room, first, kept)),
        )


def keys_of(known: Numbers, entries: Entries) -> Keys:
    """The keys of clusters, by value and by pair of values."""
    count = entries.values
    single = np.full(entries.values, -1, np.int32)
    alone = np.flatnonzero((known < 0) & (known > -count - 1))
    single[known[alone] + count] = alone
    pairs = np.flatnonzero(known >= 0)
    a, b = (
        np.searchsorted(entries.base, numbers, side="right") - 1
        for numbers in (known[pairs] // count, known[pairs] % count)
    )
    schemes = np.unique(np.stack([a, b], axis=1), axis=0)
    columns = len(entries.greatest)
    partners = np.concatenate(([0], np.cumsum(np.bincount(schemes[:, 0], minlength=columns))))
    size = 1 << max(1, (2 * len(pairs)).bit_length())
    table = hashed(known[pairs].astype(np.uint64), pairs, size)
    return Keys(single, partners, schemes[:, 1].astype(np.int32), *table)


@inlined_kernel
def place_of(key, size):
    return ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - np.uint64(1))


@kernel
def hashed(keys, clusters, size):
    key, cluster = np.full(size, NO_KEY, np.uint64), np.full(size, -1, np.int32)
    for i in range(len(keys)):
        at = place_of(keys[i], np.uint64(size))
        while key[at] != NO_KEY:
            at = (at + np.uint64(1)) & np.uint64(size - 1)
        key[at], cluster[at] = keys[i], clusters[i]
    return key, cluster


@kernel
def looked_up(keys, clusters, narrow, every, base, room, events, row, stop, out, offsets):
    least, most, first, kept = room
    size, count = np.uint64(len(keys.key)), np.uint64(base[-1])
    used = 0
    e = row
    while e < stop and len(out) - used >= len(clusters.entry):
        begin, end = events.start[e], events.start[e + 1]
        exact = True
        for i in range(begin, end):
            c = events.column[i]
            exact &= most[c] == 0
            if most[c] == 0:
                least[c], first[c] = events.low[i], i
            most[c] = events.high[i]
        found = checked(clusters, 0, least, most, kept, out, used)
        for i in range(begin, end):
            c = events.column[i]
            for value in range(base[c] + events.low[i], base[c] + events.high[i] + 1):
                cluster = keys.single[value]
                if cluster >= 0:
                    found = checked(clusters, cluster, least, most, kept, out, found)
            for p in range(keys.partners[c], keys.partners[c + 1]):
                d = keys.partner[p]
                j = first[d] if most[d] > 0 else end
                while j < end and events.column[j] == d:
                    for value in range(base[c] + events.low[i], base[c] + events.high[i] + 1):
                        for other in range(base[d] + events.low[j], base[d] + events.high[j] + 1):
                            key = np.uint64(value) * count + np.uint64(other)
                            at = place_of(key, size)
                            while keys.key[at] != NO_KEY and keys.key[at] != key:
                                at = (at + np.uint64(1)) & (size - np.uint64(1))
                            if keys.key[at] == key:
                                cluster = keys.cluster[at]
                                found = checked(clusters, cluster, least, most, kept, out, found)
                    j += 1
        if exact:
            used = kept_of(narrow, first, events, end, out, used, found)
        else:
            used = kept_of(every, first, events, end, out, used, found)
        for i in range(begin, end):
            least[events.column[i]] = most[events.column[i]] = 0
        e += 1
        offsets[e - row] = used
    return e


@kernel
def checked(clusters, cluster, least, most, kept, out, used):
    """Append the entries of a cluster for which the intervals hold that are left of them."""
    entry, columns, places = clusters.entry, clusters.columns, clusters.place
    predicate = clusters.predicate
    start = clusters.start[cluster]
    rows = clusters.start[cluster + 1] - start
    left = -1  # rows that passed; all of them at first
    for column in range(columns[cluster], columns[cluster + 1]):
        place = np.uint64(places[column])
        here = places[column + 1] - places[column]
        passed = 0
        if left < 0:
            for r in range(here, rows):
                out[used] = entry[start + r]
                used += 1
            for r in range(np.uint64(here)):
                kept[passed] = r
                c = np.uint32(predicate[place + r, 0])
                low, high = predicate[place + r, 1], predicate[place + r, 2]
                passed += (low <= most[c]) & (least[c] <= high)
        else:
            while left > 0 and kept[left - 1] >= here:
                left -= 1
                out[used] = entry[start + kept[left]]
                used += 1
            for i in range(left):
                r = np.uint64(kept[i])
                kept[passed] = r
                c = np.uint32(predicate[place + r, 0])
                low, high = predicate[place + r, 1], predicate[place + r, 2]
                passed += (low <= most[c]) & (least[c] <= high)
        left = passed
    for i in range(rows if left < 0 else left):
        out[used] = entry[start + (i if left < 0 else kept[i])]
        used += 1
    return used


@kernel
def kept_of(spelt_out, first, events, end, out, used, found):
    """Of the entries found, those of which the intervals that are spelt out hold as well."""
    starts, records = spelt_out
    column, low, high = events.column, events.low, events.high
    for n in range(used, found):
        k, stop = np.uint64(starts[out[n]]), np.uint64(starts[out[n] + 1])
        holds = True
        while holds and k < stop:
            c = records[k, 0]
            holds = False
            while k < stop and records[k, 0] == c:
                j = first[c]
                while j < end and column[j] == c:
                    holds |= (records[k, 1] <= high[j]) & (low[j] <= records[k, 2])
                    j += 1
                k += np.uint64(1)
        out[used] = out[n]
        used += holds
    return used
