"""What a union of boxes leaves uncovered of another one, part by part, and matching by that.

`match_exact` is our own exact matching: the depth-first one of "Matching and Evaluation of
Disjunctive Predicates for Data Stream Sharing", section 3.5, with three improvements. At every
split a part keeps only the boxes that overlap it, so no index is needed and none maintained; it is
cut by the box that covers most of it; and a part that the boxes are together too small to cover is
given up at once. The whole matching is one call of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.implication.parts import (
    ComparisonCounter,
    Part,
    PredicateMatch,
    budget_error,
    replace_side,
    to_parts,
)
from headgate.implication.space import Boxes

MAX_KERNEL_COMPARISONS = 1_000_000_000  # of sides: some seconds in a kernel
# Small unions are answered in plain Python: a kernel may have to be compiled first.
MAX_PLAIN_PAIRS = 40
MAX_PLAIN_COMPARISONS = 100_000


def find_uncovered(
    query: Boxes,
    stream: Boxes,
    budget: int = MAX_KERNEL_COMPARISONS,
    counter: ComparisonCounter | None = None,
) -> Iterator[Part]:
    """Yield the parts of the query outside the stream, disjoint, each computed on demand.

    There can be exponentially many. Raises ExpansionTooLarge when the budget is spent.
    """
    counts = ComparisonCounter() if counter is None else counter
    parts = _search_plainly(query, stream, min(budget, MAX_PLAIN_COMPARISONS), counts)
    return _search_by_kernel(query, stream, budget, counts) if parts is None else iter(parts)


def _search_plainly(
    query: Boxes, stream: Boxes, budget: int, counter: ComparisonCounter
) -> list[Part] | None:
    """Return all uncovered parts of small unions; None where that would take too long."""
    if len(query) * len(stream) > MAX_PLAIN_PAIRS:
        return None
    own_counter = ComparisonCounter(budget=budget)
    boxes = to_parts(stream)
    uncovered: list[Part] = []
    try:
        for part in to_parts(query):
            uncovered += subtract_boxes(part, boxes, own_counter)
            # Later query boxes need not cover it again, so the parts are disjoint.
            boxes.append(part)
    except ExpansionTooLarge:
        return None
    counter.comparisons += own_counter.comparisons
    counter.max_parts = max(counter.max_parts, own_counter.max_parts)
    return uncovered


def _search_by_kernel(
    query: Boxes, stream: Boxes, budget: int, counter: ComparisonCounter
) -> Iterator[Part]:
    from headgate.implication.kernels import UNCOVERED, UNDECIDED, search_uncovered
    from headgate.jit import warn_before_compiling

    warn_before_compiling(__package__)
    both = stream.concat(query)
    dimensions = query.low.shape[1]
    # The stack of the search, as `kernels` describes it; the kernel returns larger arrays at need.
    parts = np.empty((64 + 2 * dimensions, 2, dimensions), np.int32)
    spans = np.empty((64 + 2 * dimensions, 2), np.int64)
    lists = np.arange(len(both) + 64, dtype=np.int32)
    left = budget
    for at in range(len(query)):
        # Query boxes before this one count as covered, so that what is yielded is disjoint.
        boxes = both[: len(stream) + at]
        parts[0] = query.low[at], query.high[at]
        spans[0] = 0, len(boxes)
        lists[len(boxes) - 1 : len(boxes)] = len(boxes) - 1  # searches write only behind it
        top = 1
        while top:
            status, parts, spans, lists, top, max_parts, compared = search_uncovered(
                boxes.low, boxes.high, parts, spans, lists, top, left, True
            )
            left -= compared
            counter.comparisons += compared
            counter.max_parts = max(counter.max_parts, max_parts)
            if status == UNDECIDED:
                raise budget_error(budget)
            if status == UNCOVERED:
                yield to_parts(Boxes(parts[top : top + 1, 0], parts[top : top + 1, 1]))[0]


def subtract_boxes(part: Part, boxes: Sequence[Part], counter: ComparisonCounter) -> Iterator[Part]:
    """Yield what of a part lies in none of the boxes, as disjoint parts.

    This is the search of the kernels in plain Python, and their oracle.

    >>> boxes = [((1, 9), (0, 3)), ((0, 2), (2, 4))]
    >>> list(subtract_boxes(((0, 4), (0, 4)), boxes, ComparisonCounter()))
    [((2, 4), (3, 4)), ((0, 1), (0, 2))]
    """
    pending = [(part, boxes)]
    while pending:
        counter.check_budget()
        part, boxes = pending.pop()
        # Boxes that overlap, each with its share of the part: the largest leaves the least to cut.
        near = [(_share_inside(box, part), box) for box in boxes if _overlap(box, part, counter)]
        share, best = max(near, default=(0.0, part))
        if not near:
            yield part
        elif share < 1:
            overlapping = [box for _, box in near]
            pending.extend((piece, overlapping) for piece in _cut_off(best, part))
            counter.max_parts = max(counter.max_parts, len(pending))


def _overlap(box: Part, part: Part, counter: ComparisonCounter) -> bool:
    for (low, high), (first, end) in zip(box, part, strict=True):
        counter.comparisons += 1
        if end <= low or high <= first:
            return False
    return True


def _share_inside(box: Part, part: Part) -> float:
    """Return which share of a part's cells lies in a box; exactly one where all do."""
    # By dimension the share of its cells; quotients of equal numbers are exactly one.
    return prod(
        (min(high, end) - max(low, first)) / (end - first)
        for (low, high), (first, end) in zip(box, part, strict=True)
    )


def _cut_off(box: Part, part: Part) -> Iterator[Part]:
    """Yield what sticks out of a box, dimension by dimension."""
    for k, (low, high) in enumerate(box):
        first, end = part[k]
        if first < low:
            yield replace_side(part, k, (first, low))
        if high < end:
            yield replace_side(part, k, (high, end))
        # Later dimensions cut only what lies inside the box in this one, so pieces are disjoint.
        part = replace_side(part, k, (max(first, low), min(end, high)))


def match_exact(
    query: Boxes, stream: Boxes, budget: int = MAX_KERNEL_COMPARISONS
) -> PredicateMatch:
    """Decide whether the stream covers the query, and add the query boxes that it does not cover.

    Raises ExpansionTooLarge where the budget of comparisons does not suffice to tell.
    """
    from headgate.implication.kernels import UNDECIDED, match_boxes

    # Behind the stream's boxes the kernel writes the query boxes that are not covered.
    both = stream.concat(query)
    status, count, parts, compared = match_boxes(query.low, query.high, both.low, both.high, budget)
    if status == UNDECIDED:
        raise budget_error(budget)
    return PredicateMatch(count == len(stream), both[:count], compared, parts)
