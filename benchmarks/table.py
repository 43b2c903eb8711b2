"""A result as a table: a row for each contestant at each size."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from benchmarks.experiment import Fact
from benchmarks.result import Measurement, Result, Spread, digits


def table(result: Result) -> Table:
    """Median and range of the figure, and of its ratio to the baseline's."""
    noted = any(m.note for m in result.measurements)
    found = Table(title=result.title, caption=_caption(result), caption_justify="left")
    found.add_column(result.size_label, justify="right")
    found.add_column("contestant")
    spread = "" if result.unit.counted else " (min–max)"
    found.add_column(f"{result.unit.label}\n{spread.strip()}".strip(), justify="right")
    for baseline in result.baselines:
        found.add_column(f"{result.unit.compared}\n{escape(baseline)}{spread}", justify="right")
    if noted:
        found.add_column("note")
    for size in result.sizes:
        rows = [m for m in result.measurements if m.size == size]
        for number, measurement in enumerate(rows):
            cells = _cells(result, measurement, first=number == 0)
            note = [measurement.note] if noted else []
            found.add_row(*cells, *note, end_section=number == len(rows) - 1)
    return found


def _cells(result: Result, measurement: Measurement, *, first: bool) -> tuple[str, ...]:
    return (
        f"{measurement.size:,}" if first else "",
        escape(measurement.contestant),
        _shown_spread(result, measurement.figure(result.unit)),
        *(_ratio(result, measurement, baseline) for baseline in result.baselines),
    )


def _ratio(result: Result, measurement: Measurement, baseline: str) -> str:
    if measurement.contestant == baseline:
        return "1"
    ratio = result.ratio(measurement, baseline)
    return _shown_spread(result, ratio) if ratio else ""


def _shown_spread(result: Result, spread: Spread) -> str:
    """Turns that count the same do not differ."""
    return digits(spread.median) if result.unit.counted else str(spread)


def _caption(result: Result) -> str:
    """How it was measured, and the facts, a line each."""
    machine = result.machine
    turns = "turn" if result.repeats == 1 else "turns"
    taken = f"Median of {result.repeats} {turns} each, taken alternately"
    how = (
        f"{'Counted' if result.unit.counted else taken}; all gave the same answer. "
        f"{machine['cpus']} CPUs, Python {machine['python']}, seed {result.seed}."
    )
    return "\n".join([how, *(f"{name}: {_shown(fact)}" for name, fact in result.facts.items())])


def _shown(fact: Fact) -> str:
    return f"{fact:,}" if isinstance(fact, int) else str(fact)
