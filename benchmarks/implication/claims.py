"""Verdicts on counts that are compared at every size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.experiment import Claim
from benchmarks.result import Result, digits

ROUNDING = 0.05  # of a power, by terms of lower order


@dataclass(frozen=True, slots=True)
class At:
    """A claim about some of the sizes."""

    claim: Claim
    sizes: tuple[int, ...]

    @property
    def source(self) -> str:
        return self.claim.source

    def verdict(self, result: Result) -> str:
        kept = tuple(one for one in result.measurements if one.size in self.sizes)
        return self.claim.verdict(replace(result, measurements=kept))


@dataclass(frozen=True, slots=True)
class More:
    """A contestant counts so many times as much as another, in the median over the sizes."""

    source: str
    name: str
    other: str
    times: float
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        rows = [
            (_count(result, self.name, size), _count(result, self.other, size))
            for size in result.sizes
        ]
        counts = [(one, two) for one, two in rows if one is not None and two]
        claim = f"{self.name} {digits(self.times)} times as many as {self.other}"
        if not counts:
            return f"{self.says}: {claim}; here: not measured"
        ratios = [one / two for one, two in counts]
        held = "held" if median(ratios) >= self.times else "not held"
        shown = ", ".join(f"{digits(one)} and {digits(two)}" for one, two in counts)
        between = f"{digits(min(ratios))}–{digits(max(ratios))}"
        return f"{self.says}: {claim}; here: {held}: {digits(median(ratios))} ({between}): {shown}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """A contestant never counts more than another does, or than that and so much on top."""

    source: str
    name: str
    other: str
    on_top: float = 0.0
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        found, held = [], True
        for size in result.sizes:
            one, two = _count(result, self.name, size), _count(result, self.other, size)
            if one is not None and two is not None:
                held = held and one <= two + self.on_top
                found.append(f"{digits(one)} of {digits(two)} at {size:,}")
        extra = f" and {self.on_top:g}" if self.on_top else ""
        claim = f"{self.name} at most {self.other}{extra}"
        here = f"{'held' if held else 'not held'} ({'; '.join(found)})" if found else "not measured"
        return f"{self.says}: {claim}; here: {here}"


@dataclass(frozen=True, slots=True)
class Same:
    """Two contestants count the same at every size."""

    source: str
    name: str
    other: str
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        rows = [
            (_count(result, self.name, size), _count(result, self.other, size))
            for size in result.sizes
        ]
        held = "held" if all(one == two for one, two in rows) else "not held"
        shown = ", ".join(f"{digits(one)} and {digits(two)}" for one, two in rows if one and two)
        claim = f"{self.name} as much as {self.other}"
        return f"{self.says}: {claim}; here: {f'{held} ({shown})' if shown else 'not measured'}"


@dataclass(frozen=True, slots=True)
class Power:
    """From the second last size to the last, a count grows like this power of it, or less."""

    source: str
    name: str
    power: float
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        measured = [
            (size, count) for size in result.sizes if (count := _count(result, self.name, size))
        ]
        claim = (
            f"{self.name} grows like {result.size_label} to the power of {self.power:g}, or less"
        )
        if len(measured) < 2:
            return f"{self.says}: {claim}; here: not measured"
        (size, count), (last, more) = measured[-2:]
        power = math.log(more / count) / math.log(last / size)
        held = "held" if power <= self.power + ROUNDING else "not held"
        return f"{self.says}: {claim}; here: {held}: {power:.2f}"


def _count(result: Result, name: str, size: int) -> float | None:
    measured = result.measured(name, size)
    return measured.figure(result.unit).median if measured else None


@dataclass(frozen=True, slots=True)
class Agree:
    """By the facts that begin like this, there were at least so many answers, and all the same.

    Contestants that disagree are not measured at all.
    """

    source: str
    fact: str
    asked: int
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        counts = [fact for name, fact in result.facts.items() if name.startswith(self.fact)]
        agreed = sum(int(count) for count in counts)
        held = "held" if agreed >= self.asked * result.scale else "not held"
        return f"{self.says}: the same on {self.asked:,} pairs; here: {held}: on {agreed:,}"


@dataclass(frozen=True, slots=True)
class AcrossSizes:
    """A contestant at one size does better than another at another size."""

    source: str
    name: str
    size: int
    other: str
    other_size: int
    says: str = "paper"

    def verdict(self, result: Result) -> str:
        mine = _count(result, self.name, self.size)
        theirs = _count(result, self.other, self.other_size)
        claim = f"{self.name} at {self.size:,} before {self.other} at {self.other_size:,}"
        if mine is None or theirs is None:
            return f"{self.says}: {claim}; here: not measured"
        better = mine < theirs if result.unit.better == "lower" else mine > theirs
        shown = f"{digits(mine)} and {digits(theirs)} {result.unit.label}"
        return f"{self.says}: {claim}; here: {'held' if better else 'not held'}: {shown}"


@dataclass(frozen=True, slots=True)
class Pays:
    """From which size on a contestant is before another one in the median, up to the last size."""

    source: str
    name: str
    other: str
    says: str = "asked"

    def verdict(self, result: Result) -> str:
        first = None
        for size in reversed(result.sizes):
            measured = result.measured(self.name, size)
            ratio = measured and result.ratio(measured, self.other)
            if not ratio or ratio.median <= 1:
                break
            first = size
        question = f"from where on is {self.name} faster than {self.other}?"
        here = "nowhere" if first is None else f"from {first:,} {result.size_label}"
        return f"{self.says}: {question} here: {here}"
