"""The stream predicate of a matching: its boxes, the largest first, and an index over them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from headgate.implication.index import BoxIndex, build_box_index
from headgate.implication.paper.part import Part, to_boxes, to_parts
from headgate.implication.space import Boxes, Space


class StreamPredicate:
    """Boxes by number, kept in decreasing order of volume, each with its sides from short to long.

    "Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 6.1. A box
    is compared only in the dimensions that it mentions.
    """

    def __init__(self, space: Space, boxes: Boxes, index: str | None) -> None:
        self.space = space
        self.parts: list[Part] = []
        self.sides: list[tuple[int, ...]] = []
        self.removed: set[int] = set()
        self._keys: list[tuple[int, float, int]] = []
        self._order: list[tuple[int, float, int]] = []
        self._enter(boxes)
        indexed = index if space.dimensions else None
        self.index: BoxIndex | None = None if indexed is None else build_box_index(indexed, boxes)

    def __len__(self) -> int:
        return len(self._order)

    def number_at(self, position: int) -> int:
        """The number of the box at this place in the order of volume."""
        return self._order[position][2]

    def candidates(self, part: Part) -> Sequence[int]:
        """The boxes that may overlap a part, the largest first; without an index, all of them."""
        if self.index is None:
            return [number for _, _, number in self._order]
        return sorted(self.index.find_overlapping(*_ends(part)), key=self._keys.__getitem__)

    def add(self, part: Part) -> None:
        self._enter(to_boxes((part,), self.space))
        if self.index is not None:
            self.index.add(*_ends(part))

    def replace(self, number: int, part: Part) -> None:
        """Put a box in the place of another one."""
        self._order.remove(self._keys[number])
        self.removed.add(number)
        if self.index is not None:
            self.index.deactivate(number)
        self.add(part)

    def boxes(self) -> Boxes:
        """All boxes that are there, in the order in which they came."""
        kept = (part for at, part in enumerate(self.parts) if at not in self.removed)
        return to_boxes(kept, self.space)

    def _enter(self, boxes: Boxes) -> None:
        infinite, finite = self.space.volumes(boxes)
        volumes = zip((-infinite).tolist(), (-finite).tolist(), strict=True)
        for part, volume in zip(to_parts(boxes), volumes, strict=True):
            key = (*volume, len(self.parts))
            self.parts.append(part)
            self.sides.append(self._by_length(part))
            self._keys.append(key)
            insort(self._order, key)

    def _by_length(self, part: Part) -> tuple[int, ...]:
        """The dimensions that a box mentions, the shortest side first."""
        sides = zip(part, self.space.dimensions, strict=True)
        lengths = [
            (dimension.length(low, high), k)
            for k, ((low, high), dimension) in enumerate(sides)
            if (low, high) != (0, dimension.count)
        ]
        return tuple(k for _, k in sorted(lengths))


def _ends(part: Part) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(low for low, _ in part), tuple(high for _, high in part)
