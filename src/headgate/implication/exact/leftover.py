"""What a union of boxes leaves over of another one, part by part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headgate.errors import ExpansionTooLarge
from headgate.implication.exact.plain import uncovered_parts
from headgate.implication.paper.part import Part, Tally, declined, parts_of
from headgate.implication.space import Boxes

BUDGET = 1_000_000_000  # sides compared: some seconds in a kernel
FEW = 40  # pairs of boxes that are first tried without a kernel, which may have to be compiled
FEW_COMPARISONS = 100_000


def uncovered(
    query: Boxes, stream: Boxes, budget: int = BUDGET, tally: Tally | None = None
) -> Iterator[Part]:
    """The parts of the query outside the stream, disjoint, each found when it is asked for.

    There can be exponentially many. Raises ExpansionTooLarge when the budget is spent.
    """
    counts = Tally() if tally is None else tally
    found = _plainly(query, stream, min(budget, FEW_COMPARISONS), counts)
    return _by_kernel(query, stream, budget, counts) if found is None else iter(found)


def _plainly(query: Boxes, stream: Boxes, budget: int, tally: Tally) -> list[Part] | None:
    """All parts of small unions, where that is soon done."""
    if len(query) * len(stream) > FEW:
        return None
    mine = Tally(budget=budget)
    boxes = parts_of(stream)
    found: list[Part] = []
    try:
        for part in parts_of(query):
            found += uncovered_parts(part, boxes, mine)
            boxes.append(part)
    except ExpansionTooLarge:
        return None
    tally.comparisons += mine.comparisons
    tally.most_parts = max(tally.most_parts, mine.most_parts)
    return found


def _by_kernel(query: Boxes, stream: Boxes, budget: int, tally: Tally) -> Iterator[Part]:
    from headgate.implication.exact.search import OPEN, UNCOVERED, search
    from headgate.jit import warn_before_compiling

    warn_before_compiling(__package__)
    both = stream.and_also(query)
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
            status, parts, spans, lists, top, most, compared = search(
                boxes.low, boxes.high, parts, spans, lists, top, left, True
            )
            left -= compared
            tally.comparisons += compared
            tally.most_parts = max(tally.most_parts, most)
            if status == OPEN:
                raise declined(budget)
            if status == UNCOVERED:
                yield parts_of(Boxes(parts[top : top + 1, 0], parts[top : top + 1, 1]))[0]
