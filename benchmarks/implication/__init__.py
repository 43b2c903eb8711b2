"""The experiments of the stream-sharing paper (its sections 5 and 6), and figures beyond it.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing". Matching is timed, with
what is ready beforehand off the clock, or counted; evaluation is timed.

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

from benchmarks.harness.report import Family
from benchmarks.implication.combined import COMBINED, DETECTED
from benchmarks.implication.evaluation import EVALUATION, SCANNED
from benchmarks.implication.growth import GROWTH
from benchmarks.implication.solver import SOLVER
from benchmarks.implication.sweeps import LARGE, MATCHING
from benchmarks.implication.where import WHERE

IMPLICATION = Family(
    "Experiments of the stream-sharing paper",
    (*MATCHING, *LARGE, *GROWTH, COMBINED, DETECTED, *SOLVER, *EVALUATION, SCANNED, WHERE),
    sections=(
        ("Figures 9 and 12: dimensions", "implication-dimensions"),
        ("Figures 10 and 13: size of the query predicate", "implication-query"),
        ("Figures 11 and 14: size of the stream predicate", "implication-stream"),
        ("Figure 15: large stream predicates", "implication-large"),
        ("Tables 3 and 4: growth", "implication-growth"),
        ("Table 7: what relaxed predicates select", "implication-combined"),
        ("1,200 pairs", "implication-pairs"),
        ("Against z3", "implication-z3"),
        ("Figure 16: evaluation by dimensions", "evaluation-dimensions"),
        ("Figure 17: evaluation by boxes", "evaluation-boxes"),
        ("Figure 18: evaluation by selectivity", "evaluation-selectivity"),
        ("Table 8: evaluation by overlap", "evaluation-overlap"),
        ("Tables 5 and 6: growth of standard evaluation", "evaluation-growth"),
        ("On Spark", "where"),
    ),
)
