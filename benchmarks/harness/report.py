"""A result as a table, as files, and with the others of its family as a page in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from benchmarks.harness.experiment import Experiment, Fact
from benchmarks.harness.plot import plot_result
from benchmarks.harness.result import Measurement, Result, Spread, format_digits

PAPER = re.compile(r"^(ASC paper|BE-Tree paper|Stream sharing): ")  # as the page's title says
QUERY_COUNT = "queries"  # a fact of results whose sizes count something else
MAX_COLUMNS = 12  # of a table on a page; what has more is a picture only


@dataclass(frozen=True, slots=True)
class Family:
    """Experiments that belong together, such as those of a paper, with the sections of their page.

    A section has the experiments whose names begin with its stem, but for those that begin with a
    longer stem. Where there are no sections, the page has one for all.
    """

    title: str
    experiments: tuple[Experiment, ...]
    sections: tuple[tuple[str, str], ...] = (("Results", ""),)
    scale: float = 1.0

    def section_of(self, name: str) -> str:
        """Return the heading under which an experiment stands."""
        stems = [(len(stem), heading) for heading, stem in self.sections if name.startswith(stem)]
        return max(stems, default=(0, ""))[1]


def write_result(result: Result, directory: Path) -> None:
    """Write `NAME.json` and `NAME.png` into a directory, which is made if there is none."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result.as_json(), ensure_ascii=False, indent=2) + "\n"
    (directory / f"{result.experiment}.json").write_text(text, encoding="utf-8")
    plot_result(result, directory / f"{result.experiment}.png")


def render_page(family: Family, directory: Path) -> str:
    """Return a page of the results that lie in a directory, in the order of the sections."""
    lines = [f"# {family.title}"]
    for heading in dict.fromkeys(heading for heading, _ in family.sections):
        lines.append(f"\n## {heading}")
        for experiment in family.experiments:
            path = directory / f"{experiment.name}.json"
            if family.section_of(experiment.name) == heading and path.exists():
                lines += _render_result(json.loads(path.read_text(encoding="utf-8")))
    return "\n".join(lines) + "\n"


def _render_result(result: dict[str, Any]) -> Iterator[str]:
    """Yield title, figures, verdicts and facts of a result that was read from its file."""
    measured: list[dict[str, Any]] = result["measurements"]
    # The second key of a measurement is what the sizes count, as `Result.as_json` writes it.
    label = list(measured[0])[1]
    sizes = list(dict.fromkeys(row[label] for row in measured))
    how = "counted" if "counted" in measured[0] else f"median of {result['repeats']}"
    yield f"\n`{result['experiment']}`: {PAPER.sub('', result['title'])}"
    # what the sizes do not count stands under the title
    facts = dict(result["facts"])
    queries = f"{facts.pop(QUERY_COUNT):,} queries, " if QUERY_COUNT in facts else ""
    yield f"({result['unit']}, {queries}scale {result['scale']:g}, {how})\n"
    # A wide table cannot be read; its picture can.
    if len(sizes) <= MAX_COLUMNS:
        yield f"| {label} | {' | '.join(f'{size:,}' for size in sizes)} |"
        yield "|---" * (1 + len(sizes)) + "|"
        figures = {(row["contestant"], row[label]): Spread(**row["figure"]) for row in measured}
        for name in dict.fromkeys(row["contestant"] for row in measured):
            cells = (_format_cell(figures.get((name, size))) for size in sizes)
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""
    yield from (f"- {name}: {_format_fact(fact)}" for name, fact in facts.items())


def _format_cell(spread: Spread | None) -> str:
    """Return the median, with what lies around it where there is something."""
    if spread is None:
        return "–"
    if spread.low != spread.high:
        return str(spread)
    return f"{spread.median:.4g}" if spread.median < 100 else format_digits(spread.median)


def make_table(result: Result) -> Table:
    """Return a row for each contestant at each size: its figure, and the ratio to each baseline."""
    has_notes = any(m.note for m in result.measurements)
    table = Table(title=result.title, caption=_caption(result), caption_justify="left")
    table.add_column(result.size_label, justify="right")
    table.add_column("contestant")
    spread = "" if result.unit.counted else " (min–max)"
    table.add_column(f"{result.unit.label}\n{spread.strip()}".strip(), justify="right")
    for baseline in result.baselines:
        table.add_column(f"{result.unit.compared}\n{escape(baseline)}{spread}", justify="right")
    if has_notes:
        table.add_column("note")
    # The size stands in the first row of its section only.
    for size in result.sizes:
        rows = [m for m in result.measurements if m.size == size]
        for number, measurement in enumerate(rows):
            cells = _cells(result, measurement, first=number == 0)
            note = [measurement.note] if has_notes else []
            table.add_row(*cells, *note, end_section=number == len(rows) - 1)
    return table


def _cells(result: Result, measurement: Measurement, *, first: bool) -> tuple[str, ...]:
    return (
        f"{measurement.size:,}" if first else "",
        escape(measurement.contestant),
        _format_spread(result, measurement.figure(result.unit)),
        *(_format_ratio(result, measurement, baseline) for baseline in result.baselines),
    )


def _format_ratio(result: Result, measurement: Measurement, baseline: str) -> str:
    if measurement.contestant == baseline:
        return "1"
    ratio = result.ratio(measurement, baseline)
    return _format_spread(result, ratio) if ratio else ""


def _format_spread(result: Result, spread: Spread) -> str:
    """Return the median alone where turns are counted: they do not differ."""
    return format_digits(spread.median) if result.unit.counted else str(spread)


def _caption(result: Result) -> str:
    """Return how it was measured, and the facts, a line each."""
    machine = result.machine
    turns = "turn" if result.repeats == 1 else "turns"
    taken = f"Median of {result.repeats} {turns} each, taken alternately"
    # Where something is counted, contestants are compared by answers that differ.
    how = "Counted" if result.unit.counted else f"{taken}; all gave the same answer"
    how += f". {machine['cpus']} CPUs, Python {machine['python']}, seed {result.seed}."
    facts = (f"{name}: {_format_fact(fact)}" for name, fact in result.facts.items())
    return "\n".join([how, *facts])


def _format_fact(fact: Fact) -> str:
    return f"{fact:,}" if isinstance(fact, int) else str(fact)
