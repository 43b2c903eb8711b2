"""Our own exact matching: like the paper's depth-first one, with three things more.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 3.5. At every
split a part keeps only the boxes that overlap it, so no index is needed and none maintained; it is
cut by the box that covers most of it; and a part that the boxes are together too small to cover is
given up at once. The whole matching is one call of a kernel.
"""

from __future__ import annotations

import numpy as np

from headgate.implication.exact.growth import grow_boxes
from headgate.implication.exact.leftover import MAX_KERNEL_COMPARISONS
from headgate.implication.exact.search import UNDECIDED, match_boxes
from headgate.implication.matched import PredicateMatch
from headgate.implication.paper.part import budget_error
from headgate.implication.space import Boxes, Space


def match_exact(
    query: Boxes, stream: Boxes, budget: int = MAX_KERNEL_COMPARISONS
) -> PredicateMatch:
    """Does the stream cover the query, and what must it become to do so?

    Raises ExpansionTooLarge where the budget of comparisons does not suffice to tell.
    """
    low = np.concatenate((stream.low, query.low))
    high = np.concatenate((stream.high, query.high))
    status, count, parts, compared = match_boxes(query.low, query.high, low, high, budget)
    if status == UNDECIDED:
        raise budget_error(budget)
    return PredicateMatch(count == len(stream), Boxes(low[:count], high[:count]), compared, parts)


def match_hcr_compiled(space: Space, query: Boxes, stream: Boxes) -> PredicateMatch:
    """The paper's HCR with the quick check, compiled."""
    starts, stops = space.positions
    room = np.zeros((1, len(space.dimensions)), np.int32)
    low, high = np.concatenate((stream.low, room)), np.concatenate((stream.high, room))
    found = space.sort_by_volume(query)
    covered, count = grow_boxes(found.low, found.high, low, high, starts, stops, space.counts)
    return PredicateMatch(bool(covered.all()), Boxes(low[:count], high[:count]))
