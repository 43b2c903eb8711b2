"""Gryphon (Aguilera et al. 1999, "Matching events in a content-based subscription system").

The generic form: at a node, each distinct predicate on its attribute is an edge, and each edge is
tested. Attributes are tested in one order, the same on every way down: here the one that fewest
queries ask for comes first. Beginning with the most popular ones was as fast on a uniform workload,
and took six times as long where attributes follow Zipf's law.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.rivals.entries import Entries
from benchmarks.rivals.kernels.gryphon import arrange_intervals, walk_intervals, walk_predicates
from benchmarks.rivals.static_index import Layout, StaticIndex
from benchmarks.rivals.tree import Packed, build_tree, make_empty_codes


class GryphonIndex(StaticIndex):
    """Walks a tree that tests one attribute after the other.

    >>> from benchmarks.workloads import generate_range_queries
    >>> queries = generate_range_queries(1, seed=2)
    >>> index = GryphonIndex.from_encoded(queries.stream, queries.encode())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "gryphon"
    title = "Gryphon"
    how = "below the edges of its predicates in a tree, which an event walks down as they hold"

    def _lay_out(self, entries: Entries) -> Layout:
        order = np.lexsort((entries.column, entries.predicate_counts[entries.column]))
        label = np.empty(len(order), np.int64)
        label[order] = np.arange(len(order))
        column = entries.column[order].astype(np.int64)
        tree = build_tree(entries, label[entries.atom], column)
        low, high = (ends[order] for ends in entries.hull)
        atom = np.where(entries.is_hull[order], -1, order).astype(np.int32)
        packed = Packed.of(tree, low, high, atom)
        tail = np.stack([column, low, high, atom], axis=1)[tree.tail].astype(np.int32)
        exact = (entries.interval, entries.low, entries.high)
        scratch = make_empty_codes(entries), np.empty(len(tree.groups), np.int64)
        return Layout(
            (*packed, tail, *exact),
            partial(walk_predicates, packed, tail, exact, scratch, len(entries)),
        )


# Advanced Gryphon (ADGR): Gryphon's tree over intervals, where covering prunes.
#
# Each predicate becomes an interval by Table I of the BE-Tree paper: `<>` and NOT IN the whole
# domain, IN what lies between its ends. More entries share an edge then, and the edges of a node
# that an event takes are found without testing all of them: single values by halving; intervals
# in the order of their lower ends, a covering one before those that it covers, so that where it
# fails they are skipped. An entry with a predicate that is narrower than its interval is checked
# at last.
#
# A domain is what the queries tell apart: `<>` of its least value leaves that out. Attributes are
# tested in the order of `gryphon`.


class AdvancedGryphonIndex(StaticIndex):
    """Walks a tree of intervals, one attribute after the other.

    >>> from benchmarks.workloads import generate_range_queries
    >>> queries = generate_range_queries(1, seed=2)
    >>> index = AdvancedGryphonIndex.from_encoded(queries.stream, queries.encode())
    >>> index.match([{"a6": 64, "a7": 21, "a10": 0, "a18": 30}]).ids().to_pylist()
    [['q0']]
    """

    kind = "advanced-gryphon"
    title = "Advanced Gryphon"
    how = "below the edges of its intervals in a tree, which an event walks down as they hold"

    def _lay_out(self, entries: Entries) -> Layout:
        low, high = (ends.astype(np.int64) for ends in entries.hull)
        keys = np.stack(
            [entries.predicate_counts[entries.column], entries.column, low != high, low, -high]
        )
        labels, label = np.unique(keys, axis=1, return_inverse=True)
        _, column, _, low, high = labels
        high = -high
        tree = build_tree(entries, label.reshape(-1)[entries.atom], column)
        packed = Packed.of(tree, low, high)
        tail = np.stack([column, low, high], axis=1)[tree.tail].astype(np.int32)
        arrangement = arrange_intervals(tree.edges, low[tree.label], high[tree.label])
        narrow = entries.list_intervals(entries.narrow)
        scratch = make_empty_codes(entries), np.empty(len(tree.groups), np.int64)
        return Layout(
            (*packed, tail, *arrangement, *narrow),
            partial(walk_intervals, packed, tail, arrangement, narrow, scratch),
        )
