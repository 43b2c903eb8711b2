"""The results of the BE-Tree paper's experiments as a page of docs.

    python -m benchmarks.be_tree.report bench-results > page.md

reads the JSON that `python -m benchmarks be-tree-…` leaves in a directory; `--names` lists them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.be_tree import BE_TREE
from benchmarks.result import digits

SECTIONS = (
    ("8.5 Parameters of the tree", ("capacity", "scoring", "directory", "build")),
    ("8.6.1 Distribution", ("distribution",)),
    ("8.6.2 Number of queries", ("size", "large")),
    ("8.6.3 Dimensionality", ("dimensions",)),
    ("8.6.4 Cardinality", ("cardinality",)),
    ("8.6.5 Dimension selectivity", ("selectivity",)),
    ("8.6.6 Predicate selectivity", ("ranges",)),
    ("8.6.7 Size of queries and events", ("query-event-size", "query-size", "event-size")),
    ("8.6.8 Share of equality", ("equality",)),
    ("8.6.9 Matching probability", ("matching",)),
    ("8.6.10 Real data", ("names", "texts")),
    ("8.6.11 Events that are expressions", ("expressions",)),
    ("8.6.12 Changing queries and events", ("changing", "false-candidates", "updates")),
    ("8.7.1 Evaluation of predicates", ("evaluation", "leaves")),
    ("8.7.2 Bloom filters", ("bloom",)),
)


def page(directory: Path) -> Iterator[str]:
    """The lines of the page: a section, its experiments, their figures and verdicts."""
    names = [experiment.name for experiment in BE_TREE]
    for heading, stems in SECTIONS:
        yield f"\n## {heading}"
        for name in names:
            if any(_belongs(name, stem) for stem in stems):
                yield from _experiment(directory / f"{name}.json")


def _belongs(name: str, stem: str) -> bool:
    """Is an experiment called after a stem, with or without the distribution and the like?"""
    rest = name.removeprefix("be-tree-")
    longer = [one for _, stems in SECTIONS for one in stems if rest.startswith(one)]
    return bool(longer) and max(longer, key=len) == stem


def _experiment(path: Path) -> Iterator[str]:
    if not path.exists():
        return
    result = json.loads(path.read_text())
    measured: list[dict[str, Any]] = result["measurements"]
    label = list(measured[0])[1]
    sizes = list(dict.fromkeys(one[label] for one in measured))
    title = result["title"].removeprefix("BE-Tree paper: ")
    yield f"\n`{result['experiment']}`: {title}"
    yield f"({result['unit']}, scale {result['scale']:g}, median of {result['repeats']})\n"
    yield f"| {label} | {' | '.join(f'{size:,}' for size in sizes)} |"
    yield "|---" * (1 + len(sizes)) + "|"
    figures = {(one["contestant"], one[label]): one["figure"]["median"] for one in measured}
    for name in dict.fromkeys(one["contestant"] for one in measured):
        row = [digits(figures[name, size]) if (name, size) in figures else "–" for size in sizes]
        yield f"| {name} | {' | '.join(row)} |"
    yield ""
    for source, verdict in result["facts"].items():
        if str(verdict).startswith("paper: ") or "left out" in source:
            yield f"- {source}: {verdict}"


if __name__ == "__main__":
    wanted = sys.argv[1]
    names = (experiment.name for experiment in BE_TREE)
    print("\n".join(names if wanted == "--names" else page(Path(wanted))).strip())
