"""What a paper claims of its contestants, and whether it held here.

A verdict is computed from the measurements alone. One contestant is before another where it was
faster in every turn, each taken beside the other's; where the turns differ it is a tie, which
neither speaks for a claim nor against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from headgate.bench.result import Measurement, Result, digits


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


def _outcome(measured: list[Measurement]) -> str:
    relations = {_relation(first, second) for first, second in combinations(measured, 2)}
    if ">" in relations:
        return "not held"
    return "undecided" if "≈" in relations else "held"


def _relation(first: Measurement, second: Measurement) -> str:
    """`<` where the first is faster in every turn, `>` where the second is, else `≈`."""
    pairs = zip(first.seconds, second.seconds, strict=True)
    faster = {one / first.work < two / second.work for one, two in pairs}
    return "≈" if len(faster) > 1 else "<" if True in faster else ">"


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
