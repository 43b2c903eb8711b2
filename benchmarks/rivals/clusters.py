"""The clusters of Propagation: entries that are found together, their predicates by column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.rivals.entries import Entries, Numbers, Shares
from benchmarks.rivals.kernels.propagation import choose_pairs, lay_out_columns, list_candidates

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
    """Cluster c has the entries `entry[start[c]:start[c + 1]]`, those with most predicates left
    first, and columns from `columns[c]` on: column j has the predicates `place[j]` to
    `place[j + 1]` of as many of its entries."""

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
    one, other = (
        np.where(places >= 0, values[entries.atom[places]], -1) if len(places) else places
        for places in access
    )
    pair = np.minimum(one, other) * count + np.maximum(one, other)
    keys = np.where(other >= 0, pair, np.where(one >= 0, one - count, -count - 1))
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
