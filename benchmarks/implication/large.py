"""Large stream predicates in 6 dimensions (Figure 15), and how they are matched in bounded memory.

The paper left breadth-first matching out past 30 boxes, because it ran out of memory. Here it is
left out where it stores over a million parts, or takes too long.
"""

from __future__ import annotations

from benchmarks.harness.claims import AtSizes, Faster
from benchmarks.implication.contestants import (
    BFS,
    COMPILED_HCR,
    DFS,
    DFS_ARRAY,
    EXACT,
    HCR,
    HSR,
    MIX,
    MIX_ARRAY,
)
from benchmarks.implication.pairs import Setting
from benchmarks.implication.sweeps import Varied, experiment

PAIRS = 40
WAYS = (HSR, HCR, BFS, DFS, MIX, DFS_ARRAY, MIX_ARRAY)
SIZES = Varied("stream_boxes", "boxes in a stream predicate", (20, 50, 100, 200, 500))
CLAIMS = (
    AtSizes(Faster("Figure 15, depth first much like HCR", DFS.name, HCR.name, 0.5), (20, 50)),
    AtSizes(Faster("Figure 15, mixed much like HCR", MIX.name, HCR.name, 0.5), (20, 50)),
    AtSizes(Faster("Figure 15, HCR before depth first", HCR.name, DFS.name, 3), (500,)),
    Faster("at most twice HCR's time", EXACT, COMPILED_HCR, 0.5, says="goal"),
)

LARGE = tuple(
    experiment(
        f"implication-large{ending}",
        f"Stream sharing: large stream predicates, 6 dimensions{what}",
        SIZES,
        setting,
        WAYS,
        CLAIMS,
        pairs=PAIRS,
    )
    for ending, what, setting in (
        ("", "", Setting()),
        ("-unbounded", ", possibly unbounded", Setting(unbounded=True)),
    )
)
