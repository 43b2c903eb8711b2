"""Our own exact matching: like the paper's depth-first one, with three things more.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 3.5. At every
split a part keeps only the boxes that overlap it, so no index is needed and none maintained; it is
cut by the box that covers most of it; and a part that the boxes are together too small to cover is
given up at once. The whole matching is one call of a kernel.
"""

from __future__ import annotations

import numpy as np

from headgate.implication.exact.growth import grow_each
from headgate.implication.exact.leftover import BUDGET
from headgate.implication.exact.search import OPEN, match_each
from headgate.implication.matched import Matched
from headgate.implication.paper.part import declined
from headgate.implication.space import Boxes, Space


def match_exact(query: Boxes, stream: Boxes, budget: int = BUDGET) -> Matched:
    """Does the stream cover the query, and what must it become to do so?

    Raises ExpansionTooLarge where the budget of comparisons does not suffice to tell.
    """
    low = np.concatenate((stream.low, query.low))
    high = np.concatenate((stream.high, query.high))
    status, count, parts, compared = match_each(query.low, query.high, low, high, budget)
    if status == OPEN:
        raise declined(budget)
    return Matched(count == len(stream), Boxes(low[:count], high[:count]), compared, parts)


def match_hcr(space: Space, query: Boxes, stream: Boxes) -> Matched:
    """The paper's HCR with the quick check, compiled."""
    starts, stops = space.positions
    room = np.zeros((1, len(space.dimensions)), np.int32)
    low, high = np.concatenate((stream.low, room)), np.concatenate((stream.high, room))
    found = space.by_volume(query)
    covered, count = grow_each(found.low, found.high, low, high, starts, stops, space.counts)
    return Matched(bool(covered.all()), Boxes(low[:count], high[:count]))
