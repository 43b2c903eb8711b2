"""Random unions of boxes, and the cells that they hold, one by one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from headgate.implication.parts import Part
from headgate.implication.space import Boxes, Space
from headgate.predicate import NULL, Box, Column
from headgate.predicate.box import Side
from headgate.schema import DOUBLE, INT, Interval
from tests.strategies import Dice

COLUMNS = tuple(Column(name, INT if at % 2 else DOUBLE) for at, name in enumerate("abcd"))

Grid = npt.NDArray[np.bool_]


def random_box(dice: Dice, dimensions: int, size: int) -> Box:
    """A box that mentions most dimensions: ends open, closed or infinite, and NULL."""
    sides = {column: _side(dice, column, size) for column in COLUMNS[:dimensions]}
    return Box({column: side for column, side in sides.items() if side is not None})


def _side(dice: Dice, column: Column, size: int) -> Side | None:
    kind = dice.below(10)
    if kind < 2:
        return NULL if kind else None
    low, high = sorted(column.type.value(_ordinal(column, dice.below(size))) for _ in range(2))
    return Interval.between(
        column.type,
        None if kind == 2 else low,
        None if kind == 3 else high,
        low_open=dice.below(2) == 1,
        high_open=dice.below(2) == 1,
    )


def _ordinal(column: Column, number: int) -> object:
    return column.type.ordinal(float(number) if column.type == DOUBLE else number)


def grid(parts: Iterable[Part], space: Space) -> Grid:
    """Every cell of a space: is it in one of these parts? No two of them may share one."""
    cells = np.zeros(tuple(space.counts), np.bool_)
    for part in parts:
        cells[tuple(slice(*side) for side in part)] = True
    return cells


def as_set(boxes: Boxes) -> list[list[int]]:
    """The boxes, whatever their order."""
    return sorted(np.concatenate((boxes.low, boxes.high), axis=1).tolist())
