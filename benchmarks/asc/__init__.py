"""The experiments of the ASC paper (its section 6), and how long an event takes.

"Adaptive two-level optimization for selection predicates of multiple continuous queries". The paper
counts evaluated constructs (ASCs), and so do the experiments with its figures; `…-time` measures
the same orders by the clock.

| figure | experiments `asc-…`                                                              |
|--------|----------------------------------------------------------------------------------|
| 6      | `sequences-…`: `d1`, `d2`, `connections`, `flights`, and `large` for 5,000       |
|        | queries; each also with `-time`                                                  |
| 7      | `attributes`                                                                     |
| 8      | `deviation`                                                                      |
| 9      | `adaptation`, `adaptation-apart`                                                 |
| none   | `time`, `time-skewed`, `monitoring`                                              |
"""

from __future__ import annotations

from benchmarks.asc.adaptation import ADAPTATION
from benchmarks.asc.sequences import DEVIATION, SEQUENCES
from benchmarks.asc.timing import TIMING
from benchmarks.harness.report import Family

ASC = Family(
    "Experiments of the ASC paper",
    (*SEQUENCES, DEVIATION, *ADAPTATION, *TIMING),
    sections=(
        ("Figure 6: orders of evaluation", "asc-sequences"),
        ("Figure 7: number of p-attributes", "asc-attributes"),
        ("Figure 8: micro-arrows", "asc-deviation"),
        ("Figure 9: a stream that changes", "asc-adaptation"),
        ("Time", "asc-time"),
        ("What it costs to watch", "asc-monitoring"),
    ),
)
