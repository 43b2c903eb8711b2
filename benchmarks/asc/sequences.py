"""Orders of evaluation compared: by data set, and by the number of p-attributes (Figures 6, 7)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from benchmarks.asc.contestants import (
    AHEAD_HYBRID,
    AHEAD_MACRO,
    BEST,
    EVALUATED,
    HYBRID,
    MACRO,
    PER_EVENT,
    PERIOD,
    TICKETS,
    TICKETS_BY_QUERIES,
    WORST,
    Build,
    Fixed,
    Passed,
    adaptive,
    find_fixed_orders,
    make_counted,
    make_timed,
    orders,
    pass_events,
    summarise_agreement,
)
from benchmarks.asc.workloads import (
    Q1_ON_D1,
    Q1_ON_D2,
    Make,
    Selections,
    connections,
    d1,
    d2,
    flights_of_a_year,
    large,
    synthetic,
)
from benchmarks.harness.claims import Faster, Near, Order, Trend
from benchmarks.harness.experiment import Claim, Contestant, Experiment, Fact, Look, Round, Unit
from benchmarks.workloads import SELECTION_SETS

NEAR = 5.0  # percent: what we take "approximate" to mean
GOAL = 3.0  # percent
P_ATTRIBUTES = (6, 7, 8, 10, 15)
AS_IT_COMES = "asc as it comes (λ = 100,000, μ = 0.1)"
MIN_PERIOD_EVENTS = 500  # events of a period, at any scale


def period(scale: float) -> int:
    return max(MIN_PERIOD_EVENTS, round(PERIOD * min(1.0, scale)))


def make_counting_round(work: Selections, size: int, shown: str, scale: float) -> Round:
    """Return all orders, counted."""
    fixed = find_fixed_orders(work, scale)
    heard: dict[str, Passed] = {}
    contestants = tuple(
        make_counted(name, build, work.events, heard)
        for name, build in orders(work, fixed, period(scale)).items()
    )
    return Round(size, contestants, lambda: report_facts(shown, fixed, heard))


def report_facts(shown: str, fixed: Fixed, heard: Mapping[str, Passed]) -> dict[str, Fact]:
    """Return what else is known of the events and the orders."""
    hybrid = heard[HYBRID]
    return {
        f"{shown}share of events that match nothing": round(hybrid.dropped / hybrid.events, 3),
        f"{shown}share of micro-arrows (Hybrid)": round(hybrid.micro, 3),
        f"{shown}events by which SEQ best and worst were found": fixed.events,
    }


def figure_6(source: str, *, beats_best: bool) -> tuple[Claim, ...]:
    better = (Order(f"{source}, Hybrid and SEQ best", (HYBRID, BEST)),) if beats_best else ()
    return (
        Order(f"{source}, Macro and Ticket Routing", (MACRO, TICKETS)),
        Order(f"{source}, Hybrid and Ticket Routing", (HYBRID, TICKETS)),
        Order(f"{source}, Hybrid and Ticket Routing by queries", (HYBRID, TICKETS_BY_QUERIES)),
        Near(f"{source}, Macro near SEQ best", MACRO, BEST, NEAR),
        Near(f"{source}, Hybrid near SEQ best", HYBRID, BEST, NEAR),
        *better,
        Near("looking ahead, Macro", AHEAD_MACRO, BEST, GOAL, claimant="goal"),
        Near("looking ahead, Hybrid", AHEAD_HYBRID, BEST, GOAL, claimant="goal"),
    )


def of_data(name: str, subject: str, make: Make, *claims: Claim) -> Iterator[Experiment]:
    """Yield a data set, once by what is evaluated and once by time."""

    @contextmanager
    def prepare(_: int, scale: float, seed: int) -> Iterator[Round]:
        work = make(scale, seed)
        yield make_counting_round(work, work.events.num_rows, "", scale)

    @contextmanager
    def prepare_timed(_: int, scale: float, seed: int) -> Iterator[Round]:
        work = make(scale, seed)
        built = orders(work, find_fixed_orders(work, scale), period(scale))
        built[AS_IT_COMES] = adaptive(work)
        contestants = tuple(make_timed(name, build, work.events) for name, build in built.items())
        yield Round(work.events.num_rows, contestants)

    # what is evaluated is counted, exactly and once; by time, all take turns
    yield Experiment(
        name=f"asc-sequences-{name}",
        title=f"ASC paper: orders of evaluation, {subject}",
        sizes=(1,),
        size_label="events",
        unit=EVALUATED,
        baseline=WORST,
        prepare=prepare,
        repeats=1,
        against=(BEST,),
        claims=claims,
    )
    yield Experiment(
        name=f"asc-sequences-{name}-time",
        title=f"ASC paper: orders of evaluation by time, {subject}",
        sizes=(1,),
        size_label="events",
        unit=PER_EVENT,
        baseline=WORST,
        prepare=prepare_timed,
        clock=time.process_time,
        repeats=5,
        against=(BEST,),
        claims=(Faster("by the clock", AS_IT_COMES, WORST, 1.0, claimant="goal"),),
    )


@contextmanager
def _attributes(size: int, scale: float, seed: int) -> Iterator[Round]:
    work = synthetic(SELECTION_SETS[f"Q3-{size}"], d2)(scale, seed)
    yield make_counting_round(work, size, f"at {size}, ", scale)


ATTRIBUTES = Experiment(
    name="asc-attributes",
    title="ASC paper: number of p-attributes, Q3 on D2",
    sizes=P_ATTRIBUTES,
    size_label="p-attributes",
    unit=EVALUATED,
    baseline=WORST,
    prepare=_attributes,
    repeats=1,
    against=(BEST,),
    claims=(
        *(
            Trend(f"Figure 7, {first} and {second}", first, "rises", apart_from=second)
            for first, second in ((WORST, TICKETS), (WORST, HYBRID), (TICKETS, HYBRID))
        ),
        Order("Figure 7, Hybrid and SEQ best", (HYBRID, BEST)),
        Near("Figure 7, Macro near SEQ best", MACRO, BEST, NEAR),
        Near("looking ahead, Hybrid", AHEAD_HYBRID, BEST, GOAL, claimant="goal"),
    ),
    look=Look(linear=True),
)

SEQUENCES: tuple[Experiment, ...] = (
    *of_data("d1", "Q1 on D1 (uniform)", Q1_ON_D1, *figure_6("Figure 6", beats_best=False)),
    *of_data("d2", "Q1 on D2 (skewed)", Q1_ON_D2, *figure_6("Figure 6", beats_best=True)),
    *of_data(
        "connections",
        "network connections (NSL-KDD)",
        connections,
        *figure_6("Figure 6, for D3", beats_best=True),
    ),
    *of_data(
        "flights",
        "flights of a year",
        flights_of_a_year,
        *figure_6("Figure 6, for D3", beats_best=True),
    ),
    *of_data(
        "large",
        "5,000 queries on D1",
        large(d1),
        *(
            Near(f"count of {name}", name, BEST, GOAL, claimant="goal")
            for name in (MACRO, HYBRID, AHEAD_MACRO, AHEAD_HYBRID)
        ),
    ),
    ATTRIBUTES,
)


# Micro-arrows by how much the regions of an attribute differ (Figure 8).
#
# At each deviation there are several query sets, since one differs from the next by more than
# what there is to see; the figures are those of all sets together.

HUNDREDTHS = (5, 10, 15, 20, 25, 30, 35, 40)
SETS, TUPLES = 5, 100_000  # of each
COST, MICRO = "relative processing cost ω", "micro ratio ξ"
AHEAD = "looking ahead: "
PERCENT = Unit("percent", "share", 100.0, counted=True)
COMPARED = (MACRO, HYBRID, AHEAD_MACRO, AHEAD_HYBRID, BEST)


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    # The same queries but for how much the regions of an attribute differ.
    spec = replace(SELECTION_SETS["Q4"], deviation=size / 100)
    works = [synthetic(spec, d1, TUPLES)(scale, seed + number) for number in range(SETS)]
    built = [orders(work, find_fixed_orders(work, scale), period(scale)) for work in works]
    passed = {name: _together(name, works, built) for name in COMPARED}
    answers = {name: summarise_agreement(built[0][name], works[0].events) for name in COMPARED}

    def contestants(prefix: str, macro: str, hybrid: str) -> Iterator[Contestant]:
        ours, base = passed[hybrid], passed[macro]
        # Evaluations by Hybrid for each evaluation by Macro.
        yield Contestant(
            f"{prefix}{COST}",
            base.evaluated,
            answer=answers[macro],
            run=lambda: ours.evaluated,
        )
        yield Contestant(f"{prefix}{MICRO}", 1, answer=answers[hybrid], run=lambda: ours.micro)

    everybody = (
        *contestants("", MACRO, HYBRID),
        *contestants(AHEAD, AHEAD_MACRO, AHEAD_HYBRID),
    )
    yield Round(size, everybody, lambda: _report_facts(size, passed))


def _together(
    name: str, works: Sequence[Selections], built: Sequence[Mapping[str, Build]]
) -> Passed:
    """Return what became of the events of all sets."""
    all_passed = [
        pass_events(passed[name](), work.events) for work, passed in zip(works, built, strict=True)
    ]
    return Passed(
        sum(passed.events for passed in all_passed),
        sum(passed.dropped for passed in all_passed),
        sum(passed.evaluated for passed in all_passed),
        sum(passed.micro for passed in all_passed) / len(all_passed),
    )


def _report_facts(size: int, passed: Mapping[str, Passed]) -> dict[str, Fact]:
    costs = ", ".join(
        f"{name} {events_passed.evaluated / events_passed.events:.3f}"
        for name, events_passed in passed.items()
    )
    dropping = passed[MACRO].dropped / passed[MACRO].events
    return {
        f"at {size / 100:.2f}, ASCs per event": costs,
        f"at {size / 100:.2f}, share of events that match nothing": round(dropping, 3),
    }


DEVIATION = Experiment(
    name="asc-deviation",
    title="ASC paper: micro-arrows by the standard deviation of regions, Q4 on D1",
    sizes=HUNDREDTHS,
    size_label="hundredths of standard deviation",
    unit=PERCENT,
    baseline="",
    prepare=_prepare,
    repeats=1,
    claims=(
        Trend("Figure 8, micro ratio", MICRO, "rises"),
        Trend("Figure 8, relative cost", COST, "falls"),
    ),
    look=Look(linear=True),
)
