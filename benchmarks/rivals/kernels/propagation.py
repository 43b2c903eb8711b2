"""Kernels of Propagation: choose access predicates, lay out clusters, look events up.

Entries, predicates and values are numbered as in `entries.Entries`.
"""

from __future__ import annotations

import numpy as np

from headgate.jit import inlined_kernel, kernel

NO_KEY = np.uint64((1 << 64) - 1)


@inlined_kernel
def slot_of(key, size):
    """Return the home slot of a key in a table whose size is a power of two."""
    return ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - np.uint64(1))


@kernel
def hash_keys(keys, clusters, size):
    """Return a hash table with linear probing: the key in each slot, and its cluster."""
    key, cluster = np.full(size, NO_KEY, np.uint64), np.full(size, -1, np.int32)
    for i in range(len(keys)):
        at = slot_of(keys[i], np.uint64(size))
        # at most half of the slots are taken, so that a free one is near
        while key[at] != NO_KEY:
            at = (at + np.uint64(1)) & np.uint64(size - 1)
        key[at], cluster[at] = keys[i], clusters[i]
    return key, cluster


@kernel
def look_up_events(keys, clusters, narrow, every, base, scratch, events, row, stop, out, offsets):
    """Append the entries that match each event; return the first event that was not tried.

    `scratch` has, by column, the least and greatest code of the event and where it stands, and
    space for the rows of a cluster.
    """
    least, most, first, passing = scratch
    size, count = np.uint64(len(keys.key)), np.uint64(base[-1])
    used = 0
    e = row
    while e < stop and len(out) - used >= len(clusters.entry):
        begin, end = events.start[e], events.start[e + 1]
        # an event that is a row has one code a column: then intervals are tested exactly
        exact = True
        for i in range(begin, end):
            c = events.column[i]
            exact &= most[c] == 0
            if most[c] == 0:
                least[c], first[c] = events.low[i], i
            most[c] = events.high[i]
        # cluster 0 has the entries without an equality predicate
        reached = check_cluster(clusters, 0, least, most, passing, out, used)
        for i in range(begin, end):
            c = events.column[i]
            for value in range(base[c] + events.low[i], base[c] + events.high[i] + 1):
                cluster = keys.single[value]
                if cluster >= 0:
                    reached = check_cluster(clusters, cluster, least, most, passing, out, reached)
            # pairs with the attributes of greater number
            for p in range(keys.partners[c], keys.partners[c + 1]):
                d = keys.partner[p]
                j = first[d] if most[d] > 0 else end
                while j < end and events.column[j] == d:
                    for value in range(base[c] + events.low[i], base[c] + events.high[i] + 1):
                        for other in range(base[d] + events.low[j], base[d] + events.high[j] + 1):
                            key = np.uint64(value) * count + np.uint64(other)
                            at = slot_of(key, size)
                            while keys.key[at] != NO_KEY and keys.key[at] != key:
                                at = (at + np.uint64(1)) & (size - np.uint64(1))
                            if keys.key[at] == key:
                                cluster = keys.cluster[at]
                                reached = check_cluster(
                                    clusters, cluster, least, most, passing, out, reached
                                )
                    j += 1
        if exact:
            used = keep_exact(narrow, first, events, end, out, used, reached)
        else:
            used = keep_exact(every, first, events, end, out, used, reached)
        for i in range(begin, end):
            least[events.column[i]] = most[events.column[i]] = 0
        e += 1
        offsets[e - row] = used
    return e


@kernel
def check_cluster(clusters, cluster, least, most, passing, out, used):
    """Append the entries of a cluster for which their remaining intervals hold."""
    entry, columns, places = clusters.entry, clusters.columns, clusters.place
    predicate = clusters.predicate
    start = clusters.start[cluster]
    rows = clusters.start[cluster + 1] - start
    left = -1  # rows that passed; all of them at first
    for column in range(columns[cluster], columns[cluster + 1]):
        place = np.uint64(places[column])
        entries_here = places[column + 1] - places[column]
        passed = 0
        if left < 0:
            # entries have fewer predicates the farther back they stand: these have none left
            for r in range(entries_here, rows):
                out[used] = entry[start + r]
                used += 1
            for r in range(np.uint64(entries_here)):
                passing[passed] = r
                c = np.uint32(predicate[place + r, 0])
                low, high = predicate[place + r, 1], predicate[place + r, 2]
                passed += (low <= most[c]) & (least[c] <= high)
        else:
            # of those that passed, the ones that have no predicate in this column
            while left > 0 and passing[left - 1] >= entries_here:
                left -= 1
                out[used] = entry[start + passing[left]]
                used += 1
            for i in range(left):
                r = np.uint64(passing[i])
                passing[passed] = r
                c = np.uint32(predicate[place + r, 0])
                low, high = predicate[place + r, 1], predicate[place + r, 2]
                passed += (low <= most[c]) & (least[c] <= high)
        left = passed
    for i in range(rows if left < 0 else left):
        out[used] = entry[start + (i if left < 0 else passing[i])]
        used += 1
    return used


@kernel
def keep_exact(spelt_out, first, events, end, out, used, reached):
    """Keep of `out[used:reached]` the entries whose spelt-out intervals hold as well."""
    starts, records = spelt_out
    column, low, high = events.column, events.low, events.high
    for n in range(used, reached):
        k, stop = np.uint64(starts[out[n]]), np.uint64(starts[out[n] + 1])
        holds = True
        while holds and k < stop:
            c = records[k, 0]
            # the intervals of one predicate lie together, and one of them must hold
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


@kernel
def list_candidates(start, atom, equality, likelihood, considered):
    """Return the rarest equality predicate of each entry, and all pairs of its rarest few."""
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
                # insertion into the few rarest so far, which ascend by likelihood
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
def choose_pairs(schemes, starts, order, owner, pair_cost, look_up, cost):
    """Return the pair that leads to each entry, or −1; `cost` becomes what entries cost then."""
    chosen = np.full(len(cost), -1, np.int64)
    for scheme in schemes:
        gain = -look_up[scheme]
        for i in range(starts[scheme], starts[scheme + 1]):
            pair = order[i]
            gain += max(0.0, cost[owner[pair]] - pair_cost[pair])
        # a scheme is taken where it saves more than a look-up into its table costs
        if gain > 0:
            for i in range(starts[scheme], starts[scheme + 1]):
                pair = order[i]
                if pair_cost[pair] < cost[owner[pair]]:
                    cost[owner[pair]] = pair_cost[pair]
                    chosen[owner[pair]] = pair
    return chosen


@kernel
def lay_out_columns(start, rows, starts, atoms, records):
    """Lay out the remaining predicates of each cluster by their place in the entry.

    Returns the first column of each cluster, the first predicate of each column, and predicates.
    """
    clusters = len(start) - 1
    columns = np.zeros(clusters + 1, np.int64)
    for c in range(clusters):
        # the first entry of a cluster has the most predicates left
        deepest = 0
        if start[c] < start[c + 1]:
            deepest = starts[rows[start[c]] + 1] - starts[rows[start[c]]]
        columns[c + 1] = columns[c] + deepest
    place = np.zeros(columns[-1] + 1, np.int64)
    predicate = np.empty((len(atoms), 3), np.int32)
    used = 0
    for c in range(clusters):
        for j in range(columns[c + 1] - columns[c]):
            for r in range(start[c], start[c + 1]):
                k = starts[rows[r]] + j
                if k >= starts[rows[r] + 1]:
                    break
                predicate[used] = records[atoms[k]]
                used += 1
            place[columns[c] + j + 1] = used
    return columns, place, predicate
