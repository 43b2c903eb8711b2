"""Base expressions: `a = v` for some attributes, drawn uniformly or by Zipf's law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.integer_events import ABSENT, IntegerEvents, Numbers

ROWS = 4_096  # for which noise is drawn at a time

Random = np.random.Generator


@dataclass(frozen=True)
class Space:
    """Attributes from 0, each with as many values, and how their popularity falls."""

    dimensions: int
    cardinality: int
    zipf: float


@dataclass(frozen=True, eq=False)
class Bases:
    """Base expression i says `attribute number attribute[i, k] = value[i, k]`, for every k."""

    attribute: Numbers
    value: Numbers

    def __len__(self) -> int:
        return len(self.attribute)


def base_expressions(count: int, size: int, space: Space, random: Random) -> Bases:
    """Expressions over `size` attributes each."""
    free = np.full((count, space.dimensions), ABSENT, np.int32)
    attribute = _free_attributes(free, size, space, random)
    return Bases(attribute, random.integers(0, space.cardinality, attribute.shape, np.int32))


def events_of(bases: Bases, extra: int, space: Space) -> Callable[[int, Random], IntegerEvents]:
    """Draws events: any of the base expressions, and `extra` attributes more."""

    def draw(count: int, random: Random) -> IntegerEvents:
        chosen = random.integers(0, len(bases), count)
        dense = np.full((count, space.dimensions), ABSENT, np.int32)
        np.put_along_axis(dense, bases.attribute[chosen], bases.value[chosen], axis=1)
        if extra:
            more = _free_attributes(dense, extra, space, random)
            values = random.integers(0, space.cardinality, more.shape, np.int32)
            np.put_along_axis(dense, more, values, axis=1)
        return IntegerEvents.from_dense(dense)

    return draw


def _free_attributes(dense: Numbers, size: int, space: Space, random: Random) -> Numbers:
    """For each row `size` attributes of those that are absent, ascending.

    The greatest of logarithms of weights with Gumbel noise are a draw without putting back.
    """
    weights = -space.zipf * np.log(np.arange(1, space.dimensions + 1))
    found = np.empty((len(dense), size), np.int32)
    for start in range(0, len(dense), ROWS):
        rows = dense[start : start + ROWS]
        noise: npt.NDArray[np.float64] = random.gumbel(size=rows.shape) + weights
        noise[rows != ABSENT] = -np.inf
        found[start : start + ROWS] = np.argpartition(noise, -size, axis=1)[:, -size:]
    return np.sort(found, axis=1)
