"""Range queries as boxes: a few attributes, of which each query constrains some by BETWEEN.

Events are uniform over the domain, so a box matches with the product of its relative widths. That
product is the same for every box, and is what was asked for; how it divides among the sides is
drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.queries import Query, Source
from headgate.schema import DOUBLE, INT, Attribute, Stream, Type
from headgate.sql import WhereReader

DOMAIN = 1_000_000  # the number of values that an attribute takes: 0 … 999,999 or 0.000 … 999.999
THOUSANDTHS = 1_000
EVENNESS = 4.0  # of the sides of a box; the larger, the more alike

Steps = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Number = int | float
_NUMBERS: dict[Type, Callable[[float], Number]] = {DOUBLE: float, INT: int}


@dataclass(frozen=True, eq=False)
class Boxes:
    """Box i says `low[i, k] <= attribute number sides[i, k] <= high[i, k]`, for every k."""

    stream: Stream
    sides: Steps
    low: Values
    high: Values

    def __len__(self) -> int:
        return len(self.sides)

    def ranges(self) -> Iterator[list[tuple[int, Number, Number]]]:
        """Yield the sides of each box: attribute's number, least and greatest value."""
        number: list[Callable[[float], Number]] = [_NUMBERS[a.type] for a in self.stream]
        rows = zip(self.sides.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        for sides in (zip(*row, strict=True) for row in rows):
            yield [(side, number[side](low), number[side](high)) for side, low, high in sides]

    def where_clauses(self) -> Iterator[str]:
        """Yield each box as a WHERE clause.

        >>> next(generate_boxes(1, constrained=2, matching=0.1, seed=1).where_clauses())
        'a4 BETWEEN 506.814 AND 921.299 AND a8 BETWEEN 571.719 AND 812.981'
        """
        names = self.stream.names
        for sides in self.ranges():
            yield " AND ".join(f"{names[i]} BETWEEN {low} AND {high}" for i, low, high in sides)

    def queries(self) -> list[Query]:
        """Return each box as a query, with the ids box0, box1, …"""
        read = WhereReader(self.stream).read
        source = (Source(self.stream, self.stream.name),)
        clauses = enumerate(self.where_clauses())
        return [Query(f"box{i}", source, read(clause)) for i, clause in clauses]


def box_stream(attributes: int = 10) -> Stream:
    """Return the stream `events` with attributes a0, a1, …, in turns DOUBLE and INT."""
    return Stream(
        "events", tuple(Attribute(f"a{i}", INT if i % 2 else DOUBLE) for i in range(attributes))
    )


def generate_boxes(
    count: int,
    *,
    attributes: int = 10,
    constrained: int = 3,
    matching: float = 0.001,
    seed: int,
) -> Boxes:
    """Return boxes that each match an event with the probability `matching`."""
    random = np.random.default_rng(seed)
    stream = box_stream(attributes)
    sides = np.sort(random.permuted(_number_attributes(count, attributes), axis=1)[:, :constrained])
    shares = random.dirichlet([EVENNESS] * constrained, count)
    widths = np.maximum(1, np.rint(DOMAIN * matching**shares)).astype(np.int64)
    low = random.integers(0, DOMAIN - widths, endpoint=True)
    steps = steps_per_unit(stream)[sides]
    return Boxes(stream, sides, low / steps, (low + widths - 1) / steps)


def generate_box_events(count: int, *, attributes: int = 10, seed: int) -> pa.Table:
    """Return events uniform over the domain of every attribute."""
    random = np.random.default_rng(seed)
    stream = box_stream(attributes)
    steps = random.integers(0, DOMAIN, (attributes, count))
    columns: list[pa.Array[Any]] = [
        pa.array(steps[i] / THOUSANDTHS if a.type == DOUBLE else steps[i], a.type.arrow)
        for i, a in enumerate(stream)
    ]
    return pa.Table.from_arrays(columns, names=list(stream.names))


def _number_attributes(count: int, attributes: int) -> Steps:
    """Return the numbers of all attributes, once for each box."""
    return np.tile(np.arange(attributes), (count, 1))


def steps_per_unit(stream: Stream) -> Steps:
    """Return how finely the values of each attribute are divided."""
    return np.array([THOUSANDTHS if a.type == DOUBLE else 1 for a in stream])


# The boxes of the stream-sharing paper's evaluation benchmark (its section 6.3).
#
# There, a predicate is an OR of thousands of boxes: some of them tile a part of the space,
# without gap or overlap, and the others lie inside that part, normally distributed about its
# middle. So the part's volume is the share of uniform events that any box matches. Here each box
# is a query.
#
# The paper says neither where that part lies nor how long its sides are; we take a cube at a
# random place. Boxes of the second kind are as large as tiles, and moved inside where they stick
# out.
#
# The plain `boxes(5_000, attributes=3, constrained=3, …)` spreads its boxes over the whole space,
# and each box matches as often as was asked for.

DEVIATIONS = 3.0  # from the middle to the side of the part that is covered

Random = np.random.Generator


def generate_covering_boxes(
    count: int,
    *,
    attributes: int = 3,
    selectivity: float = 0.01,
    overlap: float = 0.5,
    seed: int,
) -> Boxes:
    """Return boxes of which some match a share `selectivity` of events, the others none besides.

    The share `overlap` of the boxes lies over those that tile the part.

    >>> found = generate_covering_boxes(4, attributes=1, selectivity=0.5, seed=1)
    >>> print("\\n".join(sorted(found.where_clauses())))
    a0 BETWEEN 236.594 AND 509.116
    a0 BETWEEN 241.736 AND 514.258
    a0 BETWEEN 448.302 AND 675.778
    a0 BETWEEN 509.117 AND 736.593
    """
    random = np.random.default_rng(seed)
    stream = box_stream(attributes)
    side = round(DOMAIN * selectivity ** (1 / attributes))
    corner = random.integers(0, DOMAIN - side, attributes, endpoint=True)
    tiles = _tiles(max(1, round(count * (1 - overlap))), np.full(attributes, side), random)
    inside = _inside(count - len(tiles), tiles, side, random)
    start, end = np.moveaxis(random.permutation(np.concatenate((tiles, inside))), 1, 0)
    sides = np.tile(np.arange(attributes), (count, 1))
    steps = steps_per_unit(stream)
    return Boxes(stream, sides, (corner + start) / steps, (corner + end - 1) / steps)


def _tiles(count: int, size: Steps, random: Random) -> Steps:
    """Return boxes from start to end that tile one of this size: halved again and again, about."""
    finished: list[Steps] = []
    pending = [(np.stack((np.zeros_like(size), size)), count)]
    while pending:
        box, parts = pending.pop()
        if parts == 1:
            finished.append(box)
            continue
        first = parts // 2
        axis = int(np.argmax(box[1] - box[0]))
        share = first / parts + random.uniform(-0.1, 0.1) / parts
        cut = box[0, axis] + round((box[1, axis] - box[0, axis]) * share)
        lower, upper = box.copy(), box.copy()
        lower[1, axis] = upper[0, axis] = cut
        pending += [(lower, first), (upper, parts - first)]
    return np.array(finished)


def _inside(count: int, tiles: Steps, side: int, random: Random) -> Steps:
    """Return boxes as large as tiles, about the middle of a cube and not beyond it."""
    like = tiles[random.integers(0, len(tiles), count)]
    size = like[:, 1] - like[:, 0]
    middle = random.normal(side / 2, side / 2 / DEVIATIONS, size.shape)
    start = np.clip(np.rint(middle - size / 2).astype(np.int64), 0, side - size)
    return np.stack((start, start + size), axis=1)
