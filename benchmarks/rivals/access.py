"""Which equality predicates lead to a query in Propagation: one of them, or a pair.

An entry is found where its access predicate holds. The rarer that is, the less often the rest of
the entry is checked; but for each pair of attributes that is used, an event which has both looks
into a hash table. So pairs of attributes are taken greedily, as long as they save more than they
cost, in the manner of Fabret et al. 2001 and with our own estimates of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.rivals.entries import Entries, Numbers, Shares
from headgate.jit import kernel

# nanoseconds, the second chosen by trying: what a pair leads to is small, and far from all else
CHECK, LOOK_UP = 10.0, 1500.0
CONSIDERED = 6  # equality predicates of an entry of which pairs are made, the rarest


class Access(NamedTuple):
    """By entry: the places of its access predicates in `Entries.atom`; −1 for none."""

    first: Numbers
    second: Numbers


def access_of(entries: Entries) -> Access:
    """The access predicates of each entry."""
    low, high = entries.hull
    equality = entries.is_hull & (low == high)
    likelihood = entries.likelihood()
    single, owner, first, second = candidates(
        entries.start, entries.atom, equality, likelihood, CONSIDERED
    )
    likely = likelihood[entries.atom]
    cost = np.where(single >= 0, CHECK * likely[single], 0.0) if len(likely) else single * 0.0
    pair_cost = CHECK * likely[first] * likely[second]
    scheme, look_up = _schemes(entries, first, second)
    order = np.argsort(scheme, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(scheme, minlength=len(look_up)))))
    gain = np.bincount(scheme, cost[owner] - pair_cost, len(look_up)) - look_up
    chosen = choose(np.argsort(-gain), starts, order, owner, pair_cost, look_up, cost)
    paired = np.flatnonzero(chosen >= 0)
    access = Access(single.copy(), np.full(len(entries), -1, np.int64))
    access.first[paired], access.second[paired] = first[chosen[paired]], second[chosen[paired]]
    return access


def _schemes(entries: Entries, first: Numbers, second: Numbers) -> tuple[Numbers, Shares]:
    """The number of each pair's attributes, and what looking into their table costs an event."""
    a, b = (entries.column[entries.atom[places]].astype(np.int64) for places in (first, second))
    present = entries.present()
    keys, scheme = np.unique(
        np.minimum(a, b) * len(present) + np.maximum(a, b), return_inverse=True
    )
    both = present[keys // len(present)] * present[keys % len(present)] if len(keys) else keys
    return scheme, LOOK_UP * both


@kernel
def candidates(start, atom, equality, likelihood, considered):
    """The rarest equality predicate of each entry; and all pairs of the rarest few, by entry."""
    entries = len(start) - 1
    single = np.full(entries, -1, np.int64)
    most = entries * (considered * (considered - 1) // 2)
    owner, first, second = (
        np.empty(most, np.int32),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    rarest = np.empty(considered, np.int64)
    pairs = 0
    for e in range(entries):
        count = 0
        for k in range(start[e], start[e + 1]):
            if equality[atom[k]]:
                at = count
                while at > 0 and likelihood[atom[rarest[at - 1]]] > likelihood[atom[k]]:
                    if at < considered:
                        rarest[at] = rarest[at - 1]
                    at -= 1
                if at < considered:
                    rarest[at] = k
                count = min(count + 1, considered)
        if count > 0:
            single[e] = rarest[0]
        for i in range(count):
            for j in range(i + 1, count):
                owner[pairs], first[pairs], second[pairs] = e, rarest[i], rarest[j]
                pairs += 1
    return single, owner[:pairs], first[:pairs], second[:pairs]


@kernel
def choose(schemes, starts, order, owner, pair_cost, look_up, cost):
    """By entry the pair that leads to it, or −1; `cost` becomes what the entries cost then."""
    chosen = np.full(len(cost), -1, np.int64)
    for scheme in schemes:
        gain = -look_up[scheme]
        for i in range(starts[scheme], starts[scheme + 1]):
            pair = order[i]
            gain += max(0.0, cost[owner[pair]] - pair_cost[pair])
        if gain > 0:
            for i in range(starts[scheme], starts[scheme + 1]):
                pair = order[i]
                if pair_cost[pair] < cost[owner[pair]]:
                    cost[owner[pair]] = pair_cost[pair]
                    chosen[owner[pair]] = pair
    return chosen
