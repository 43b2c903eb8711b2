"""The experiments of the BE-Tree paper (its section 8), rerun at sizes for a small machine.

"Analysis and optimization for Boolean expression indexing". Each experiment has the paper's claims
with it, and its result says whether they held here.

| section       | experiments `be-tree-…`                                                          |
|---------------|----------------------------------------------------------------------------------|
| 8.5           | `capacity`, `scoring`, `directory`, `build` (Tables VII and VIII)                |
| 8.6.1–8.6.9   | `distribution`, `size`, `large`, `dimensions`, `cardinality`, `selectivity`,     |
|               | `ranges`, `query-event-size`, `query-size`, `event-size`, `equality`,            |
|               | `matching-…`                                                                     |
| 8.6.10–8.6.11 | `names`, `texts`, `names-matching-…`, `texts-matching-…`, `expressions`          |
| 4.5           | `updates`                                                                        |
| 8.6.12        | `changing`, `changing-zipf`, `false-candidates-20`, `false-candidates-80`        |
| 8.7           | `evaluation-…`, `leaves`, `bloom-lazy`, `bloom-bitmap`                           |

Where the paper has both distributions, `-zipf` at the end is the second.
"""

from __future__ import annotations

from benchmarks.be_tree.adaptation import ADAPTATION
from benchmarks.be_tree.construction import CONSTRUCTION, UPDATES
from benchmarks.be_tree.expressions import EXPRESSIONS
from benchmarks.be_tree.macro import MACRO, REAL
from benchmarks.be_tree.optimisations import MICRO, OPTIMISATIONS
from benchmarks.harness.report import Family

SWEEPS = (*MICRO, *MACRO, *REAL, *OPTIMISATIONS)
BE_TREE = Family(
    "Experiments of the BE-Tree paper",
    (
        *(sweep.experiment() for sweep in SWEEPS),
        *CONSTRUCTION,
        *EXPRESSIONS,
        *ADAPTATION,
        UPDATES,
    ),
    sections=(
        ("8.5 Parameters of the tree", "be-tree-capacity"),
        ("8.5 Parameters of the tree", "be-tree-scoring"),
        ("8.5 Parameters of the tree", "be-tree-directory"),
        ("8.5 Parameters of the tree", "be-tree-build"),
        ("8.6.1 Distribution", "be-tree-distribution"),
        ("8.6.2 Number of queries", "be-tree-size"),
        ("8.6.2 Number of queries", "be-tree-large"),
        ("8.6.3 Dimensionality", "be-tree-dimensions"),
        ("8.6.4 Cardinality", "be-tree-cardinality"),
        ("8.6.5 Dimension selectivity", "be-tree-selectivity"),
        ("8.6.6 Predicate selectivity", "be-tree-ranges"),
        ("8.6.7 Size of queries and events", "be-tree-query-event-size"),
        ("8.6.7 Size of queries and events", "be-tree-query-size"),
        ("8.6.7 Size of queries and events", "be-tree-event-size"),
        ("8.6.8 Share of equality", "be-tree-equality"),
        ("8.6.9 Matching probability", "be-tree-matching"),
        ("8.6.10 Real data", "be-tree-names"),
        ("8.6.10 Real data", "be-tree-texts"),
        ("8.6.11 Events that are expressions", "be-tree-expressions"),
        ("8.6.12 Changing queries and events", "be-tree-changing"),
        ("8.6.12 Changing queries and events", "be-tree-false-candidates"),
        ("8.6.12 Changing queries and events", "be-tree-updates"),
        ("8.7.1 Evaluation of predicates", "be-tree-evaluation"),
        ("8.7.1 Evaluation of predicates", "be-tree-leaves"),
        ("8.7.2 Bloom filters", "be-tree-bloom"),
    ),
    scale=0.2,  # a fifth of the paper's sizes, for a small machine
)
