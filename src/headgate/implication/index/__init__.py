"""Which boxes of a union meet a box, or hold a point? One protocol, four indexes, one reference."""

from __future__ import annotations

from headgate.errors import UsageError, did_you_mean
from headgate.implication.index.linear import LinearIndex
from headgate.implication.index.protocol import BoxIndex
from headgate.implication.space import Boxes

KINDS = ("linear", "r-tree", "r*-tree", "array")

__all__ = ["KINDS", "BoxIndex", "LinearIndex", "box_index"]


def box_index(kind: str, boxes: Boxes) -> BoxIndex:
    """An index of one of the `KINDS`, each of which is imported only when it is asked for."""
    if kind == "array":
        from headgate.implication.index.array_tree import ArrayTree

        return ArrayTree(boxes)
    if kind in ("r-tree", "r*-tree"):
        from headgate.implication.index.r_tree import RStarTree, RTree

        return RTree(boxes) if kind == "r-tree" else RStarTree(boxes)
    if kind != "linear":
        raise UsageError(f"no index of boxes `{kind}`; {did_you_mean(kind, KINDS)}")
    return LinearIndex(boxes)
