"""Rivals that count predicates, SIFT and APP, over lists of the values that predicates accept.

Enumeration: a predicate is listed under every value that it accepts (Whang et al. 2009).

The BE-Tree paper adds it to SIFT, the k-index and APP, so that they take ranges (section 8.3), and
finds that memory grows with the width of the ranges (section 8.6.4).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.entries import Entries, Numbers
from benchmarks.rivals.kernels.counting import (
    BLOCK,
    fill_lists,
    mark_rarest,
    match_by_counting,
    match_by_steps,
    match_opened,
)
from benchmarks.rivals.static_index import Layout, StaticIndex
from headgate.errors import ExpansionTooLarge, QuerySetError

MAX_LISTED = 1 << 30  # entries of all lists, four bytes each
# predicates of a query; no counter of one byte reaches it, so it also stands where no query is
MAX_PREDICATES = 255


class Lists(NamedTuple):
    """Value v is accepted by `entry[start[v]:start[v + 1]]`, which ascend."""

    start: Any
    entry: Any


def make_lists(
    entries: Entries, chosen: npt.NDArray[np.bool_] | None = None, order: Numbers | None = None
) -> Lists:
    """Return the lists of all values, or of some predicates only; entry `order[n]` is listed as n.

    Lists that would not fit are declined before they are written.
    """
    width = entries.width[entries.atom]
    if chosen is None:
        chosen = np.ones(len(width), np.bool_)
    if order is None:
        order = np.arange(len(entries))
    size = int(width[chosen].sum())
    if size > MAX_LISTED:
        raise ExpansionTooLarge(f"lists of {size:,} entries, over the cap of {MAX_LISTED:,}")
    return Lists(*fill_lists(entries, chosen, order))


# SIFT: counting (Yan and García-Molina 1994, "Index structures for selective dissemination of
# information under the Boolean model"), with ranges enumerated.
#
# For each attribute and value there is a list of the entries with a predicate that accepts it. An
# event counts up the entries in the lists of its own values; one whose count reaches the number
# of its predicates matches. `<>` and NOT IN are enumerated too, so an absent attribute fails
# them.
#
# `SiftIndex` is as fast as we could make it: counters of one byte, which are compared and cleared
# in vector registers. Going through the lists once more to compare and clear only what was
# touched, counters that carry the event's number, and a test after each step up were slower, by
# 25 % to 280 %.


class SiftIndex(StaticIndex):
    """Counts the predicates that hold, for all queries at once.

    Memory: four bytes for each value that each predicate accepts.

    >>> from benchmarks.workloads import generate_range_queries
    >>> queries = generate_range_queries(1, seed=2)
    >>> next(queries.where_clauses())
    'a6 >= 64 AND a7 <= 21 AND a10 <= 31 AND a18 BETWEEN 20 AND 57'
    >>> index = SiftIndex.from_encoded(queries.stream, queries.encode())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "sift"
    title = "SIFT"
    how = "listed under every value that one of its predicates accepts, and counted"

    def _lay_out(self, entries: Entries) -> Layout:
        lists, needed = make_lists(entries), count_needed(entries)
        counters = np.zeros(len(needed), np.uint8)
        match = partial(match_by_counting, lists, entries.base, needed, counters, len(entries))
        return Layout((*lists, needed), match)


class SiftByStepsIndex(SiftIndex):
    """The same as the paper tells it: each step up is followed by a test.

    A counter that was last used for another event begins at 0.
    """

    kind = "sift-by-steps"

    def _lay_out(self, entries: Entries) -> Layout:
        lists, needed = make_lists(entries), count_needed(entries)
        count = np.zeros(len(needed), np.int32)
        last = np.zeros(len(needed), np.int64)
        clock = np.zeros(1, np.int64)
        counting = (count, last, clock)
        match = partial(match_by_steps, lists, entries.base, needed, counting, len(entries))
        return Layout((*lists, needed), match)


def count_needed(entries: Entries) -> npt.NDArray[np.uint8]:
    """Return the number of predicates of each entry, in whole blocks."""
    sizes = np.diff(entries.start)
    if sizes.max(initial=0) >= MAX_PREDICATES:
        raise QuerySetError(f"a query has {MAX_PREDICATES} predicates or more; SIFT counts fewer")
    needed = np.full(-(-len(entries) // BLOCK) * BLOCK, MAX_PREDICATES, np.uint8)
    needed[: len(entries)] = sizes
    return needed


# APP: access predicate pruning (Farroukh et al. 2011), with ranges enumerated.
#
# Counting as in SIFT, but each entry has an access predicate, its rarest. An event first opens
# the entries whose access predicate it satisfies; in the lists of all other predicates, only
# entries that are open are counted.


class AppIndex(StaticIndex):
    """Counts the predicates that hold, for queries whose rarest one does.

    Memory: four bytes for each value that each predicate accepts.

    >>> from benchmarks.workloads import generate_range_queries
    >>> queries = generate_range_queries(1, seed=2)
    >>> index = AppIndex.from_encoded(queries.stream, queries.encode())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "app"
    title = "APP"
    how = "counted once its rarest predicate holds"

    def _lay_out(self, entries: Entries) -> Layout:
        access = mark_rarest(entries.start, entries.atom, entries.likelihood())
        first, others = make_lists(entries, access), make_lists(entries, ~access)
        needed = np.diff(entries.start).astype(np.int32)
        left = np.zeros(len(entries), np.int32)
        arrays = (*first, *others, needed)
        return Layout(arrays, partial(match_opened, first, others, entries.base, needed, left))
