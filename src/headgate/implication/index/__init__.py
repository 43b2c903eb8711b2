"""Find the boxes of a union that overlap a box or contain a point: one protocol, four indexes."""

from __future__ import annotations

from headgate.errors import UsageError, did_you_mean
from headgate.implication.index.base import BoxIndex, LinearIndex
from headgate.implication.space import Boxes

BOX_INDEX_KINDS = ("linear", "r-tree", "r*-tree", "array")

__all__ = ["BOX_INDEX_KINDS", "BoxIndex", "LinearIndex", "build_box_index"]


def build_box_index(kind: str, boxes: Boxes) -> BoxIndex:
    """Build an index of one of the `BOX_INDEX_KINDS`; each is imported only on first use."""
    if kind == "array":
        from headgate.implication.index.array_tree import ArrayTree

        return ArrayTree(boxes)
    if kind in ("r-tree", "r*-tree"):
        from headgate.implication.index.r_tree import RStarTree, RTree

        return RTree(boxes) if kind == "r-tree" else RStarTree(boxes)
    if kind != "linear":
        raise UsageError(f"no index of boxes `{kind}`; {did_you_mean(kind, BOX_INDEX_KINDS)}")
    return LinearIndex(boxes)
