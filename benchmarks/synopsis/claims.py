"""What is said of a state, and of a speed, as the stream gets longer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.result import Result, digits

TOLERANCE = 0.2  # of a power, as Spark estimates what its state takes


def figures(result: Result, name: str) -> dict[int, float]:
    """The medians of a contestant by size."""
    every = [result.measured(name, size) for size in result.sizes]
    return {one.size: one.figure(result.unit).median for one in every if one}


@dataclass(frozen=True, slots=True)
class Flat:
    """A contestant counts the same at every size."""

    source: str
    name: str

    def verdict(self, result: Result) -> str:
        found = list(figures(result, self.name).values())
        held = "held" if len(set(found)) == 1 else "not held"
        shown = ", ".join(map(digits, found))
        return f"goal: the same at every size; here: {held} ({shown})"


@dataclass(frozen=True, slots=True)
class Linear:
    """A contestant counts so many times as much as the size grows, in the second half of them."""

    source: str
    name: str

    def verdict(self, result: Result) -> str:
        found = list(figures(result, self.name).items())
        (size, count), (last, more) = found[len(found) // 2], found[-1]
        power = math.log(more / count) / math.log(last / size)
        held = "held" if abs(power - 1) <= TOLERANCE else "not held"
        shown = ", ".join(digits(figure) for _, figure in found)
        return f"known: grows with the stream; here: {held}, by the power of {power:.2f} ({shown})"


@dataclass(frozen=True, slots=True)
class Steady:
    """The rate of a contestant does not fall from the second last size to the last."""

    source: str
    name: str
    percent: float

    def verdict(self, result: Result) -> str:
        found = list(figures(result, self.name).values())
        if len(found) < 2:
            return "goal: does not fall with the stream; here: not measured"
        change = 100 * found[-1] / found[-2] - 100
        held = "held" if change >= -self.percent else "not held"
        shown = ", ".join(map(digits, found))
        return f"goal: does not fall with the stream; here: {held}: {change:+.0f} % ({shown})"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A contestant reaches a rate at some size."""

    source: str
    name: str
    rate: float

    def verdict(self, result: Result) -> str:
        found = figures(result, self.name)
        held = "held" if max(found.values()) >= self.rate else "not held"
        shown = ", ".join(f"{digits(figure)} at {size:,}" for size, figure in found.items())
        return f"goal: at least {self.rate:g} {result.unit.label}; here: {held} ({shown})"
