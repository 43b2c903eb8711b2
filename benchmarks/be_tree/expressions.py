"""Events that are expressions: BE-Tree, Propagation and a scan (section 8.6.11, Figure 20).

Headgate's own index matches rows, so it has no part in this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.be_tree.contestants import BE_TREE, PROPAGATION, SCAN, be_tree
from benchmarks.be_tree.macro import less, order
from benchmarks.be_tree.overlap_scan import OverlapScan
from benchmarks.be_tree.sweep import PER_EVENT, QUICK, Make, scaled
from benchmarks.be_tree.workloads import ZIPF, names, synthetic, texts
from benchmarks.harness.experiment import Contestant, Experiment, Round
from benchmarks.workloads import Conjunctions
from benchmarks.workloads.event_expressions import event_expressions

if TYPE_CHECKING:
    from benchmarks.matching.matchers import Found

EVENTS, FEWEST = 500, 50
GENERIC = be_tree(BE_TREE.name, directory="generic")  # as the paper has it for such events
SEMANTICS = "stabbing_subscription"
DATA: dict[str, tuple[str, tuple[int, ...], Make, float]] = {
    "": ("uniform", (10_000, 20_000, 50_000), synthetic(), 98),
    "-zipf": ("by Zipf’s law", (10_000, 20_000, 50_000), synthetic(zipf=ZIPF), 56),
    "-names": ("names of cities", (10_000, 25_000, 50_000), names, 89),
    "-texts": ("texts of 64 letters", (4_000, 8_000, 16_000), texts, 96),
}


def experiment(
    suffix: str, what: str, sizes: tuple[int, ...], make: Make, percent: float
) -> Experiment:
    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        count = scaled(size, scale)
        queries = make(size, count, seed)
        events = event_expressions(queries, EVENTS if scale >= QUICK else FEWEST, seed=seed + 1)
        runs = {
            BE_TREE.name: by_be_tree(queries, events),
            PROPAGATION.name: propagation(queries, events),
            SCAN.name: scan(queries, events),
        }
        contestants = (_contestant(name, len(events), run) for name, run in runs.items())
        yield Round(count, tuple(contestants))

    return Experiment(
        name=f"be-tree-expressions{suffix}",
        title=f"BE-Tree paper: events that are expressions, {what}",
        sizes=sizes,
        size_label="queries",
        unit=PER_EVENT,
        baseline=BE_TREE.name,
        prepare=prepare,
        repeats=3,
        claims=(
            order("section 8.6.11, Propagation", (BE_TREE, PROPAGATION)),
            order("section 8.6.11, SCAN", (BE_TREE, SCAN)),
            less("section 8.6.11", PROPAGATION, percent),
        ),
    )


def _contestant(name: str, work: int, run: Callable[[], Found]) -> Contestant:
    from benchmarks.matching.matchers import answers

    return Contestant(name, work, answer=lambda: answers([run()]), run=run)


def by_be_tree(queries: Conjunctions, events: Conjunctions) -> Callable[[], Found]:
    index = GENERIC.build(queries.stream, queries.encoded())
    predicates = [query.where for query in events.queries()]

    def run() -> Found:
        found = index.match_expressions(predicates, semantics=SEMANTICS)  # type: ignore[attr-defined]
        return found.offsets, found.positions

    return run


def propagation(queries: Conjunctions, events: Conjunctions) -> Callable[[], Found]:
    index = PROPAGATION.build(queries.stream, queries.encoded())
    predicates = [query.where for query in events.queries()]

    def run() -> Found:
        found = index.match_ranges(predicates)  # type: ignore[attr-defined]
        return found.offsets, found.positions

    return run


def scan(queries: Conjunctions, events: Conjunctions) -> Callable[[], Found]:
    index = OverlapScan(queries)
    return lambda: index.match(events)


EXPRESSIONS = tuple(experiment(suffix, *what) for suffix, what in DATA.items())
