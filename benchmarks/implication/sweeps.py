"""Matching time by dimensions and by the size of predicates (Figures 9 to 14).

The paper draws no numbers on the axes that its text gives, so the sizes are ours. By default there
are 6 dimensions, 2 boxes in a query and 20 in a stream predicate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.harness.claims import AtSizes, Faster, Near, Order, Trend
from benchmarks.harness.experiment import Claim, Contestant, Experiment, Fact, Round
from benchmarks.implication.contestants import (
    BFS,
    BFS_R,
    BFS_RSTAR,
    COMPILED_HCR,
    DFS,
    DFS_ARRAY,
    DFS_RSTAR,
    EXACT,
    HCR,
    HSR,
    MIX,
    MIX_ARRAY,
    MIX_RSTAR,
    PER_PAIR,
    Tried,
    Variant,
    exact_verdicts,
    make_compiled,
)
from benchmarks.implication.pairs import Setting

PAIRS = 200
MIN_PAIRS = 5
TIMES = 5  # that kernels get all pairs in a turn


@dataclass(frozen=True, slots=True)
class Varied:
    """A number of the setting that takes several values."""

    number: str
    label: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The figures in which a number varies."""

    name: str
    varied: Varied
    figures: tuple[int, int]  # of the R-tree, and of the R*-tree with all strategies
    gain: float  # by the index, as the text has it

    def experiments(self) -> Iterator[Experiment]:
        name = f"implication-{self.name}"
        title = f"Stream sharing: matching a pair by {self.varied.label}"
        first, second = (f"Figure {number}" for number in self.figures)
        yield experiment(
            name, title, self.varied, Setting(), HEURISTICS_AND_R_TREE, self._claims(first)
        )
        yield experiment(
            f"{name}-unbounded",
            f"{title}, possibly unbounded",
            self.varied,
            Setting(unbounded=True),
            HEURISTICS_AND_R_TREE,
            make_unbounded_claims(f"{first}, unbounded"),
        )
        yield experiment(
            f"{name}-strategies",
            f"{title}, split strategies",
            self.varied,
            Setting(),
            STRATEGIES,
            strategy_claims(second),
            baseline=DFS,
        )

    def _claims(self, figure: str) -> tuple[Claim, ...]:
        return (
            Order(f"{figure}, heuristics", (HSR.name, HCR.name)),
            Trend(f"{figure}, exact matching", BFS.name, "rises"),
            Faster(f"{figure}, gain by the index", BFS_R.name, BFS.name, self.gain),
            Near(f"{figure}, with the index roughly as HCR", BFS_R.name, HCR.name, 100),
            *goals(),
        )


HEURISTICS_AND_R_TREE = (HSR, HCR, BFS, BFS_R)
STRATEGIES = (
    *(BFS, DFS, MIX, BFS_R),
    *(BFS_RSTAR, DFS_RSTAR, MIX_RSTAR, DFS_ARRAY, MIX_ARRAY),
)
SWEEPS = (
    Sweep("dimensions", Varied("dimensions", "dimensions", (2, 4, 6, 8, 10)), (9, 12), 1),
    Sweep(
        "query-size",
        Varied("query_boxes", "boxes in a query predicate", (1, 2, 4, 6, 8)),
        (10, 13),
        100,
    ),
    Sweep(
        "stream-size",
        Varied("stream_boxes", "boxes in a stream predicate", (5, 10, 20, 30, 40)),
        (11, 14),
        100,
    ),
)


def make_unbounded_claims(figure: str) -> tuple[Claim, ...]:
    return (Faster(f"{figure}, gain by the index", BFS_R.name, BFS.name, 10), *goals())


