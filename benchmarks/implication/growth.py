"""Comparisons and stored parts against the sizes (Tables 3 and 4), beside the paper's bounds.

The best case is a match at the first comparison. The worst one for a heuristic is a query that
nothing holds; for exact matching it is one that every box cuts before the last one holds it. The
average is that of random predicates.

The bounds of exact matching are exponential in the boxes of the stream. Yet parts are disjoint, and
made of the cells between the ends of n boxes, of which d dimensions have (2n + 1)^d at most: for
given dimensions their number is polynomial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean

from benchmarks.harness.claims import NeverAbove, Power, SameCounts
from benchmarks.harness.experiment import Claim, Experiment, Round, Unit
from benchmarks.implication.contestants import Ready, Variant, make_counted
from benchmarks.implication.pairs import Setting
from headgate.implication.space import Boxes, Space
from headgate.predicate import Box, Column
from headgate.schema import INT, Interval

# Predicates built so that matching is as cheap or as dear as it can be (section 5).


@dataclass(frozen=True, slots=True)
class Sizes:
    """Boxes of the stream, boxes of the query, dimensions."""

    n: int = 7
    m: int = 2
    d: int = 3


Case = Callable[[Sizes], tuple[Space, Boxes, Boxes]]


def covered_by_first(sizes: Sizes) -> tuple[Space, Boxes, Boxes]:
    """Return a stream whose first box mentions one dimension and holds every query box."""
    columns = _columns(sizes)
    first = [Box({columns[0]: Interval(0, 1_000)})]
    others = [Box({columns[0]: Interval(1_000, 1_010 + i)}) for i in range(sizes.n - 1)]
    inside = [Box(dict.fromkeys(columns, Interval(10 + i, 20 + i))) for i in range(sizes.m)]
    return _in_space(inside, first + others)


def never_covered(sizes: Sizes) -> tuple[Space, Boxes, Boxes]:
    """Return query boxes that stick out of every box, in all dimensions at both ends."""
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


HSR = Variant("hsr")
HCR = Variant("hcr", quick_check=False)
BFS, DFS, MIX = (Variant(method, quick_check=False) for method in ("em-bfs", "em-dfs", "em-mix"))
LABELS = {"n": "boxes in a stream predicate", "m": "boxes in a query predicate", "d": "dimensions"}
COMPARISONS = Unit("comparisons of sides", "cost", 1.0, counted=True)
PARTS = Unit("parts stored at once", "cost", 1.0, counted=True)
MAX_SHOWN_BOUND = 1e8  # of a bound, past which it is not shown
PAIRS, MIN_PAIRS = 200, 5  # of random predicates

Bound = Callable[[Sizes], float]
Count = Callable[[Variant, Sizes, float, int], float]  # for sizes, at a scale, from a seed


def exact_bound(s: Sizes) -> float:
    """Return the sum in section 5.5.1, before it is rounded up."""
    return float(sum(s.d * (2 * s.d) ** j for i in range(s.m) for j in range(s.n + i)))


COMPARED: dict[Variant, Bound] = {
    HSR: lambda s: (s.m * s.n + s.m * (s.m - 1) / 2) * s.d,
    HCR: lambda s: s.m * s.n * s.d**2,
    BFS: exact_bound,
    DFS: exact_bound,
    MIX: exact_bound,
}
STORED: dict[Variant, Bound] = {
    BFS: lambda s: (2 * s.d) ** s.n,
    DFS: lambda s: (s.n - 1) * (2 * s.d - 1) + 2 * s.d,
    MIX: lambda s: max(0, s.n - 2) * (2 * s.d - 1) * 2 * s.d + (2 * s.d) ** 2,
}


def count_comparisons(case: Case) -> Count:
    return lambda variant, sizes, *_: _match(case, variant, sizes).tally.comparisons


def count_parts(case: Case) -> Count:
    return lambda variant, sizes, *_: _match(case, variant, sizes).tally.max_parts


def count_worst_comparisons(variant: Variant, sizes: Sizes, *_: object) -> float:
    case = cut_by_all if variant.is_exact else never_covered
    return _match(case, variant, sizes).tally.comparisons


def count_mean_comparisons(variant: Variant, sizes: Sizes, scale: float, seed: int) -> float:
    """Return the mean for random, possibly unbounded predicates, with about half the sides."""
    setting = Setting(sizes.d, sizes.m, sizes.n, unbounded=True)
    counts = []
    for query, stream in (pairs := setting.pairs(max(MIN_PAIRS, round(PAIRS * scale)), seed=seed)):
        ready = Ready(pairs.space, query, stream, variant)
        ready.match()
        counts.append(ready.tally.comparisons)
    return mean(counts)


def _match(case: Case, variant: Variant, sizes: Sizes) -> Ready:
    space, query, stream = case(sizes)
    ready = Ready(space, query, stream, variant)
    ready.match()
    return ready


def make_growth(
    name: str,
    subject: str,
    vary: str,
    values: tuple[int, ...],
    count: Count,
    further: tuple[Claim, ...] = (),
    *,
    unit: Unit = COMPARISONS,
) -> Experiment:
    """Return an experiment in which one of n, m and d varies."""
    bounds = COMPARED if unit is COMPARISONS else STORED
    table = "Table 3" if unit is COMPARISONS else "Table 4"

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        sizes = Sizes(**{vary: size})
        counts = {variant.name: count(variant, sizes, scale, seed) for variant in bounds}
        # Bounds are drawn as lines of their own, unless they are far beyond what was counted.
        counts |= {
            bound_of(variant, unit): limit
            for variant, bound in bounds.items()
            if (limit := bound(sizes)) <= MAX_SHOWN_BOUND
        }
        yield Round(size, tuple(make_counted(name, number) for name, number in counts.items()))

    within = (
        NeverAbove(f"{table}, {variant.name}", variant.name, bound_of(variant, unit))
        for variant in bounds
    )
    return Experiment(
        name=f"implication-growth-{name}",
        title=f"Stream sharing: {unit.label}, {subject}",
        sizes=values,
        size_label=LABELS[vary],
        unit=unit,
        baseline="",
        prepare=prepare,
        repeats=1,
        claims=(*within, *further),
    )


def bound_of(variant: Variant, unit: Unit) -> str:
    return "bound, EM" if unit is COMPARISONS and variant.is_exact else f"bound, {variant.name}"


STREAM_BOXES = (4, 7, 13, 25, 49)
SAME = (
    SameCounts("section 5.5.1, depth first compares as often", DFS.name, BFS.name),
    SameCounts("section 5.5.1, mixed compares as often", MIX.name, BFS.name),
)
GROWTH = (
    make_growth(
        "best",
        "best case",
        "m",
        (1, 2, 4, 8, 16),
        count_comparisons(covered_by_first),
        tuple(
            Power(f"Table 3, best case, {variant.name}", variant.name, 1) for variant in COMPARED
        ),
    ),
    make_growth("average", "random predicates", "n", (5, 10, 20, 40), count_mean_comparisons),
    make_growth(
        "stream",
        "worst case",
        "n",
        STREAM_BOXES,
        count_worst_comparisons,
        (
            Power("Table 3, HSR+QC, power", HSR.name, 1),
            Power("Table 3, HCR, power", HCR.name, 1),
            Power("polynomial in 3 dimensions", BFS.name, 4, claimant="ours"),
            *SAME,
        ),
    ),
    make_growth(
        "query",
        "worst case",
        "m",
        (1, 2, 4, 8, 16),
        count_worst_comparisons,
        (Power("Table 3, HSR+QC, power", HSR.name, 2), Power("Table 3, HCR, power", HCR.name, 1)),
    ),
    make_growth(
        "dimensions",
        "worst case",
        "d",
        (2, 3, 4, 6),
        count_worst_comparisons,
        (
            Power("Table 3, HSR+QC, power", HSR.name, 1),
            Power("Table 3, HCR, power", HCR.name, 2),
            *SAME,
        ),
    ),
    make_growth(
        "parts",
        "worst case",
        "n",
        STREAM_BOXES,
        count_parts(cut_by_all),
        (
            Power("Table 4, EM-DFS, power", DFS.name, 1),
            Power("Table 4, EM-MIX, power", MIX.name, 1),
            Power("polynomial in 3 dimensions", BFS.name, 3, claimant="ours"),
        ),
        unit=PARTS,
    ),
)
