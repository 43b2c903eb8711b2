"""Micro-arrows by how much the regions of an attribute differ (Figure 8).

At each deviation there are several query sets, since one differs from the next by more than what
there is to see; the figures are those of all sets together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from benchmarks.asc.contestants import (
    AHEAD_HYBRID,
    AHEAD_MACRO,
    BEST,
    HYBRID,
    MACRO,
    Build,
    Passed,
    find_fixed_orders,
    orders,
    pass_events,
    summarise_agreement,
)
from benchmarks.asc.sequences import period
from benchmarks.asc.workloads import Selections, d1, synthetic
from benchmarks.harness.claims import Trend
from benchmarks.harness.experiment import Contestant, Experiment, Fact, Look, Round, Unit
from benchmarks.workloads import SELECTION_SETS

HUNDREDTHS = (5, 10, 15, 20, 25, 30, 35, 40)
SETS, TUPLES = 5, 100_000  # of each
COST, MICRO = "relative processing cost ω", "micro ratio ξ"
AHEAD = "looking ahead: "
PERCENT = Unit("percent", "share", 100.0, counted=True)
COMPARED = (MACRO, HYBRID, AHEAD_MACRO, AHEAD_HYBRID, BEST)


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    spec = replace(SELECTION_SETS["Q4"], deviation=size / 100)
    works = [synthetic(spec, d1, TUPLES)(scale, seed + number) for number in range(SETS)]
    built = [orders(work, find_fixed_orders(work, scale), period(scale)) for work in works]
    passed = {name: _together(name, works, built) for name in COMPARED}
    answers = {name: summarise_agreement(built[0][name], works[0].events) for name in COMPARED}

    def contestants(prefix: str, macro: str, hybrid: str) -> Iterator[Contestant]:
        ours, base = passed[hybrid], passed[macro]
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
    each = [pass_events(one[name](), work.events) for work, one in zip(works, built, strict=True)]
    return Passed(
        sum(one.events for one in each),
        sum(one.dropped for one in each),
        sum(one.evaluated for one in each),
        sum(one.micro for one in each) / len(each),
    )


def _report_facts(size: int, passed: Mapping[str, Passed]) -> dict[str, Fact]:
    costs = ", ".join(f"{name} {one.evaluated / one.events:.3f}" for name, one in passed.items())
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
