"""What a union of boxes leaves over of another one, part by part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.implication.exact.plain import subtract_boxes
from headgate.implication.paper.part import ComparisonCounter, Part, budget_error, to_parts
from headgate.implication.space import Boxes

MAX_KERNEL_COMPARISONS = 1_000_000_000  # sides compared: some seconds in a kernel
MAX_PLAIN_PAIRS = (
    40  # pairs of boxes that are first tried without a kernel, which may have to be compiled
)
MAX_PLAIN_COMPARISONS = 100_000


def find_uncovered(
    query: Boxes,
    stream: Boxes,
    budget: int = MAX_KERNEL_COMPARISONS,
    tally: ComparisonCounter | None = None,
) -> Iterator[Part]:
    """The parts of the query outside the stream, disjoint, each found when it is asked for.

    There can be exponentially many. Raises ExpansionTooLarge when the budget is spent.
    """
    counts = ComparisonCounter() if tally is None else tally
    found = _plainly(query, stream, min(budget, MAX_PLAIN_COMPARISONS), counts)
    return _by_kernel(query, stream, budget, counts) if found is None else iter(found)


def _plainly(
    query: Boxes, stream: Boxes, budget: int, tally: ComparisonCounter
) -> list[Part] | None:
    """All parts of small unions, where that is soon done."""
    if len(query) * len(stream) > MAX_PLAIN_PAIRS:
        return None
    mine = ComparisonCounter(budget=budget)
    boxes = to_parts(stream)
    found: list[Part] = []
    try:
        for part in to_parts(query):
            found += subtract_boxes(part, boxes, mine)
            boxes.append(part)
    except ExpansionTooLarge:
        return None
    tally.comparisons += mine.comparisons
    tally.max_parts = max(tally.max_parts, mine.max_parts)
    return found


def _by_kernel(
    query: Boxes, stream: Boxes, budget: int, tally: ComparisonCounter
) -> Iterator[Part]:
    from headgate.implication.exact.search import UNCOVERED, UNDECIDED, search_uncovered
    from headgate.jit import warn_before_compiling

    warn_before_compiling(__package__)
    both = stream.concat(query)
    dimensions = query.low.shape[1]
    parts = np.empty((64 + 2 * dimensions, 2, dimensions), np.int32)
    spans = np.empty((64 + 2 * dimensions, 2), np.int64)
    lists = np.arange(len(both) + 64, dtype=np.int32)
    left = budget
    for at in range(len(query)):
        boxes = both[: len(stream) + at]
        parts[0] = query.low[at], query.high[at]
        spans[0] = 0, len(boxes)
        lists[len(boxes) - 1 : len(boxes)] = len(boxes) - 1  # searches write only behind it
        top = 1
        while top:
            status, parts, spans, lists, top, most, compared = search_uncovered(
                boxes.low, boxes.high, parts, spans, lists, top, left, True
            )
            left -= compared
            tally.comparisons += compared
            tally.max_parts = max(tally.max_parts, most)
            if status == UNDECIDED:
                raise budget_error(budget)
            if status == UNCOVERED:
                yield to_parts(Boxes(parts[top : top + 1, 0], parts[top : top + 1, 1]))[0]
