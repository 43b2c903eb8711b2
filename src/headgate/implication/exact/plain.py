"""The search for what a union of boxes leaves uncovered, in plain Python.

The same as `search`, whose oracle it is; small unions are answered here, before a kernel is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from headgate.implication.paper.part import ComparisonCounter, Part, replace_side


def subtract_boxes(part: Part, boxes: Sequence[Part], tally: ComparisonCounter) -> Iterator[Part]:
    """What of a part lies in none of the boxes, as disjoint parts.

    >>> boxes = [((1, 9), (0, 3)), ((0, 2), (2, 4))]
    >>> list(subtract_boxes(((0, 4), (0, 4)), boxes, ComparisonCounter()))
    [((2, 4), (3, 4)), ((0, 1), (0, 2))]
    """
    pending = [(part, boxes)]
    while pending:
        tally.check_budget()
        part, boxes = pending.pop()
        near = [(_share(box, part), box) for box in boxes if _overlap(box, part, tally)]
        share, best = max(near, default=(0.0, part))
        if not near:
            yield part
        elif share < 1:
            rest = [box for _, box in near]
            pending.extend((piece, rest) for piece in _outside(best, part))
            tally.max_parts = max(tally.max_parts, len(pending))


def _overlap(box: Part, part: Part, tally: ComparisonCounter) -> bool:
    for (low, high), (first, end) in zip(box, part, strict=True):
        tally.comparisons += 1
        if end <= low or high <= first:
            return False
    return True


def _share(box: Part, part: Part) -> float:
    """Of the cells of a part, how many lie in a box; exactly one where all do."""
    return prod(
        (min(high, end) - max(low, first)) / (end - first)
        for (low, high), (first, end) in zip(box, part, strict=True)
    )


def _outside(box: Part, part: Part) -> Iterator[Part]:
    for k, (low, high) in enumerate(box):
        first, end = part[k]
        if first < low:
            yield replace_side(part, k, (first, low))
        if high < end:
            yield replace_side(part, k, (high, end))
        part = replace_side(part, k, (max(first, low), min(end, high)))
