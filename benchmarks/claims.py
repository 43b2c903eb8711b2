"""What a paper claims of its contestants, and whether it held here.

A verdict is computed from the measurements alone. One contestant is before another where it was
faster in every turn, each taken beside the other's; where the turns differ it is a tie, which
neither speaks for a claim nor against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median, quantiles
from typing import Literal

from benchmarks.result import Measurement, Result, digits


@dataclass(frozen=True, slots=True)
class Order:
    """The contestants from the fastest to the slowest, at all sizes or at some of them.

    Those that were left out are passed over. The claim is held at a size where each is before the
    next, not held where one is before another that should be before it, and else undecided.
    """

    source: str
    names: tuple[str, ...]
    sizes: tuple[int, ...] = ()

    def verdict(self, result: Result) -> str:
        outcomes: dict[str, list[str]] = {"held": [], "undecided": [], "not held": []}
        for size in self.sizes or result.sizes:
            measured = [m for name in self.names if (m := result.measured(name, size))]
            if len(measured) > 1:
                outcome = _outcome(measured)
                order = "" if outcome == "held" else f" ({_shown(measured)})"
                outcomes[outcome].append(f"{size:,}{order}")
        found = [f"{outcome} at {', '.join(at)}" for outcome, at in outcomes.items() if at]
        return f"paper: {' < '.join(self.names)}; here: {'; '.join(found) or 'not measured'}"


@dataclass(frozen=True, slots=True)
class Reduction:
    """A contestant takes so many percent less time than another (Equation 24), or up to so many."""

    source: str
    name: str
    other: str
    percent: float

    def verdict(self, result: Result) -> str:
        ratios = []
        for size in result.sizes:
            measurement = result.measured(self.name, size)
            ratio = measurement and result.ratio(measurement, self.other)
            if ratio:
                ratios.append(100 - 100 / ratio.median)
        return (
            f"paper: {self.name} takes up to {self.percent:g} % less time than {self.other}; "
            f"here: {_range(ratios)}"
        )


@dataclass(frozen=True, slots=True)
class Growth:
    """The time of a contestant grows by so many percent, from the first size to the last."""

    source: str
    name: str
    percent: float

    def verdict(self, result: Result) -> str:
        ends = [result.measured(self.name, result.sizes[end]) for end in (0, -1)]
        times = [end.figure(result.unit).median for end in ends if end]
        here = _range([100 * times[1] / times[0] - 100]) if len(times) == 2 else "not measured"
        return f"paper: the time of {self.name} grows by {self.percent:g} %; here: {here}"


@dataclass(frozen=True, slots=True)
class Near:
    """A contestant is as good as another but for so many percent, or better."""

    source: str
    name: str
    other: str
    percent: float
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        found = []
        for size in result.sizes:
            figures = _figures(result, size, self.name, self.other)
            if figures:
                above = 100 * figures[0] / figures[1] - 100
                held = "held" if above <= self.percent else "not held"
                found.append(f"{held} at {size:,} ({above:+.2f} %)")
        claim = f"{self.name} within {self.percent:g} % of {self.other}"
        return f"{self.says}: {claim}; here: {'; '.join(found) or 'not measured'}"


@dataclass(frozen=True, slots=True)
class Faster:
    """A contestant is at least so many times as fast as another, in the median of the turns."""

    source: str
    name: str
    other: str
    times: float
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        found = []
        for size in result.sizes:
            measurement = result.measured(self.name, size)
            ratio = measurement and result.ratio(measurement, self.other)
            if ratio:
                held = "held" if ratio.median >= self.times else "not held"
                between = f"{digits(ratio.low)}–{digits(ratio.high)}"
                found.append(f"{held} at {size:,}: {ratio.median:.3f} ({between})")
        claim = f"{self.name} at least {self.times:g} times as fast as {self.other}"
        return f"{self.says}: {claim}; here: {'; '.join(found) or 'not measured'}"


@dataclass(frozen=True, slots=True)
class Alike:
    """Two contestants take the same time: the middle half of their ratios has 1 in it."""

    source: str
    name: str
    other: str
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        found = []
        for size in result.sizes:
            one, two = (result.measured(name, size) for name in (self.name, self.other))
            if one and two and len(one.seconds) > 1:
                pairs = zip(one.seconds, two.seconds, strict=True)
                ratios = [(ours / one.work) / (theirs / two.work) for ours, theirs in pairs]
                low, middle, high = quantiles(ratios, n=4)
                held = "held" if low <= 1 <= high else "not held"
                found.append(f"{held} at {size:,}: {middle:.3f} (quartiles {low:.3f}–{high:.3f})")
        claim = f"the time of {self.name}, divided by that of {self.other}, is 1 but for noise"
        return f"{self.says}: {claim}; here: {'; '.join(found) or 'not measured'}"


@dataclass(frozen=True, slots=True)
class Trend:
    """The figure of a contestant rises, or falls, with the size; or its distance to another's."""

    source: str
    name: str
    way: Literal["rises", "falls"]
    apart_from: str | None = None

    def verdict(self, result: Result) -> str:
        names = (self.name,) if self.apart_from is None else (self.name, self.apart_from)
        rows = [_figures(result, size, *names) for size in result.sizes]
        figures = [row[0] if len(row) == 1 else abs(row[0] - row[1]) for row in rows if row]
        signs = {later > earlier for earlier, later in pairwise(figures)}
        first, last = (figures[0], figures[-1]) if figures else (0.0, 0.0)
        rises = self.way == "rises"
        held = "held from end to end, not at each step" if (last > first) == rises else "not held"
        if signs == {rises}:
            held = "held"
        gap = f" from {self.apart_from}" if self.apart_from else ""
        claim = f"{'the distance of ' if gap else ''}{self.name}{gap} {self.way}"
        shown = ", ".join(map(digits, figures))
        here = f"{held} ({shown})" if len(figures) > 1 else "not measured"
        return f"paper: {claim} with {result.size_label}; here: {here}"


def _figures(result: Result, size: int, *names: str) -> list[float]:
    """The medians of contestants at a size; none where one of them was left out."""
    measured = [result.measured(name, size) for name in names]
    found = [one.figure(result.unit).median for one in measured if one]
    return found if len(found) == len(names) else []


def _outcome(measured: list[Measurement]) -> str:
    relations = {_relation(first, second) for first, second in combinations(measured, 2)}
    if ">" in relations:
        return "not held"
    return "undecided" if "≈" in relations else "held"


def _relation(first: Measurement, second: Measurement) -> str:
    """`<` where the first is faster in every turn, `>` where the second is, else `≈`."""
    turns = zip(first.seconds, second.seconds, strict=True)
    pairs = [(one / first.work, two / second.work) for one, two in turns]
    if all(one < two for one, two in pairs):
        return "<"
    return ">" if all(one > two for one, two in pairs) else "≈"


def _shown(measured: list[Measurement]) -> str:
    """All by their medians, `≈` between neighbours that tie."""
    order = sorted(measured, key=lambda m: median(m.seconds) / m.work)
    parts = [order[0].contestant]
    for first, second in pairwise(order):
        parts.append("<" if _relation(first, second) == "<" else "≈")
        parts.append(second.contestant)
    return " ".join(parts)


def _range(percents: Iterable[float]) -> str:
    found = list(percents)
    if not found:
        return "not measured"
    low, high = f"{digits(min(found))} %", f"{digits(max(found))} %"
    return low if low == high else f"from {low} to {high}"
