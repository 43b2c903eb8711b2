"""Throughput of evaluating one disjunctive predicate (Figures 16 to 18, Table 8).

Boxes are those of `generate_covering_boxes`: by default 100 in 3 dimensions, half of which overlap
the others, and 1 % of the rows are inside. Everybody starts from an Arrow table and ends with a
mask, on one thread; what is called "kernels" starts from the cells of the rows. The trees of
libspatialindex get fewer rows, since they are slower; they find all hits, and have no short
circuit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.harness.claims import (
    AcrossSizes,
    AtSizes,
    Faster,
    NeverAbove,
    Order,
    PaysFrom,
    Power,
    SameCounts,
    Trend,
)
from benchmarks.harness.experiment import Claim, Contestant, Experiment, Look, Round, Unit
from benchmarks.implication.contestants import make_counted
from benchmarks.workloads import generate_box_events, generate_covering_boxes
from headgate.predicate import Predicate, disjunction
from headgate.schema import Stream

STANDARD, VECTORISED = "SE, scalar", "SE, vectorised"
TREE, TREE_SHORT = "IE, array tree", "IE+SC, array tree"
R_TREE, R_STAR = "IE, R-tree", "IE, R*-tree"
BEST = "bitmaps (ours)"
METHODS: dict[str, dict[str, Any]] = {
    STANDARD: {"method": "standard"},
    VECTORISED: {"method": "vectorised"},
    TREE: {"method": "tree", "short_circuit": False},
    TREE_SHORT: {"method": "tree"},
    R_TREE: {"method": "r-tree"},
    R_STAR: {"method": "r*-tree"},
    BEST: {"method": "bitmap"},
}
LIBRARY = (R_TREE, R_STAR)
ROWS, LIBRARY_ROWS, MIN_ROWS = 200_000, 20_000, 500
SLOW = 1_000  # boxes, from which on there are fewer rows
REPEATS = 15  # with 5, two runs differed by half
PER_MILLISECOND = Unit("rows per ms", "rate", 1e-3)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Boxed:
    """A predicate of boxes; selectivity and overlap in percent."""

    boxes: int = 100
    dimensions: int = 3
    selectivity: int = 1
    overlap: int = 50

    def predicate(self, seed: int) -> tuple[Stream, Predicate]:
        boxes = generate_covering_boxes(
            self.boxes,
            attributes=self.dimensions,
            selectivity=self.selectivity / 100,
            overlap=self.overlap / 100,
            seed=seed,
        )
        return boxes.stream, disjunction(query.where for query in boxes.queries())

    def rows(self, count: int, seed: int) -> pa.Table:
        return generate_box_events(count, attributes=self.dimensions, seed=seed + 1)


def make_masking(name: str, stream: Stream, predicate: Predicate) -> Callable[[pa.Table], Mask]:
    from headgate.implication.evaluation import Evaluator

    return Evaluator.of(predicate, stream, **METHODS[name]).mask


def from_table(name: str, stream: Stream, predicate: Predicate, rows: pa.Table) -> Contestant:
    """Return a contestant that goes the whole way, from an Arrow table to a mask."""
    mask = make_masking(name, stream, predicate)
    return Contestant(
        name,
        rows.num_rows,
        answer=lambda: tuple(mask(rows.slice(0, MIN_ROWS)).tolist()),
        run=lambda: mask(rows),
        note=f"{rows.num_rows:,} rows",
    )


def from_cells(name: str, stream: Stream, predicate: Predicate, rows: pa.Table) -> Contestant:
    """Return a contestant that is timed on what comes after values have got their cells."""
    from headgate.events import batch_from_rows
    from headgate.implication.evaluation import Evaluator
    from headgate.implication.evaluation.evaluator import BoxFilter

    evaluator = Evaluator.of(predicate, stream, **METHODS[name])
    assert isinstance(evaluator.row_filter, BoxFilter)
    cut, judge = evaluator.row_filter.grid, evaluator.row_filter.cell_filter
    batch = batch_from_rows(rows, stream, columns=evaluator.columns)
    # Cells are computed once, off the clock; the array is reused, hence the copy.
    chunks = [(cells.copy(), stop - start) for cells, start, stop in cut.iter_cells(batch)]
    mask = np.empty(rows.num_rows, np.bool_)

    def run() -> None:
        at = 0
        for cells, size in chunks:
            judge.filter(cells, mask[at : at + size])
            at += size

    def answer() -> tuple[object, ...]:
        run()
        return tuple(mask[:MIN_ROWS].tolist())

    return Contestant(name, rows.num_rows, answer, run, note=f"{rows.num_rows:,} rows")


SIZE_LABELS = {"overlap": "percent of overlap", "selectivity": "percent of rows inside"}


def make_evaluation(
    name: str,
    title: str,
    varied: str,
    values: tuple[int, ...],
    claims: tuple[Claim, ...],
    *,
    setting: Boxed | None = None,
    kernels: bool = False,
    linear: bool = False,
) -> Experiment:
    """Return an experiment in which one number of the setting varies."""
    # the kernels start from the cells of rows, everybody else from an Arrow table
    start = from_cells if kernels else from_table

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        options: dict[str, Any] = {varied: size}
        chosen = replace(setting or Boxed(), **options)
        stream, predicate = chosen.predicate(seed)
        # Many boxes make every method slower, so they get fewer rows.
        slower = max(1, chosen.boxes // SLOW)
        rows = chosen.rows(max(MIN_ROWS, round(ROWS * scale / slower)), seed)
        fewer = rows.slice(0, max(MIN_ROWS, round(LIBRARY_ROWS * scale / slower)))
        contestants = (
            start(method, stream, predicate, fewer if method in LIBRARY else rows)
            for method in METHODS
        )
        yield Round(size, tuple(contestants))

    return Experiment(
        name=f"evaluation-{name}",
        title=f"Stream sharing: {title}",
        sizes=values,
        size_label=SIZE_LABELS.get(varied, varied),
        unit=PER_MILLISECOND,
        baseline=STANDARD,
        prepare=prepare,
        repeats=REPEATS,
        claims=claims,
        look=Look(linear=linear),
        clock=time.process_time,
    )


def faster(source: str, name: str, times: float, claimant: str = "paper") -> Faster:
    return Faster(source, name, STANDARD, times, claimant=claimant)


GOALS = (
    AtSizes(faster("goal at 10 %", BEST, 10, "goal"), (10,)),
    AtSizes(faster("goal at 10 %, the tree", TREE_SHORT, 10, "goal"), (10,)),
    AtSizes(faster("goal at 75 %", BEST, 1.5, "goal"), (75,)),
    AtSizes(faster("goal at 75 %, the tree", TREE_SHORT, 1.5, "goal"), (75,)),
)
SELECTIVITIES = (1, 10, 25, 50, 75, 100)
BY_SELECTIVITY = (
    Trend("Figure 18, index-based", TREE, "falls"),
    Trend("Figure 18, standard", STANDARD, "rises"),
    AtSizes(Order("Figure 18, standard before index-based", (STANDARD, TREE)), (75, 100)),
    AtSizes(
        Order("Figure 18, short circuit before standard", (TREE_SHORT, STANDARD)), SELECTIVITIES[:5]
    ),
    AtSizes(Order("Figure 18, standard before short circuit", (STANDARD, TREE_SHORT)), (100,)),
    *GOALS,
)


def table_8(
    selectivity: int, with_index: float, with_short: float, goal: float, *, kernels: bool = False
) -> Experiment:
    return make_evaluation(
        f"overlap-{selectivity}{'-kernels' if kernels else ''}",
        f"evaluation by overlap, {selectivity} % of the rows{', kernels alone' if kernels else ''}",
        "overlap",
        (0, 15, 25, 30, 50),
        (
            faster(f"Table 8, index-based, {selectivity} %", TREE, with_index),
            faster(f"Table 8, with short circuit, {selectivity} %", TREE_SHORT, with_short),
            faster(f"goal at {selectivity} %", BEST, goal, "goal"),
        ),
        setting=Boxed(selectivity=selectivity),
        kernels=kernels,
        linear=True,
    )


EVALUATION = (
    make_evaluation(
        "dimensions",
        "evaluation by dimensions, 100 boxes, 1 % of the rows",
        "dimensions",
        (2, 3, 4, 6, 8, 10),
        (
            Order("Figure 16, index-based before standard", (TREE, STANDARD)),
            Faster("Figure 16, gain by the short circuit", TREE_SHORT, TREE, 1.2),
            Trend("Figure 16, standard", STANDARD, "falls"),
            Trend("Figure 16, index-based", TREE, "falls"),
            Trend("Figure 16, short circuit", TREE_SHORT, "falls"),
        ),
    ),
    make_evaluation(
        "boxes",
        "evaluation by boxes, 3 dimensions, 1 % of the rows",
        "boxes",
        (4, 10, 16, 32, 100, 300, 1_000, 5_000),
        (
            AtSizes(
                Order("Figure 17, index-based before standard", (TREE, STANDARD)),
                (10, 100, 1_000, 5_000),
            ),
            Trend("Figure 17, standard", STANDARD, "falls"),
            Trend("Figure 17, index-based", TREE, "falls"),
            AcrossSizes(
                "Figure 17, index at 5,000 before standard at 10", TREE, 5_000, STANDARD, 10
            ),
            PaysFrom("from where on the tree pays", TREE_SHORT, STANDARD),
            PaysFrom("from where on bitmaps pay", BEST, STANDARD),
            PaysFrom("from where on bitmaps pay against the vectorised", BEST, VECTORISED),
            PaysFrom("from where on the R*-tree pays", R_STAR, STANDARD),
            PaysFrom("from where on the R-tree pays", R_TREE, STANDARD),
        ),
    ),
    make_evaluation(
        "selectivity",
        "evaluation by selectivity, 100 boxes, 3 dimensions",
        "selectivity",
        SELECTIVITIES,
        BY_SELECTIVITY,
    ),
    make_evaluation(
        "selectivity-kernels",
        "evaluation by selectivity, kernels alone",
        "selectivity",
        SELECTIVITIES,
        BY_SELECTIVITY,
        kernels=True,
    ),
    table_8(10, 6, 10, 10),
    table_8(10, 6, 10, 10, kernels=True),
    table_8(75, 0.74, 1.5, 1.5),
    table_8(75, 0.74, 1.5, 1.5, kernels=True),
)


# Comparisons of standard evaluation against the number of boxes (Table 5), for one row.
#
# Algorithm 13 counted in plain Python: boxes in order, and sides in order, until one fails. In
# the best case the first box has one side and holds the row; in the worst one every box has sides
# in all dimensions, of which the last fails. Stored are the sides and the values of the row
# (Table 6).

BEST_CASE, RANDOM, WORST, BOUND = "best case", "random boxes, mean", "worst case", "bound, n · d"
DIMENSIONS = 3
SCANNED_ROWS, MIN_SCANNED_ROWS = 500, 20

Side = tuple[int, float, float]  # the dimension, the least and the greatest value


def comparisons(boxes: Sequence[Sequence[Side]], row: Sequence[float]) -> int:
    """Return how many values are compared with an interval to evaluate a row.

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
    boxes = list(generate_covering_boxes(count, attributes=DIMENSIONS, seed=seed).ranges())
    table = Boxed(dimensions=DIMENSIONS).rows(rows, seed)
    columns = [np.asarray(column).tolist() for column in table.columns]
    return mean(comparisons(boxes, row) for row in zip(*columns, strict=True))


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    row = [5.0] * DIMENSIONS
    best: list[list[Side]] = [[(0, 0.0, 10.0)] for _ in range(size)]
    counts = {
        BEST_CASE: comparisons(best, row),
        RANDOM: random_mean(size, max(MIN_SCANNED_ROWS, round(SCANNED_ROWS * scale)), seed),
        WORST: comparisons(worst(size), row),
        BOUND: size * DIMENSIONS,
    }
    least, most = (sum(map(len, boxes)) + DIMENSIONS for boxes in (best, worst(size)))
    stored = f"{least:,} in the best case, {most:,} in the worst"
    contestants = tuple(make_counted(name, count) for name, count in counts.items())
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
        Power("Table 5, best case", BEST_CASE, 0),
    ),
)
