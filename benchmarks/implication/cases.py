"""Predicates built so that matching is as cheap or as dear as it can be (section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.implication.space import Boxes, Space
from headgate.predicate import Box, Column
from headgate.schema import INT, Interval


@dataclass(frozen=True, slots=True)
class Sizes:
    """Boxes of the stream, boxes of the query, dimensions."""

    n: int = 7
    m: int = 2
    d: int = 3


Case = Callable[[Sizes], tuple[Space, Boxes, Boxes]]


def found_first(sizes: Sizes) -> tuple[Space, Boxes, Boxes]:
    """The first box of the stream mentions one dimension and holds every query box."""
    columns = _columns(sizes)
    first = [Box({columns[0]: Interval(0, 1_000)})]
    others = [Box({columns[0]: Interval(1_000, 1_010 + i)}) for i in range(sizes.n - 1)]
    inside = [Box(dict.fromkeys(columns, Interval(10 + i, 20 + i))) for i in range(sizes.m)]
    return _in_space(inside, first + others)


def never_found(sizes: Sizes) -> tuple[Space, Boxes, Boxes]:
    """Every query box sticks out of every box, in all dimensions at both ends."""
    columns = _columns(sizes)
    inner = [Box(dict.fromkeys(columns, Interval(400 + i, 500 + i))) for i in range(sizes.n)]
    outer = [Box(dict.fromkeys(columns, Interval(10 + i, 900 + i))) for i in range(sizes.m)]
    return _in_space(outer, inner)


def cut_by_all(sizes: Sizes) -> tuple[Space, Boxes, Boxes]:
    """Slabs cut every part in two, dimension by dimension, and only the last box holds them.

    It holds the query boxes as well, but comes last, since slabs have infinite ends.
    """
    columns = _columns(sizes)
    slabs = [
        Box({columns[i % sizes.d]: Interval(100 + 10 * i, 102 + 10 * i)})
        for i in range(sizes.n - 1)
    ]
    last = [Box(dict.fromkeys(columns, Interval(0, 1_000)))]
    query = [Box(dict.fromkeys(columns, Interval(1 + i, 900 + i))) for i in range(sizes.m)]
    return _in_space(query, slabs + last)


def _columns(sizes: Sizes) -> list[Column]:
    return [Column(f"d{k}", INT) for k in range(sizes.d)]


def _in_space(query: list[Box], stream: list[Box]) -> tuple[Space, Boxes, Boxes]:
    space = Space.of(query + stream, required={column for box in query for column in box.sides})
    return space, space.boxes(query), space.boxes(stream)
