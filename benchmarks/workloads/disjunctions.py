"""The random predicates of the stream-sharing paper's matching benchmark (its section 6.2).

A predicate is an OR of boxes. The two ends of a side are among a few values that divide 0 … 100
evenly: 21 there, and for its Table 7 only 6 and 4. They are uniform for the predicates of streams
and normal for those of queries. A box has a side in every dimension; where dimensions are possibly
unbounded it mentions some of them only, every non-empty subset being as likely as another.

What the paper leaves open and we chose: the normal distribution has its mean in the middle and a
deviation of a quarter of the range, so that of twenty values one would lie outside, which is left
out; the two ends of a side differ. Columns are NOT NULL, since the paper knows no NULL; where a
share of the sides is `IS NULL` they are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from headgate.implication.space import Boxes, Space
from headgate.predicate import (
    Box,
    Column,
    IsNull,
    Or,
    Predicate,
    Within,
    conjunction,
    disjunction,
    to_dnf,
)
from headgate.schema import DOUBLE, Attribute, Interval, Stream, ValueSet

LEAST, GREATEST = 0.0, 100.0
MEAN, DEVIATION = 50.0, 25.0

Ends = Literal["uniform", "normal"]
Random = np.random.Generator
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DisjunctionSpec:
    """How a predicate is drawn: how many boxes, in how many dimensions, with which ends."""

    boxes: int
    dimensions: int = 6
    values: int = 21
    ends: Ends = "uniform"
    unbounded: bool = False
    nulls: float = 0.0

    @property
    def stream(self) -> Stream:
        """The stream `measurements` with DOUBLE columns d0, d1, …"""
        names = (f"d{k}" for k in range(self.dimensions))
        nullable = self.nulls > 0
        return Stream(
            "measurements", tuple(Attribute(name, DOUBLE, nullable=nullable) for name in names)
        )


def generate_disjunctions(count: int, spec: DisjunctionSpec, *, seed: int) -> tuple[Predicate, ...]:
    """Return predicates, each an OR of as many boxes.

    >>> from headgate.sql import render_predicate
    >>> (found,) = generate_disjunctions(1, DisjunctionSpec(2, 2, unbounded=True), seed=0)
    >>> print(render_predicate(found))
    d0 BETWEEN 40.0 AND 50.0 OR (d0 BETWEEN 0.0 AND 45.0 AND d1 BETWEEN 0.0 AND 20.0)
    """
    random = np.random.default_rng(seed)
    columns = [Column(attribute.name, attribute.type) for attribute in spec.stream]
    low, high = _ends(count, spec, random)
    mentioned = _draw_mentioned(count, spec, random)
    null = random.random(mentioned.shape) < spec.nulls

    def sides(at: tuple[int, int]) -> Iterator[Predicate]:
        for k in np.flatnonzero(mentioned[at]):
            if null[(*at, k)]:
                yield IsNull(columns[k])
            else:
                ends = Interval.between(DOUBLE, float(low[(*at, k)]), float(high[(*at, k)]))
                yield Within(columns[k], ValueSet.of(ends))

    return tuple(
        disjunction(conjunction(sides((number, box))) for box in range(spec.boxes))
        for number in range(count)
    )


def _ends(count: int, spec: DisjunctionSpec, random: Random) -> tuple[Numbers, Numbers]:
    """Return where sides begin and end: pairs of different values, drawn by the weight of both."""
    values = np.linspace(LEAST, GREATEST, spec.values)
    weights = np.ones_like(values)
    if spec.ends == "normal":
        weights = np.exp(-(((values - MEAN) / DEVIATION) ** 2) / 2)
    first, second = np.triu_indices(spec.values, 1)
    likely = weights[first] * weights[second]
    shape = (count, spec.boxes, spec.dimensions)
    drawn = random.choice(len(first), shape, p=likely / likely.sum())
    return values[first[drawn]], values[second[drawn]]


def _draw_mentioned(count: int, spec: DisjunctionSpec, random: Random) -> npt.NDArray[np.bool_]:
    """Return which dimensions each box has a side in."""
    shape = (count, spec.boxes, spec.dimensions)
    if not spec.unbounded:
        return np.ones(shape, np.bool_)
    subset = random.integers(1, 1 << spec.dimensions, (*shape[:2], 1))
    mentioned: npt.NDArray[np.bool_] = (subset >> np.arange(spec.dimensions) & 1).astype(np.bool_)
    return mentioned


def _list_boxes(predicate: Predicate) -> list[Box]:
    """Return a box for each part of the OR."""
    parts = predicate.parts if isinstance(predicate, Or) else (predicate,)
    return [conjunct.box for part in parts for conjunct in to_dnf(part)]


def place_in_one_space(
    stream: Stream, *workloads: tuple[Predicate, ...]
) -> tuple[Space, list[list[Boxes]]]:
    """Return one space for all predicates of the workloads, and in it the boxes of each.

    The boxes of a predicate are those that were drawn, although some of them could be merged, in
    order of volume, the largest first.
    """
    unions = [[_list_boxes(predicate) for predicate in predicates] for predicates in workloads]
    space = Space.of(
        (box for predicates in unions for boxes in predicates for box in boxes),
        required=[Column(a.name, a.type) for a in stream if not a.nullable],
    )
    return space, [
        [space.sort_by_volume(space.boxes(boxes)) for boxes in predicates] for predicates in unions
    ]
