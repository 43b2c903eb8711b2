"""The boxes of the stream-sharing paper's evaluation benchmark (its section 6.3).

There, a predicate is an OR of thousands of boxes: some of them tile a part of the space, without
gap or overlap, and the others lie inside that part, normally distributed about its middle. So the
part's volume is the share of uniform events that any box matches. Here each box is a query.

The paper says neither where that part lies nor how long its sides are; we take a cube at a random
place. Boxes of the second kind are as large as tiles, and moved inside where they stick out.

The plain `boxes(5_000, attributes=3, constrained=3, …)` spreads its boxes over the whole space, and
each box matches as often as was asked for.
"""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.boxes import DOMAIN, Boxes, Steps, box_stream, steps_per_unit

DEVIATIONS = 3.0  # from the middle to the side of the part that is covered

Random = np.random.Generator


def covering_boxes(
    count: int,
    *,
    attributes: int = 3,
    selectivity: float = 0.01,
    overlap: float = 0.5,
    seed: int,
) -> Boxes:
    """Boxes of which some match a share `selectivity` of `box_events`, the others none besides.

    The share `overlap` of the boxes lies over those that tile the part.

    >>> found = covering_boxes(4, attributes=1, selectivity=0.5, seed=1)
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
    """Boxes from start to end that tile one of this size: halved again and again, about."""
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
    """Boxes as large as tiles, about the middle of a cube and not beyond it."""
    like = tiles[random.integers(0, len(tiles), count)]
    size = like[:, 1] - like[:, 0]
    middle = random.normal(side / 2, side / 2 / DEVIATIONS, size.shape)
    start = np.clip(np.rint(middle - size / 2).astype(np.int64), 0, side - size)
    return np.stack((start, start + size), axis=1)
