"""A benchmark is a ratio: contestants agree on the answer, take turns in one run, and show noise.

Absolute times belong to a machine and an hour. So an experiment names a baseline, each contestant's
every turn is divided by the baseline's turn next to it, and the spread of these ratios is shown.

| package                                                        | what it has                     |
|----------------------------------------------------------------|---------------------------------|
| `harness`                                                      | runs, measures, judges, reports |
| `matching`, `be_tree`, `asc`, `implication`, `synopsis`,       | experiments, a family each      |
| `sharing`                                                      |                                 |
| `rivals`                                                       | the algorithms of other people  |
| `workloads`                                                    | seeded queries and events       |
| `results/`                                                     | what was measured               |

To add an experiment, write a file that defines one, and list it in its family's `__init__`.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.asc import ASC
from benchmarks.be_tree import BE_TREE
from benchmarks.harness.experiment import Contestant, Experiment, MissingData, Round, Unit
from benchmarks.harness.plot import require_matplotlib
from benchmarks.harness.report import Family, render_page, write_result
from benchmarks.harness.result import Result
from benchmarks.harness.run import Disagreement, Progress, run_rounds
from benchmarks.implication import IMPLICATION
from benchmarks.matching import MATCHING
from benchmarks.sharing import SHARING
from benchmarks.synopsis import SYNOPSIS
from headgate.errors import UsageError, did_you_mean

FAMILIES: dict[str, Family] = {
    "matching": MATCHING,
    "be-tree": BE_TREE,
    "asc": ASC,
    "implication": IMPLICATION,
    "synopsis": SYNOPSIS,
    "sharing": SHARING,
}
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for family in FAMILIES.values() for experiment in family.experiments
}
RESULTS = Path("bench-results")

__all__ = [
    "EXPERIMENTS",
    "FAMILIES",
    "RESULTS",
    "Contestant",
    "Disagreement",
    "Experiment",
    "Result",
    "Round",
    "Unit",
    "run_experiment",
    "run_family",
    "run_rounds",
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
        known = [*EXPERIMENTS, *FAMILIES]
        raise UsageError(f"no experiment `{name}`; {did_you_mean(name, known)}")
    if out is not None:
        require_matplotlib()  # now, rather than after minutes of work
    result = run_rounds(experiment, repeats=repeats, scale=scale, seed=seed, progress=progress)
    if out is not None:
        write_result(result, Path(out))
    return result


def run_family(
    name: str,
    *,
    scale: float | None = None,
    seed: int = 1,
    out: str | Path = RESULTS,
    progress: Progress | None = None,
) -> Path:
    """Run all experiments of a family, but for those whose data are not here, and write its page.

    Returns the path of the page. `scale` is by default as it suits the family.
    """
    family = FAMILIES[name]
    size = family.scale if scale is None else scale
    for experiment in family.experiments:
        try:
            run_experiment(experiment.name, scale=size, seed=seed, out=out, progress=progress)
        except MissingData as error:
            if progress is not None:
                progress(f"{experiment.name}: left out; {error}")
    page = Path(out) / f"{name}.md"
    page.write_text(render_page(family, Path(out)), encoding="utf-8")
    return page
