"""A benchmark is a ratio: contestants agree on the answer, take turns in one run, and show noise.

Absolute times belong to a machine and an hour. So an experiment names a baseline, each contestant's
every turn is divided by the baseline's turn beside it, and the spread of these ratios is shown. To
add an experiment, write a file that defines one, and list it in `EXPERIMENTS`.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.asc import ASC
from benchmarks.be_tree import BE_TREE
from benchmarks.experiment import Contestant, Experiment, Round, Unit
from benchmarks.implication import IMPLICATION
from benchmarks.load import LOAD
from benchmarks.match import MATCHING
from benchmarks.plot import require_matplotlib
from benchmarks.result import Result
from benchmarks.route import ROUTE
from benchmarks.run import Disagreement, Progress, run
from benchmarks.scan import SCAN
from benchmarks.sharing import SHARING
from benchmarks.synopsis import SYNOPSIS
from benchmarks.updates import UPDATES
from benchmarks.write import write
from headgate.errors import UsageError, did_you_mean

EXPERIMENTS: dict[str, Experiment] = {
    found.name: found
    for found in (
        *(LOAD, SCAN, ROUTE, *MATCHING, UPDATES),
        *(*BE_TREE, *ASC, *IMPLICATION, *SYNOPSIS, *SHARING),
    )
}
RESULTS = Path("bench-results")

__all__ = [
    "EXPERIMENTS",
    "RESULTS",
    "Contestant",
    "Disagreement",
    "Experiment",
    "Result",
    "Round",
    "Unit",
    "run",
    "run_experiment",
]


def run_experiment(
    name: str,
    *,
    repeats: int | None = None,
    scale: float = 1.0,
    seed: int = 1,
    out: str | Path | None = RESULTS,
    progress: Progress | None = None,
) -> Result:
    """Run an experiment by name and write `NAME.json` and `NAME.png` into `out`, unless None.

    `repeats` is how often each contestant is timed, by default as the experiment asks; `scale`
    shrinks the work for a quick look. `progress` is called with a line of text now and then.
    """
    experiment = EXPERIMENTS.get(name)
    if experiment is None:
        raise UsageError(f"no experiment `{name}`; {did_you_mean(name, EXPERIMENTS)}")
    if out is not None:
        require_matplotlib()  # now, rather than after minutes of work
    result = run(experiment, repeats=repeats, scale=scale, seed=seed, progress=progress)
    if out is not None:
        write(result, Path(out))
    return result
