"""Query and stream predicates in one space, and which pairs of them are matched.

As in section 6.2 of "Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing"
there are 60 query and 20 stream predicates; of their 1,200 pairs some are enough to take a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.workloads import DisjunctionSpec, generate_disjunctions, place_in_one_space
from headgate.implication.space import Boxes, Space
from headgate.predicate import Predicate
from headgate.schema import Stream

QUERIES, STREAMS = 60, 20
ALL_PAIRS = QUERIES * STREAMS


@dataclass(frozen=True, eq=False)
class Pairs:
    """Predicates, their boxes in one space, and the chosen pairs by number."""

    stream: Stream
    space: Space
    predicates: tuple[tuple[Predicate, ...], tuple[Predicate, ...]]
    queries: list[Boxes]
    streams: list[Boxes]
    chosen: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.chosen)

    def __iter__(self) -> Iterator[tuple[Boxes, Boxes]]:
        return ((self.queries[query], self.streams[stream]) for query, stream in self.chosen)

    def as_predicates(self) -> Iterator[tuple[Predicate, Predicate]]:
        queries, streams = self.predicates
        return ((queries[query], streams[stream]) for query, stream in self.chosen)


@dataclass(frozen=True, slots=True)
class Setting:
    """The numbers of dimensions and boxes, by default the paper's."""

    dimensions: int = 6
    query_boxes: int = 2
    stream_boxes: int = 20
    unbounded: bool = False
    nulls: float = 0.0

    def pairs(self, count: int = ALL_PAIRS, *, seed: int) -> Pairs:
        """Return so many pairs of 1,200, chosen at random."""
        theirs = DisjunctionSpec(
            self.stream_boxes, self.dimensions, unbounded=self.unbounded, nulls=self.nulls
        )
        ours = replace(theirs, boxes=self.query_boxes, ends="normal")
        queries = generate_disjunctions(QUERIES, ours, seed=2 * seed)
        streams = generate_disjunctions(STREAMS, theirs, seed=2 * seed + 1)
        space, (query_boxes, stream_boxes) = place_in_one_space(ours.stream, queries, streams)
        order = np.random.default_rng(seed).permutation(ALL_PAIRS)[:count].tolist()
        chosen = tuple(divmod(number, STREAMS) for number in order)
        return Pairs(ours.stream, space, (queries, streams), query_boxes, stream_boxes, chosen)
