"""Who matches in the experiments `match…`: each gives the matches of the first so many events.

What an index does is all on its clock: reading the Arrow table, the codes of its values, and
matching. That goes for the rivals of `benchmarks.rivals` too, which read events as Headgate's
own index does. NumPy alone gets the events as a matrix of integers that it need not look into any
further, which is in its favour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.harness.experiment import Answer
from benchmarks.matching.scan import checksum
from benchmarks.workloads import Conjunctions
from benchmarks.workloads.integer_events import ABSENT, Numbers, Offsets
from headgate.matching import Index

MatchedRows = tuple[Offsets, npt.NDArray[Any]]  # as in `Matches`; valid until the next
Matcher = Callable[[int], Iterator[MatchedRows]]


def match_by_index(index: Index, events: pa.Table, shift: int = 0) -> Matcher:
    """Match by an index under the protocol; the query at position p has the number p + shift."""

    def match(count: int) -> Iterator[MatchedRows]:
        for chunk in index.match_chunks(events.slice(0, count)):
            yield chunk.offsets, chunk.positions + shift if shift else chunk.positions

    return match


def match_by_numpy(queries: Conjunctions, events: Numbers) -> Matcher:
    """Match by hand: conditions on each attribute as columns, compared with an event's value.

    A loop over the queries, and columns of events, took half as long again.
    """
    # Predicates by attribute: those of attribute k are from first[k] up to first[k + 1], and
    # `query` has their owners.
    order = np.argsort(queries.attribute, kind="stable")
    attributes = np.arange(len(queries.stream.attributes) + 1)
    first = np.searchsorted(queries.attribute[order], attributes).tolist()
    needed = np.diff(queries.offsets)
    query = np.repeat(np.arange(len(queries)), needed)[order]
    low, high = queries.low[order], queries.high[order]

    def match(count: int) -> Iterator[MatchedRows]:
        for event in events[:count]:
            accepted = [np.empty(0, np.int64)]
            for attribute in np.flatnonzero(event != ABSENT).tolist():
                part, value = slice(first[attribute], first[attribute + 1]), event[attribute]
                accepted.append(query[part][(low[part] <= value) & (value <= high[part])])
            # A query matches where as many of its predicates hold as it has.
            counts = np.bincount(np.concatenate(accepted), minlength=len(needed))
            matches = np.flatnonzero(counts == needed)
            yield np.array([0, len(matches)]), matches

    return match


def summarise_matches(chunks: Iterable[MatchedRows]) -> Answer:
    """Return how many queries each event satisfies, and a sum over which."""
    sums: list[object] = []
    for offsets, positions in chunks:
        for start, stop in pairwise(offsets.tolist()):
            numbers = np.full(stop - start, len(sums))
            sums.append(checksum((numbers, positions[start:stop])))
    return tuple(sums)


def count_matches(chunks: Iterable[MatchedRows]) -> int:
    """Return the number of matches."""
    return sum(len(positions) for _, positions in chunks)
