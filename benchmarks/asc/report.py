"""The results of the ASC paper's experiments as a page of docs.

    python -m benchmarks.asc.report bench-results > page.md

reads the JSON that `python -m benchmarks asc-…` leaves in a directory; `--names` lists them,
without those on data that is not there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.asc import ASC
from benchmarks.asc.workloads import VARIABLE
from benchmarks.result import digits

SECTIONS = (
    ("Figure 6: orders of evaluation", "asc-sequences"),
    ("Figure 7: number of p-attributes", "asc-attributes"),
    ("Figure 8: micro-arrows", "asc-deviation"),
    ("Figure 9: a stream that changes", "asc-adaptation"),
    ("Time", "asc-time"),
    ("What it costs to watch", "asc-monitoring"),
)
MOST_COLUMNS = 12  # of a table; what has more is a picture only


def page(directory: Path) -> Iterator[str]:
    """The lines of the page: a section, its experiments, their figures, verdicts and facts."""
    for heading, stem in SECTIONS:
        yield f"\n## {heading}"
        for experiment in ASC:
            path = directory / f"{experiment.name}.json"
            if experiment.name.startswith(stem) and path.exists():
                yield from _experiment(json.loads(path.read_text(encoding="utf-8")))


def _experiment(result: dict[str, Any]) -> Iterator[str]:
    measured: list[dict[str, Any]] = result["measurements"]
    label = list(measured[0])[1]
    sizes = list(dict.fromkeys(one[label] for one in measured))
    title = result["title"].removeprefix("ASC paper: ")
    counted = "counted" in measured[0]
    how = "counted" if counted else f"median of {result['repeats']}"
    yield f"\n`{result['experiment']}`: {title}"
    yield f"({result['unit']}, scale {result['scale']:g}, {how})\n"
    if len(sizes) <= MOST_COLUMNS:
        yield from _table(measured, label, sizes)
        yield ""
    for name, fact in result["facts"].items():
        yield f"- {name}: {fact:,}" if isinstance(fact, int) else f"- {name}: {fact}"


def _table(measured: list[dict[str, Any]], label: str, sizes: list[int]) -> Iterator[str]:
    yield f"| {label} | {' | '.join(f'{size:,}' for size in sizes)} |"
    yield "|---" * (1 + len(sizes)) + "|"
    figures = {(one["contestant"], one[label]): _shown(one["figure"]) for one in measured}
    for name in dict.fromkeys(one["contestant"] for one in measured):
        row = [figures.get((name, size), "–") for size in sizes]
        yield f"| {name} | {' | '.join(row)} |"


def _shown(figure: dict[str, float]) -> str:
    """The median; what lies around it, where there is something."""
    low, middle, high = (figure[key] for key in ("low", "median", "high"))
    exact = f"{middle:.3f}" if middle < 100 else digits(middle)
    return exact if low == high else f"{digits(middle)} ({digits(low)}–{digits(high)})"


if __name__ == "__main__":
    wanted = sys.argv[1]
    given = VARIABLE in os.environ  # where the network connections are
    names = (one.name for one in ASC if given or "connections" not in one.name)
    print("\n".join(names if wanted == "--names" else page(Path(wanted))).strip())
