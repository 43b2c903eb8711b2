"""Our own exact matching: like the paper's depth-first one, with three things more.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 3.5. At every
split a part keeps only the boxes that overlap it, so no index is needed and none maintained; it is
cut by the box that covers most of it; and a part that the boxes are together too small to cover is
given up at once. The whole matching is one call of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import ExpansionTooLarge
from headgate.implication.exact.growth import grow_each
from headgate.implication.exact.search import OPEN, UNCOVERED, match_each, search
from headgate.implication.matched import Matched
from headgate.implication.space import Boxes, Cells, Space

BUDGET = 1_000_000  # splits


@dataclass(frozen=True, slots=True)
class Answer:
    """Which query boxes are covered; `is_open` where the budget did not suffice to tell."""

    covered: npt.NDArray[np.bool_]
    is_open: bool
    boxes: Boxes
    steps: int
    parts: int


def cover(query: Boxes, stream: Boxes, budget: int = BUDGET) -> Answer:
    """Match every query box with the stream, to which those that it does not cover are added."""
    low = np.concatenate((stream.low, query.low))
    high = np.concatenate((stream.high, query.high))
    covered = np.empty(len(query), np.bool_)
    status, count, steps, parts = match_each(query.low, query.high, low, high, covered, budget)
    return Answer(covered, status == OPEN, Boxes(low[:count], high[:count]), steps, parts)


def uncovered(query: Boxes, stream: Boxes, budget: int = BUDGET) -> Iterator[tuple[Cells, Cells]]:
    """The parts of the query that the stream leaves over, disjoint, found one by one.

    There can be exponentially many. Raises ExpansionTooLarge when the budget is spent.
    """
    dimensions = query.low.shape[1]
    parts = np.empty((64 + 2 * dimensions, 2, dimensions), np.int32)
    spans = np.empty((64 + 2 * dimensions, 2), np.int64)
    for at in range(len(query)):
        boxes = stream.and_also(query[:at])
        parts[0] = query.low[at], query.high[at]
        spans[0] = 0, len(boxes)
        lists, top = np.arange(len(boxes) + 64, dtype=np.int32), 1
        while top:
            status, parts, spans, lists, top, steps, _ = search(
                boxes.low, boxes.high, parts, spans, lists, top, budget, True
            )
            budget -= steps
            if status == OPEN:
                raise ExpansionTooLarge("what is left over has too many parts to list them all")
            if status == UNCOVERED:
                yield parts[top, 0].copy(), parts[top, 1].copy()


def match_exact(query: Boxes, stream: Boxes, budget: int = BUDGET) -> Matched:
    """Does the stream cover the query, and what must it become to do so?"""
    answer = cover(query, stream, budget)
    return Matched(bool(answer.covered.all()), answer.boxes, answer.steps, answer.parts)


def match_hcr(space: Space, query: Boxes, stream: Boxes) -> Matched:
    """The paper's HCR with the quick check, compiled."""
    starts, stops = space.positions
    room = np.zeros((1, len(space.dimensions)), np.int32)
    low, high = np.concatenate((stream.low, room)), np.concatenate((stream.high, room))
    found = space.by_volume(query)
    covered, count = grow_each(found.low, found.high, low, high, starts, stops, space.counts)
    return Matched(bool(covered.all()), Boxes(low[:count], high[:count]))
