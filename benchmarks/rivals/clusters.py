"""The clusters of Propagation: entries that are found together, their predicates by column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.rivals.access import access_of
from benchmarks.rivals.entries import Entries, Numbers
from headgate.jit import kernel


class Clusters(NamedTuple):
    """Cluster c has the entries `entry[start[c]:start[c + 1]]`, those with most predicates left
    first, and columns from `columns[c]` on: column j has the predicates `place[j]` to
    `place[j + 1]` of as many of its entries."""

    start: Any
    entry: Any
    columns: Any
    place: Any
    predicate: Any  # column, low and high


def clustered(entries: Entries) -> tuple[Clusters, Numbers]:
    """The clusters, and the key of each; the first is that of entries without an access predicate.

    With n = `entries.values`: value v alone has the key v − n, the values v < w together v·n + w.
    """
    access, count = access_of(entries), entries.values
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
    return Clusters(start, rows, *columns_of(start, rows, starts, atoms, records)), known


@kernel
def columns_of(start, rows, starts, atoms, records):
    """The predicates that are left of each cluster's entries, by their place in the entry."""
    clusters = len(start) - 1
    columns = np.zeros(clusters + 1, np.int64)
    for c in range(clusters):
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
