"""The stream predicate of a matching: its boxes, largest first, an index, and comparisons with it.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", sections 3.2, 3.5 and
6.1: the quick check, which tells by one box after the other whether it holds a query box, and
"compare dimensions", which cuts off what sticks out of one.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from enum import Enum

from headgate.implication.index import BoxIndex, build_box_index
from headgate.implication.parts import ComparisonCounter, Part, replace_side, to_boxes, to_parts
from headgate.implication.space import Boxes, Space


class Overlap(Enum):
    """How a query box lies in a stream predicate, as far as single boxes of it can tell."""

    INSIDE = 1
    OVERLAPPING = 0
    APART = -1


class StreamPredicate:
    """Boxes by number, in decreasing order of volume, each with its sides from short to long.

    A box is compared only in the dimensions that it mentions.
    """

    def __init__(self, space: Space, boxes: Boxes, index: str | None) -> None:
        self.space = space
        self.parts: list[Part] = []
        self.sides: list[tuple[int, ...]] = []  # by box: its dimensions, the shortest side first
        self.removed: set[int] = set()
        self._keys: list[tuple[int, float, int]] = []  # by box: what it is sorted by
        self._order: list[tuple[int, float, int]] = []
        self._append(boxes)
        indexed = index if space.dimensions else None
        self.index: BoxIndex | None = None if indexed is None else build_box_index(indexed, boxes)

    def __len__(self) -> int:
        return len(self._order)

    def number_at(self, position: int) -> int:
        """Return the number of the box at this position in the order of volume."""
        return self._order[position][2]

    def candidates(self, part: Part) -> Sequence[int]:
        """Return the boxes that may overlap a part, largest first; without an index, all boxes."""
        if self.index is None:
            return [number for _, _, number in self._order]
        # The index answers by id, matching takes boxes by volume.
        return sorted(self.index.find_overlapping(*_to_ends(part)), key=self._keys.__getitem__)

    def add(self, part: Part) -> None:
        """Add a box."""
        self._append(to_boxes((part,), self.space))
        if self.index is not None:
            self.index.add(*_to_ends(part))

    def replace(self, number: int, part: Part) -> None:
        """Replace a box by another one."""
        # The old number stays taken, and the index keeps the box, but inactive.
        self._order.remove(self._keys[number])
        self.removed.add(number)
        if self.index is not None:
            self.index.deactivate(number)
        self.add(part)

    def boxes(self) -> Boxes:
        """Return all boxes that are not removed, in the order in which they were added."""
        parts = (part for number, part in enumerate(self.parts) if number not in self.removed)
        return to_boxes(parts, self.space)

    def _append(self, boxes: Boxes) -> None:
        # Keys ascend where volumes descend: the largest box is compared first (section 6.1).
        infinite, finite = self.space.volumes(boxes)
        volumes = zip((-infinite).tolist(), (-finite).tolist(), strict=True)
        for part, volume in zip(to_parts(boxes), volumes, strict=True):
            key = (*volume, len(self.parts))
            self.parts.append(part)
            self.sides.append(self._sort_sides(part))
            self._keys.append(key)
            insort(self._order, key)

    def _sort_sides(self, part: Part) -> tuple[int, ...]:
        """Return the dimensions that a box mentions, the shortest side first."""
        sides = zip(part, self.space.dimensions, strict=True)
        lengths = [
            (dimension.length(low, high), k)
            for k, ((low, high), dimension) in enumerate(sides)
            if (low, high) != (0, dimension.count)
        ]
        return tuple(k for _, k in sorted(lengths))


def run_quick_check(stream: StreamPredicate, part: Part, counter: ComparisonCounter) -> Overlap:
    """Check whether one box of the stream holds the whole query box.

    Algorithm 6, with the three-valued result of Appendix A.1. Deviation: a box is compared in every
    dimension that it mentions, whether the query box does or not; an unmentioned dimension is
    unbounded, and NULL too.
    """
    overlap = Overlap.APART
    for number in stream.candidates(part):
        box = stream.parts[number]
        is_inside = True
        for k in stream.sides[number]:
            counter.comparisons += 1
            (low, high), (first, end) = box[k], part[k]
            if end <= low or high <= first:
                # One dimension apart: the boxes do not meet, and the next box is compared.
                break
            is_inside = is_inside and low <= first and end <= high
        else:
            if is_inside:
                return Overlap.INSIDE
            overlap = Overlap.OVERLAPPING
    return overlap


def subtract_box(
    stream: StreamPredicate, number: int, part: Part, counter: ComparisonCounter
) -> list[Part]:
    """Return the part in disjoint pieces, without what a box of the stream holds.

    Algorithm 9, "compare dimensions" (CD, Figure 6). Side by side, what sticks out is cut off; the
    four cases of the paper are two cuts that either happen or do not. Nothing is cut where the box
    and the part do not meet. Deviation: all sides that the box mentions are compared, whether the
    query mentions them or not.
    """
    counter.check_budget()
    box = stream.parts[number]
    pieces: list[Part] = []
    # `inner` shrinks to what lies inside the box in the dimensions so far.
    inner = part
    for k in stream.sides[number]:
        counter.comparisons += 1
        (low, high), (first, end) = box[k], inner[k]
        if end <= low or high <= first:
            return [part]
        if first < low:
            pieces.append(replace_side(inner, k, (first, low)))
        if high < end:
            pieces.append(replace_side(inner, k, (high, end)))
        inner = replace_side(inner, k, (max(low, first), min(high, end)))
    return pieces


def _to_ends(part: Part) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(low for low, _ in part), tuple(high for _, high in part)
