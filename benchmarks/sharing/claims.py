"""What is asked of the planner: parts of what others move, spreads, and times."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median, pstdev

from benchmarks.result import Measurement, Result, digits


@dataclass(frozen=True, slots=True)
class PartOf:
    """A contestant counts at most such a part of another, in the median of the turns."""

    source: str
    name: str
    other: str
    part: float
    sizes: tuple[int, ...] = ()

    def verdict(self, result: Result) -> str:
        found = []
        for size in self.sizes or result.sizes:
            one, two = (result.measured(name, size) for name in (self.name, self.other))
            if one and two:
                parts = [a / b for a, b in zip(one.seconds, two.seconds, strict=True)]
                held = "held" if median(parts) <= self.part else "not held"
                between = f"{min(parts):.2f}–{max(parts):.2f}"
                found.append(f"{held} at {size:,}: {median(parts):.2f} ({between})")
        goal = f"{self.name} at most {self.part:.2g} of {self.other}"
        return f"goal: {goal}; here: {'; '.join(found) or 'not measured'}"


@dataclass(frozen=True, slots=True)
class LessSpread:
    """The turns of a contestant differ by at most such a part of what those of another do."""

    source: str
    name: str
    other: str
    part: float

    def verdict(self, result: Result) -> str:
        found = []
        for size in result.sizes:
            one, two = (result.measured(name, size) for name in (self.name, self.other))
            if one and two and _range(two):
                part = _range(one) / _range(two)
                deviation = pstdev(one.seconds) / pstdev(two.seconds)
                held = "held" if part <= self.part else "not held"
                found.append(f"{held} at {size:,}: {part:.2f} (standard deviation {deviation:.2f})")
        goal = f"spread of {self.name} at most {self.part:.2f} of that of {self.other}"
        return f"goal: {goal}; here: {'; '.join(found) or 'not measured'}"


def _range(measurement: Measurement) -> float:
    return max(measurement.seconds) - min(measurement.seconds)


@dataclass(frozen=True, slots=True)
class AtMost:
    """A contestant takes at most so much at the greatest size."""

    source: str
    name: str
    most: float

    def verdict(self, result: Result) -> str:
        last = result.measured(self.name, result.sizes[-1])
        if last is None:
            return "not measured"
        figure = last.figure(result.unit).median
        held = "held" if figure <= self.most else "not held"
        goal = f"{self.name} at most {self.most:g} {result.unit.label}"
        return f"goal: {goal}; here: {held} at {last.size:,}: {digits(figure)}"
