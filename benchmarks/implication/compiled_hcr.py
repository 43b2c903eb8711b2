"""The paper's HCR with the quick check, compiled, for a fair comparison with our exact method."""

from __future__ import annotations

import numpy as np

from benchmarks.implication.kernels import grow_boxes
from headgate.implication.parts import PredicateMatch
from headgate.implication.space import Boxes, Space


def match_hcr_compiled(space: Space, query: Boxes, stream: Boxes) -> PredicateMatch:
    """Match a query with a stream by HCR; the kernel gives what `paper.heuristics` gives."""
    starts, stops = space.positions
    # The kernel may append a box, for which there is one more row than boxes.
    free_row = np.zeros((1, len(space.dimensions)), np.int32)
    low, high = np.concatenate((stream.low, free_row)), np.concatenate((stream.high, free_row))
    largest_first = space.sort_by_volume(query)
    covered, count = grow_boxes(
        largest_first.low, largest_first.high, low, high, starts, stops, space.counts
    )
    return PredicateMatch(bool(covered.all()), Boxes(low[:count], high[:count]))
