"""A result is what was measured, with its noise; figures and ratios follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.harness.experiment import Fact, Look, Unit


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several figures, between the least and the greatest.

    >>> print(Spread.of([5.0, 4.0, 9.5]))
    5.00 (4.00–9.50)
    """

    median: float
    low: float
    high: float

    @staticmethod
    def of(figures: Iterable[float]) -> Spread:
        values = list(figures)
        return Spread(median(values), min(values), max(values))

    def __str__(self) -> str:
        return (
            f"{format_digits(self.median)} ({format_digits(self.low)}–{format_digits(self.high)})"
        )

    def as_json(self) -> dict[str, float]:
        return {"median": self.median, "low": self.low, "high": self.high}


def format_digits(figure: float) -> str:
    """Return a figure with three significant digits.

    >>> format_digits(1234.5), format_digits(12.34), format_digits(0.01234)
    ('1,234', '12.3', '0.0123')
    """
    # Without an exponent, and without digits behind the point where three stand before it.
    if abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.3g}" if abs(figure) < 1 else f"{figure:.{1 if abs(figure) >= 10 else 2}f}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One contestant at one size: the seconds of each of its turns, or what was counted in them."""

    contestant: str
    size: int
    work: int
    seconds: tuple[float, ...]
    note: str = ""

    def figure(self, unit: Unit) -> Spread:
        return Spread.of(unit.figure(seconds, self.work) for seconds in self.seconds)


@dataclass(frozen=True, slots=True)
class Result:
    """All measurements of one run of an experiment."""

    experiment: str
    title: str
    size_label: str
    unit: Unit
    baseline: str
    repeats: int
    scale: float
    seed: int
    measurements: tuple[Measurement, ...]
    facts: Mapping[str, Fact]
    machine: Mapping[str, Any]
    against: tuple[str, ...] = ()
    look: Look = field(default_factory=Look)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Whom all are compared with."""
        return (self.baseline, *self.against) if self.baseline else ()

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(m.size for m in self.measurements))

    @property
    def contestants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.contestant for m in self.measurements))

    def find(self, contestant: str, size: int) -> Measurement | None:
        """Return the measurement of a contestant at a size; None where it was left out."""
        matching = (m for m in self.measurements if (m.contestant, m.size) == (contestant, size))
        return next(matching, None)

    def ratio(self, measurement: Measurement, baseline: str | None = None) -> Spread | None:
        """Return how many times as fast as the baseline, per piece of work; None if not measured.

        Each turn is divided by the baseline's turn of the same repeat, so that what slows the whole
        machine for a while slows both.
        """
        base = self.find(baseline or self.baseline, measurement.size)
        if base is None:
            return None
        # Turn by turn, and per piece of work, as contestants may get different amounts of it.
        pairs = zip(base.seconds, measurement.seconds, strict=True)
        return Spread.of((theirs / base.work) / (ours / measurement.work) for theirs, ours in pairs)

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs: every turn's seconds, and what follows from them."""
        return {
            "experiment": self.experiment,
            "title": self.title,
            "unit": self.unit.label,
            "better": self.unit.better,
            "baseline": self.baseline,
            "repeats": self.repeats,
            "scale": self.scale,
            "seed": self.seed,
            "measurements": [self._measurement(m) for m in self.measurements],
            "facts": dict(self.facts),
            "machine": dict(self.machine),
        }

    def _measurement(self, measurement: Measurement) -> dict[str, Any]:
        return {
            "contestant": measurement.contestant,
            self.size_label: measurement.size,
            "work": measurement.work,
            "note": measurement.note,
            "counted" if self.unit.counted else "seconds": list(measurement.seconds),
            "figure": measurement.figure(self.unit).as_json(),
            "ratio": self._ratio(measurement, self.baseline),
        } | {f"ratio to {name}": self._ratio(measurement, name) for name in self.against}

    def _ratio(self, measurement: Measurement, baseline: str) -> dict[str, float] | None:
        ratio = self.ratio(measurement, baseline)
        return ratio.as_json() if ratio else None
