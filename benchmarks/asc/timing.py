"""How long an event takes: 5,000 queries on 20 attributes, one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.asc.contestants import (
    PER_EVENT,
    Build,
    Fixed,
    Matching,
    adaptive,
    find_fixed_orders,
    in_order,
    make_timed,
)
from benchmarks.asc.workloads import Draw, Make, Selections, d1, d2, large
from benchmarks.harness.claims import Alike, Faster
from benchmarks.harness.experiment import Contestant, Experiment, Fact, Round
from headgate.matching import get_index_class

SCAN, KEYED, BE_TREE, AUTO = "scan", "keyed", "be_tree", "auto"
HYBRID, MACRO, WHOLE = "asc, hybrid", "asc, macro", "asc, whole bitmaps"
WORST, BEST = "asc, worst fixed order", "asc, best fixed order"
SCANNED = 2_000  # events that are enough to time the scan
EVENTS = 20_000
SETTLED = 12  # times that all events come before the clock runs: in two periods orders are found
ADAPTING, FROZEN, UNWATCHED = "adapts", "the same order, fixed", "the same order, not watched"
EVERY_PERIOD = "adapts after every 10,000"
REPEATS, MANY_REPEATS = 15, 41


def plain(work: Selections, kind: str) -> Build:
    def build() -> Matching:
        index = get_index_class(kind).build(work.stream, work.queries)
        index.threads = 1
        return index

    return build


def of_size(make: Make, scale: float, seed: int) -> Selections:
    work = make(scale, seed)
    return replace(work, events=work.events.slice(0, EVENTS))


def time_of_an_event(name: str, subject: str, draw: Draw) -> Experiment:
    @contextmanager
    def prepare(_: int, scale: float, seed: int) -> Iterator[Round]:
        work = of_size(large(draw), scale, seed)
        fixed = find_fixed_orders(work, scale)
        built = {
            KEYED: plain(work, KEYED),
            BE_TREE: plain(work, BE_TREE),
            AUTO: plain(work, AUTO),
            HYBRID: adaptive(work, sequence="hybrid"),
            MACRO: adaptive(work, sequence="macro"),
            WHOLE: adaptive(work, block=0),
            WORST: in_order(work, fixed.worst),
            BEST: in_order(work, fixed.best),
        }
        scanned = work.events.slice(0, SCANNED)
        contestants = (
            make_timed(SCAN, plain(work, SCAN), scanned, f"{scanned.num_rows:,} events"),
            *(make_timed(name, build, work.events, "", SETTLED) for name, build in built.items()),
        )
        yield Round(len(work.queries), contestants, lambda: _report_facts(work, fixed))

    return Experiment(
        name=f"asc-{name}",
        title=f"4 ranges on 20 attributes, {subject}, one thread",
        sizes=(5_000,),
        size_label="queries",
        unit=PER_EVENT,
        baseline=SCAN,
        prepare=prepare,
        clock=time.process_time,
        repeats=REPEATS,
        against=(WORST, AUTO),
        claims=(
            Faster("goal against scan", HYBRID, SCAN, 10, claimant="goal"),
            Faster("goal against the worst order, hybrid", HYBRID, WORST, 1.3, claimant="goal"),
            Faster("goal against the worst order, macro", MACRO, WORST, 1.3, claimant="goal"),
        ),
    )


def _report_facts(work: Selections, fixed: Fixed) -> dict[str, Fact]:
    matches = get_index_class(KEYED).build(work.stream, work.queries).match(work.events)
    dropped = float(np.mean(np.diff(matches.offsets) == 0))
    return {
        "share of events that match nothing": round(dropped, 3),
        "events by which the best and the worst order were found": fixed.events,
    }


@contextmanager
def _prepare_monitoring(_: int, scale: float, seed: int) -> Iterator[Round]:
    work = of_size(large(d1), scale, seed)
    # An index that has found its order, which the fixed ones take over.
    learned: Any = adaptive(work)()
    for _ in range(SETTLED):
        learned.match(work.events)

    def frozen(**options: Any) -> Build:
        def build() -> Matching:
            index: Any = in_order(work, learned.order.sequence, **options)()
            index.order = learned.order
            matcher: Matching = index
            return matcher

        return build

    contestants: tuple[Contestant, ...] = (
        make_timed(ADAPTING, lambda: learned, work.events),
        make_timed(FROZEN, frozen(), work.events),
        # Remembers a single event of each period.
        make_timed(UNWATCHED, frozen(sample=1), work.events),
        make_timed(EVERY_PERIOD, adaptive(work, period=10_000, threshold=0.0), work.events),
    )
    yield Round(len(work.queries), contestants)


MONITORING = Experiment(
    name="asc-monitoring",
    title="What watching and adapting cost, uniform, one thread",
    sizes=(5_000,),
    size_label="queries",
    unit=PER_EVENT,
    baseline=FROZEN,
    prepare=_prepare_monitoring,
    clock=time.process_time,
    repeats=MANY_REPEATS,
    claims=(
        Alike("goal, adapting and fixed", ADAPTING, FROZEN, claimant="goal"),
        Alike("watching alone", FROZEN, UNWATCHED, claimant="goal"),
    ),
)

TIMING = (
    time_of_an_event("time", "uniform", d1),
    time_of_an_event("time-skewed", "skewed", d2),
    MONITORING,
)
