"""Time to build and size, dynamic and batch, with bitmaps and without (Tables VII and VIII)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.be_tree.contestants import AUTO, Kind, be_tree
from benchmarks.be_tree.macro import order
from benchmarks.be_tree.sweep import Make, scaled
from benchmarks.be_tree.workloads import ZIPF, names, synthetic, texts
from benchmarks.harness.experiment import Contestant, Experiment, Fact, Round, Unit
from benchmarks.workloads import Conjunctions

DYNAMIC = be_tree("BE-Tree, no bitmap", evaluation="direct")
BATCH = be_tree("BE-Tree batch, no bitmap", construction="batch", evaluation="direct")
BITMAP = be_tree("BE-Tree batch, bitmap", construction="batch", evaluation="bitmap")
KINDS = (DYNAMIC, BATCH, BITMAP, AUTO)
DATA: dict[str, tuple[str, tuple[int, ...], Make]] = {
    "": ("uniform", (20_000, 100_000), synthetic()),
    "-zipf": ("by Zipf’s law", (20_000, 100_000), synthetic(zipf=ZIPF)),
    "-names": ("names of cities", (10_000, 50_000), names),
    "-texts": ("texts of 64 letters", (4_000, 16_000), texts),
}


def experiment(suffix: str, what: str, sizes: tuple[int, ...], make: Make) -> Experiment:
    """All build from arrays, until the first event can be matched; `size` is scaled."""

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        count = scaled(size, scale)
        queries = make(size, count, seed)
        contestants = tuple(_building(kind, queries) for kind in KINDS)
        yield Round(count, contestants, lambda: dict(_sizes(queries, count)))

    return Experiment(
        name=f"be-tree-build{suffix}",
        title=f"BE-Tree paper: time to build, {what}",
        sizes=sizes,
        size_label="queries",
        unit=Unit("µs per query", "cost", 1e6),
        baseline=DYNAMIC.name,
        prepare=prepare,
        repeats=3,
        claims=(order("section 8.7.1, Tables VII and VIII", (DYNAMIC, BATCH, BITMAP)),),
    )


def _building(kind: Kind, queries: Conjunctions) -> Contestant:
    encoded = queries.encoded()
    event = queries.events(1, seed=1).table()

    def run() -> int:
        return kind.build(queries.stream, encoded).match(event).total

    return Contestant(kind.name, len(queries), answer=lambda: (run(),), run=run)


def _sizes(queries: Conjunctions, count: int) -> Iterator[tuple[str, Fact]]:
    encoded = queries.encoded()
    for kind in KINDS:
        size = kind.build(queries.stream, encoded).describe()["bytes"]
        yield f"{kind.name} at {count:,}, bytes a query", round(size / count)


CONSTRUCTION = tuple(experiment(suffix, *what) for suffix, what in DATA.items())
