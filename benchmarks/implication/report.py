"""The results of the stream-sharing experiments as a page of docs.

    python -m benchmarks.implication.report bench-results > page.md

reads the JSON that `python -m benchmarks` leaves in a directory; `--names` lists them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.implication import IMPLICATION
from benchmarks.result import digits

SECTIONS = (
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
)


def page(directory: Path) -> Iterator[str]:
    """The lines of the page: a section, its experiments, their figures, verdicts and facts."""
    for heading, stem in SECTIONS:
        yield f"\n## {heading}"
        for experiment in IMPLICATION:
            path = directory / f"{experiment.name}.json"
            if experiment.name.startswith(stem) and path.exists():
                yield from _experiment(json.loads(path.read_text(encoding="utf-8")))


def _experiment(result: dict[str, Any]) -> Iterator[str]:
    measured: list[dict[str, Any]] = result["measurements"]
    label = list(measured[0])[1]
    sizes = list(dict.fromkeys(one[label] for one in measured))
    title = result["title"].removeprefix("Stream sharing: ")
    how = "counted" if "counted" in measured[0] else f"median of {result['repeats']}"
    yield f"\n`{result['experiment']}`: {title}"
    yield f"({result['unit']}, scale {result['scale']:g}, {how})\n"
    yield f"| {label} | {' | '.join(f'{size:,}' for size in sizes)} |"
    yield "|---" * (1 + len(sizes)) + "|"
    figures = {(one["contestant"], one[label]): one["figure"]["median"] for one in measured}
    for name in dict.fromkeys(one["contestant"] for one in measured):
        row = [digits(figures[name, size]) if (name, size) in figures else "–" for size in sizes]
        yield f"| {name} | {' | '.join(row)} |"
    yield ""
    for name, fact in result["facts"].items():
        yield f"- {name}: {fact:,}" if isinstance(fact, int) else f"- {name}: {fact}"


if __name__ == "__main__":
    wanted = sys.argv[1]
    names = (experiment.name for experiment in IMPLICATION)
    print("\n".join(names if wanted == "--names" else page(Path(wanted))).strip())
