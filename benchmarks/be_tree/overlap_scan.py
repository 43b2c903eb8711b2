"""The reference for events that are expressions: every predicate of every query is looked at.

The paper's stabbing subscription (section 3): a query matches where each of its predicates has a
value in common with the event's predicate on the same attribute.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import Conjunctions
from benchmarks.workloads.integer_events import Offsets
from benchmarks.workloads.operators import refuses
from headgate.errors import UsageError

WIDEST = 63  # values of an attribute, a bit for each

Masks = npt.NDArray[np.uint64]


class OverlapScan:
    """Queries on attributes of few values, as sets of bits; none is without a predicate.

    >>> from benchmarks.workloads import begen
    >>> queries = begen(200, seed=1)
    >>> offsets, positions = OverlapScan(queries).match(queries)
    >>> all(i in positions[offsets[i] : offsets[i + 1]] for i in range(200))
    True
    """

    def __init__(self, queries: Conjunctions) -> None:
        self._queries = queries
        self._masks = masks(queries)

    def match(self, events: Conjunctions) -> tuple[Offsets, npt.NDArray[np.int64]]:
        """Offsets and queries, as in `Matches`."""
        found = [np.empty(0, np.int64)]
        accepted = np.zeros(len(events.stream.attributes), np.uint64)
        theirs = masks(events)
        for start, stop in zip(events.offsets[:-1], events.offsets[1:], strict=True):
            attributes = events.attribute[start:stop]
            accepted[attributes] = theirs[start:stop]
            meets = (self._masks & accepted[self._queries.attribute]) != 0
            found.append(np.flatnonzero(np.logical_and.reduceat(meets, self._queries.offsets[:-1])))
            accepted[attributes] = 0
        return np.cumsum([len(part) for part in found]), np.concatenate(found)


def masks(queries: Conjunctions) -> Masks:
    """The values that each predicate accepts."""
    if queries.cardinality > WIDEST:
        raise UsageError(f"{queries.cardinality:,} values of an attribute; {WIDEST} is the most")
    found = _below(queries.high + 1) ^ _below(queries.low)
    if len(queries.listed.predicate):
        bits = np.uint64(1) << queries.listed.values.astype(np.uint64)
        lists = np.bitwise_or.reduceat(bits, queries.listed.offsets[:-1])
        found[queries.listed.predicate] = lists
    everything = _below(np.array(queries.cardinality))
    return np.where(refuses(queries.operator), everything & ~found, found)


def _below(value: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> Masks:
    """All values below one."""
    found: Masks = (np.uint64(1) << value.astype(np.uint64)) - np.uint64(1)
    return found
