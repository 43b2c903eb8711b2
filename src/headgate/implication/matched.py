"""What comes of matching a query predicate with a stream predicate."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.implication.space import Boxes


@dataclass(frozen=True, slots=True)
class PredicateMatch:
    """Were all query boxes found in the stream, and what the stream's boxes became.

    `comparisons` of sides and `parts` stored at once are what the paper's complexities count.
    """

    covered: bool
    boxes: Boxes
    comparisons: int = 0
    parts: int = 0
