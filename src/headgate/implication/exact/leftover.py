"""What a union of boxes leaves over of another one, part by part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headgate.implication.exact.plain import declined, uncovered_parts
from headgate.implication.paper.part import Part, Tally, parts_of
from headgate.implication.space import Boxes

BUDGET = 1_000_000  # splits
FEW = 40  # pairs of boxes for which no kernel is loaded


def uncovered(
    query: Boxes, stream: Boxes, budget: int = BUDGET, tally: Tally | None = None
) -> Iterator[Part]:
    """The parts of the query outside the stream, disjoint, each found when it is asked for.

    There can be exponentially many. Raises ExpansionTooLarge when the budget is spent.
    """
    counts = Tally() if tally is None else tally
    if len(query) * len(stream) > FEW:
        yield from _by_kernel(query, stream, budget, counts)
        return
    boxes = parts_of(stream)
    for part in parts_of(query):
        yield from uncovered_parts(part, boxes, budget, counts)
        boxes.append(part)


def _by_kernel(query: Boxes, stream: Boxes, budget: int, tally: Tally) -> Iterator[Part]:
    from headgate.implication.exact.search import OPEN, UNCOVERED, search

    dimensions = query.low.shape[1]
    parts = np.empty((64 + 2 * dimensions, 2, dimensions), np.int32)
    spans = np.empty((64 + 2 * dimensions, 2), np.int64)
    left = budget
    for at in range(len(query)):
        boxes = stream.and_also(query[:at])
        parts[0] = query.low[at], query.high[at]
        spans[0] = 0, len(boxes)
        lists, top = np.arange(len(boxes) + 64, dtype=np.int32), 1
        while top:
            status, parts, spans, lists, top, steps, most, compared = search(
                boxes.low, boxes.high, parts, spans, lists, top, left, True
            )
            left -= steps
            tally.comparisons += compared
            tally.most_parts = max(tally.most_parts, most)
            if status == OPEN:
                raise declined(budget)
            if status == UNCOVERED:
                yield parts_of(Boxes(parts[top : top + 1, 0], parts[top : top + 1, 1]))[0]
