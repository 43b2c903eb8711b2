"""A bare kernel: conjunctions of intervals over small integers, and nothing else.

It is what a matcher costs that needs no types, no NULL, no OR, no patterns, no removed queries and
no parts: arrays in, int32 positions out. The layout is that of a study of the BE-Tree paper's
workload (clusters under the cheapest interval of each query, as packed rows or as a bitmap with a
row of bits for each value), so it is the yardstick for what `keyed` pays for the rest of the
language.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.rivals.kernels.bare import lay_out, match, place
from benchmarks.workloads.conjunctions import Conjunctions
from benchmarks.workloads.integer_events import IntegerEvents
from headgate.errors import QuerySetError

MAX_VALUES = 255  # of an attribute: its values, and its absence, are bytes


class BareIndex:
    """Intervals on attributes with the values 0 up to a cardinality.

    >>> from benchmarks.workloads import generate_range_queries
    >>> queries = generate_range_queries(50, seed=2)
    >>> offsets, positions = BareIndex(queries).match(queries.events(10, seed=3))
    >>> len(offsets), positions.dtype
    (11, dtype('int32'))
    """

    def __init__(self, queries: Conjunctions) -> None:
        if queries.cardinality > MAX_VALUES or len(queries.listed.predicate):
            raise QuerySetError("the bare kernel takes intervals over up to 255 values only")
        attributes, values = len(queries.stream.attributes), queries.cardinality
        self._values, self._attributes = values, attributes
        self._span = 1 << int(np.ceil(np.log2(values)))
        # how often an event satisfies an interval, if attributes are in events as in queries
        mentions = np.bincount(queries.attribute, minlength=attributes)
        low, high = queries.low.astype(np.int64), queries.high.astype(np.int64)
        cost = mentions[queries.attribute] * (high - low + 1.0)
        node, query, key = place(queries.offsets, queries.attribute, low, high, cost, self._span)
        order = np.argsort(node, kind="stable")
        node, query, key = node[order], query[order], key[order]
        heads, first = np.unique(node, return_index=True)
        self._parts = lay_out(
            np.append(first, len(node)),
            query,
            key,
            queries.offsets,
            queries.attribute,
            low,
            high,
            values,
            attributes,
        )
        # which nodes have a cluster, by levels of an attribute, as bits, and by number
        cluster_of = np.full(2 * self._span * attributes, -1, np.int32)
        cluster_of[heads] = np.arange(len(heads))
        padded = np.zeros((len(cluster_of) // 64 + 1) * 64, np.bool_)
        padded[heads] = True
        is_cluster = np.packbits(padded, bitorder="little").view(np.uint64)
        levels = np.zeros(attributes, np.uint64)
        _, exponent = np.frexp(heads % (2 * self._span))
        level = (self._span.bit_length() - exponent).astype(np.uint64)
        np.bitwise_or.at(levels, heads // (2 * self._span), np.uint64(1) << level)
        self._nodes = levels, is_cluster, cluster_of
        self._val = np.full(attributes, values, np.uint8)
        self._scratch = np.empty(64 * attributes, np.int64), np.empty(attributes, np.int64)
        self._out = np.empty(1 << 21, np.int32)

    @property
    def bytes(self) -> int:
        """The size of all arrays that matching reads."""
        return sum(array.nbytes for array in (*self._parts, *self._nodes))

    def match(self, events: IntegerEvents) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return the matches of events; they are valid until the next call."""
        offsets = np.empty(len(events) + 1, np.int64)
        while True:
            total = match(
                events.offsets,
                events.attribute,
                events.value,
                *self._nodes,
                *self._parts,
                self._span,
                self._values,
                self._val,
                *self._scratch,
                self._out,
                offsets,
            )
            if total >= 0:
                return offsets, self._out[:total]
            self._val[:] = self._values  # what the unfinished event left
            self._out = np.empty(2 * len(self._out), np.int32)
