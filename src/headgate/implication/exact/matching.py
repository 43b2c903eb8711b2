"""Our own exact matching: the paper's depth-first one with three improvements.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 3.5. At every
split a part keeps only the boxes that overlap it, so no index is needed and none maintained; it is
cut by the box that covers most of it; and a part that the boxes are together too small to cover is
given up at once. The whole matching is one call of a kernel.
"""

from __future__ import annotations

import numpy as np

from headgate.implication.exact.kernels import UNDECIDED, match_boxes
from headgate.implication.exact.leftover import MAX_KERNEL_COMPARISONS
from headgate.implication.parts import PredicateMatch, budget_error
from headgate.implication.space import Boxes


def match_exact(
    query: Boxes, stream: Boxes, budget: int = MAX_KERNEL_COMPARISONS
) -> PredicateMatch:
    """Decide whether the stream covers the query, and add the query boxes that it does not cover.

    Raises ExpansionTooLarge where the budget of comparisons does not suffice to tell.
    """
    # Room for the query boxes behind the stream's: the kernel adds there those that are not
    # covered.
    low = np.concatenate((stream.low, query.low))
    high = np.concatenate((stream.high, query.high))
    status, count, parts, compared = match_boxes(query.low, query.high, low, high, budget)
    if status == UNDECIDED:
        raise budget_error(budget)
    return PredicateMatch(count == len(stream), Boxes(low[:count], high[:count]), compared, parts)
