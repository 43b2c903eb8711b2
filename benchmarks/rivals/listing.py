"""Enumeration: a predicate is listed under every value that it accepts (Whang et al. 2009).

The BE-Tree paper adds it to SIFT, the k-index and APP, so that they take ranges (section 8.3), and
finds that memory grows with the width of the ranges (section 8.6.4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.entries import Entries, Numbers
from headgate.errors import ExpansionTooLarge
from headgate.jit import kernel

MOST = 1 << 30  # entries of all lists, four bytes each


class Lists(NamedTuple):
    """Value v is accepted by `entry[start[v]:start[v + 1]]`, which ascend."""

    start: Any
    entry: Any


def lists_of(
    entries: Entries, chosen: npt.NDArray[np.bool_] | None = None, order: Numbers | None = None
) -> Lists:
    """The lists of all values, or of some predicates only; entry `order[n]` is listed as n.

    Lists that would not fit are declined before they are written.
    """
    width = entries.width[entries.atom]
    if chosen is None:
        chosen = np.ones(len(width), np.bool_)
    if order is None:
        order = np.arange(len(entries))
    size = int(width[chosen].sum())
    if size > MOST:
        raise ExpansionTooLarge(f"lists of {size:,} entries, over the cap of {MOST:,}")
    return Lists(*listed(entries, chosen, order))


@kernel
def listed(entries, chosen, order):
    start = np.zeros(entries.base[-1] + 1, np.int64)
    for k in range(len(entries.atom)):
        if chosen[k]:
            a = entries.atom[k]
            base = entries.base[entries.column[a]]
            for i in range(entries.interval[a], entries.interval[a + 1]):
                for value in range(base + entries.low[i], base + entries.high[i] + 1):
                    start[value + 1] += 1
    for value in range(len(start) - 1):
        start[value + 1] += start[value]
    used = start[:-1].copy()
    entry = np.empty(start[-1], np.int32)
    for n in range(len(order)):
        for k in range(entries.start[order[n]], entries.start[order[n] + 1]):
            if chosen[k]:
                a = entries.atom[k]
                base = entries.base[entries.column[a]]
                for i in range(entries.interval[a], entries.interval[a + 1]):
                    for value in range(base + entries.low[i], base + entries.high[i] + 1):
                        entry[used[value]] = n
                        used[value] += 1
    return start, entry
