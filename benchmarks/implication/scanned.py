"""Comparisons of standard evaluation against the number of boxes (Table 5), for one row.

Algorithm 13 counted in plain Python: boxes in order, and sides in order, until one fails. In the
best case the first box has one side and holds the row; in the worst one every box has sides in all
dimensions, of which the last fails. Stored are the sides and the values of the row (Table 6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import mean

import numpy as np

from benchmarks.harness.claims import NeverAbove, Power, SameCounts
from benchmarks.harness.experiment import Experiment, Round, Unit
from benchmarks.implication.contestants import counted
from benchmarks.implication.evaluation import Boxed
from benchmarks.workloads import covering_boxes

BEST, RANDOM, WORST, BOUND = "best case", "random boxes, mean", "worst case", "bound, n · d"
DIMENSIONS = 3
ROWS, FEWEST = 500, 20

Side = tuple[int, float, float]  # the dimension, the least and the greatest value


def comparisons(boxes: Sequence[Sequence[Side]], row: Sequence[float]) -> int:
    """How many values are compared with an interval to evaluate a row.

    >>> comparisons([[(0, 5, 9)], [(0, 1, 3), (1, 1, 3)], [(0, 1, 4)]], [2, 7])
    4
    """
    count = 0
    for box in boxes:
        inside = True
        for dimension, low, high in box:
            count += 1
            inside = low <= row[dimension] <= high
            if not inside:
                break
        if inside:
            break
    return count


def worst(count: int) -> list[list[Side]]:
    first = [(k, 0.0, 10.0) for k in range(DIMENSIONS - 1)]
    return [[*first, (DIMENSIONS - 1, 10.0 + i, 20.0 + i)] for i in range(count)]


def random_mean(count: int, rows: int, seed: int) -> float:
    found = list(covering_boxes(count, attributes=DIMENSIONS, seed=seed).ranges())
    table = Boxed(dimensions=DIMENSIONS).rows(rows, seed)
    columns = [np.asarray(column).tolist() for column in table.columns]
    return mean(comparisons(found, row) for row in zip(*columns, strict=True))


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    row = [5.0] * DIMENSIONS
    best: list[list[Side]] = [[(0, 0.0, 10.0)] for _ in range(size)]
    counts = {
        BEST: comparisons(best, row),
        RANDOM: random_mean(size, max(FEWEST, round(ROWS * scale)), seed),
        WORST: comparisons(worst(size), row),
        BOUND: size * DIMENSIONS,
    }
    least, most = (sum(map(len, boxes)) + DIMENSIONS for boxes in (best, worst(size)))
    stored = f"{least:,} in the best case, {most:,} in the worst"
    contestants = tuple(counted(name, count) for name, count in counts.items())
    yield Round(size, contestants, lambda: {f"at {size:,}, sides and values stored": stored})


SCANNED = Experiment(
    name="evaluation-growth",
    title="Stream sharing: comparisons of standard evaluation, 3 dimensions",
    sizes=(10, 100, 1_000, 5_000),
    size_label="boxes",
    unit=Unit("comparisons per row", "cost", 1.0, counted=True),
    baseline="",
    prepare=_prepare,
    repeats=1,
    claims=(
        SameCounts("Table 5, worst case", WORST, BOUND),
        NeverAbove("Table 5, random boxes", RANDOM, BOUND),
        Power("Table 5, average case", RANDOM, 1),
        Power("Table 5, best case", BEST, 0),
    ),
)
