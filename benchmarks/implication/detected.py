"""How many of 1,200 pairs are found to match without relaxation (section 6.2), by seed.

There are 60 query predicates of 3 boxes and 20 stream predicates of 30, in 3 possibly unbounded
dimensions. One such draw differs much from the next, so there are several.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.harness.claims import TimesAsMany
from benchmarks.harness.experiment import Experiment, Look, Round, Unit
from benchmarks.implication.contestants import (
    DFS,
    EXACT,
    HCR,
    HSR,
    Turns,
    counted,
    exact_verdicts,
    holds_of,
)
from benchmarks.implication.pairs import ALL_PAIRS, Setting

SETTING = Setting(dimensions=3, query_boxes=3, stream_boxes=30, unbounded=True)
DRAWS = tuple(range(1, 9))
FEWEST = 20


@contextmanager
def _prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
    pairs = SETTING.pairs(max(FEWEST, round(ALL_PAIRS * scale)), seed=1_000 * seed + size)
    truth = exact_verdicts(pairs)
    found = {way.name: Turns(pairs, way).run() for way in (DFS, HCR, HSR)}
    found[EXACT] = truth
    contestants = tuple(
        counted(name, sum(verdicts), verdicts if name == DFS.name else holds_of(verdicts, truth))
        for name, verdicts in found.items()
    )
    yield Round(size, contestants)


DETECTED = Experiment(
    name="implication-pairs",
    title="Stream sharing: pairs of 1,200 found to match, 3 possibly unbounded dimensions",
    sizes=DRAWS,
    size_label="draw",
    unit=Unit("pairs found to match", "share", 1.0, counted=True),
    baseline="",
    prepare=_prepare,
    repeats=1,
    claims=(
        TimesAsMany(
            "section 6.2, exact matching and the quick check of HCR", DFS.name, HCR.name, 933 / 660
        ),
        TimesAsMany("exact matching finds clearly more", DFS.name, HCR.name, 1.05, says="goal"),
    ),
    look=Look(linear=True),
)
