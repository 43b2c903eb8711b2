"""The experiments of the stream-sharing paper (its sections 5 and 6), and figures beyond it.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing". Matching is timed, with
what is ready beforehand off the clock, or counted; evaluation is timed. `report` makes a page of
the results.

| in the paper  | experiments                                                                  |
|---------------|------------------------------------------------------------------------------|
| Figures 9–11  | `implication-dimensions`, `-query-size`, `-stream-size`; with `-unbounded`   |
| Figures 12–14 | the same with `-strategies`                                                  |
| Figure 15     | `implication-large`, `-large-unbounded`                                      |
| Tables 3, 4   | `implication-growth-…`: `best`, `average`, `stream`, `query`, `dimensions`,  |
|               | `parts`                                                                      |
| Tables 5, 6   | `evaluation-growth`                                                          |
| Table 7       | `implication-combined`                                                       |
| 1,200 pairs   | `implication-pairs`                                                          |
| Figures 16–18 | `evaluation-dimensions`, `-boxes`, `-selectivity`, `-selectivity-kernels`    |
| Table 8       | `evaluation-overlap-10`, `-overlap-75`; each also with `-kernels`            |
| none          | `implication-z3`, `implication-z3-answers`, `where`                          |
"""

from __future__ import annotations

from benchmarks.experiment import Experiment
from benchmarks.implication.combined import COMBINED
from benchmarks.implication.detected import DETECTED
from benchmarks.implication.evaluation import EVALUATION
from benchmarks.implication.growth import GROWTH
from benchmarks.implication.large import LARGE
from benchmarks.implication.scanned import SCANNED
from benchmarks.implication.solver import SOLVER
from benchmarks.implication.sweeps import MATCHING
from benchmarks.implication.where import WHERE

IMPLICATION: tuple[Experiment, ...] = (
    *MATCHING,
    *LARGE,
    *GROWTH,
    COMBINED,
    DETECTED,
    *SOLVER,
    *EVALUATION,
    SCANNED,
    WHERE,
)
