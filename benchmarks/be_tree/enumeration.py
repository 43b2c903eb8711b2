"""How long the lists get of those who list a query under every value that it accepts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.workloads import Conjunctions
from benchmarks.workloads.operators import refuses


def enumerated(queries: Conjunctions) -> int:
    """The entries in all lists, where values that no query tells apart are one.

    Values that are listed count one by one, also where they are refused, which is too few.

    >>> from benchmarks.workloads import begen
    >>> [enumerated(begen(1_000, cardinality=n, seed=1)) // 1_000 for n in (10, 100, 10_000)]
    [28, 72, 88]
    """
    found = int(np.diff(queries.listed.offsets).sum())
    plain = np.ones(len(queries.attribute), np.bool_)
    plain[queries.listed.predicate] = False
    plain &= ~refuses(queries.operator)
    order = np.argsort(queries.attribute, kind="stable")
    attributes = np.arange(len(queries.stream.attributes) + 1)
    ends = np.searchsorted(queries.attribute[order], attributes).tolist()
    for start, stop in pairwise(ends):
        own = order[start:stop]
        low, after = queries.low[own], queries.high[own] + 1
        cuts = np.unique(np.concatenate((low, after)))
        regions = np.searchsorted(cuts, after) - np.searchsorted(cuts, low)
        found += int(regions[plain[own]].sum())
    return found
