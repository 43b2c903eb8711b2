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
from benchmarks.be_tree.construction import CONSTRUCTION
from benchmarks.be_tree.expressions import EXPRESSIONS
from benchmarks.be_tree.macro import MACRO
from benchmarks.be_tree.micro import MICRO
from benchmarks.be_tree.optimisations import OPTIMISATIONS
from benchmarks.be_tree.real import REAL
from benchmarks.be_tree.updates import UPDATES
from benchmarks.experiment import Experiment

SWEEPS = (*MICRO, *MACRO, *REAL, *OPTIMISATIONS)
BE_TREE: tuple[Experiment, ...] = (
    *(sweep.experiment() for sweep in SWEEPS),
    *CONSTRUCTION,
    *EXPRESSIONS,
    *ADAPTATION,
    UPDATES,
)