def strategy_claims(figure: str) -> tuple[Claim, ...]:
    return (
        Order(f"{figure}, R-tree and R*-tree", (BFS_R.name, BFS_RSTAR.name)),
        Order(f"{figure}, depth first and breadth first", (DFS.name, BFS.name)),
        Order(f"{figure}, mixed and breadth first", (MIX.name, BFS.name)),
        Near(f"{figure}, depth first and mixed", DFS.name, MIX.name, 25),
        Order(f"{figure}, depth first without and with R*-tree", (DFS.name, DFS_RSTAR.name)),
        Order(f"{figure}, mixed without and with R*-tree", (MIX.name, MIX_RSTAR.name)),
        Faster("depth first gains by our index", DFS_ARRAY.name, DFS.name, 1, claimant="wish"),
        Faster("mixed gains by our index", MIX_ARRAY.name, MIX.name, 1, claimant="wish"),
        *goals(),
    )


def goals() -> tuple[Claim, ...]:
    """Return what we ask of our own exact method: both are compiled."""
    return (Faster("at most twice HCR's time", EXACT, COMPILED_HCR, 0.5, claimant="goal"),)


def experiment(
    name: str,
    title: str,
    varied: Varied,
    setting: Setting,
    variants: tuple[Variant, ...],
    claims: tuple[Claim, ...],
    *,
    pairs: int = PAIRS,
    baseline: Variant = HCR,
) -> Experiment:
    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        options: dict[str, Any] = {varied.number: size}
        chosen = replace(setting, **options)
        yield make_round(size, chosen, variants, max(MIN_PAIRS, round(pairs * scale)), seed)

    return Experiment(
        name=name,
        title=title,
        sizes=varied.values,
        size_label=varied.label,
        unit=PER_PAIR,
        baseline=baseline.name,
        prepare=prepare,
        repeats=3,
        claims=claims,
        clock=time.process_time,
    )


def make_round(
    size: int, setting: Setting, variants: tuple[Variant, ...], count: int, seed: int
) -> Round:
    """Return all ways, and both kernels, on the same pairs."""
    pairs = setting.pairs(count, seed=seed)
    truth = exact_verdicts(pairs)
    contestants: list[Contestant] = []
    facts: dict[str, Fact] = {f"at {size}, pairs that are covered": f"{sum(truth)} of {count}"}
    stored = []
    for variant in variants:
        tried = Tried.of(pairs, variant)
        if tried.left_out:
            facts[f"at {size}, {variant.name} is left out"] = tried.left_out
        else:
            contestants.append(tried.contestant(truth))
        if variant.is_exact and variant.index is None:
            stored.append(f"{variant.name} {tried.max_parts:,}")
    facts[f"at {size}, most parts stored at once"] = ", ".join(stored)
    return Round(size, (*contestants, *make_compiled(pairs, truth, TIMES)), lambda: facts)


MATCHING = tuple(experiment for sweep in SWEEPS for experiment in sweep.experiments())


# Large stream predicates in 6 dimensions (Figure 15), and how they are matched in bounded memory.
#
# The paper left breadth-first matching out past 30 boxes, because it ran out of memory. Here it
# is left out where it stores over a million parts, or takes too long.

LARGE_PAIRS = 40
VARIANTS = (HSR, HCR, BFS, DFS, MIX, DFS_ARRAY, MIX_ARRAY)
SIZES = Varied("stream_boxes", "boxes in a stream predicate", (20, 50, 100, 200, 500))
CLAIMS = (
    AtSizes(Faster("Figure 15, depth first much like HCR", DFS.name, HCR.name, 0.5), (20, 50)),
    AtSizes(Faster("Figure 15, mixed much like HCR", MIX.name, HCR.name, 0.5), (20, 50)),
    AtSizes(Faster("Figure 15, HCR before depth first", HCR.name, DFS.name, 3), (500,)),
    Faster("at most twice HCR's time", EXACT, COMPILED_HCR, 0.5, claimant="goal"),
)

LARGE = tuple(
    experiment(
        f"implication-large{ending}",
        f"Stream sharing: large stream predicates, 6 dimensions{subject}",
        SIZES,
        setting,
        VARIANTS,
        CLAIMS,
        pairs=LARGE_PAIRS,
    )
    for ending, subject, setting in (
        ("", "", Setting()),
        ("-unbounded", ", possibly unbounded", Setting(unbounded=True)),
    )
)
