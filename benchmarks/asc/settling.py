"""The claim of Figure 9: after a change the cost is soon that of the best order again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.harness.result import Result

NEAR = 3.0  # percent above the best
PERIODS = 2.0


@dataclass(frozen=True, slots=True)
class SettlesWithin:
    """After each boundary a contestant is near the best within two periods, to the part's end.

    A part has so many `slices`, each of which is `periods` long.
    """

    source: str
    name: str
    best: str
    slices: int
    periods: float

    def verdict(self, result: Result) -> str:
        above = [self._above(result, number) for number in range(len(result.sizes))]
        parts = [above[n : n + self.slices] for n in range(self.slices, len(above), self.slices)]
        settled = list(map(self._settled, parts))
        held = all(periods is not None and periods <= PERIODS for periods in settled)
        took = ", ".join("never" if one is None else f"{one:g}" for one in settled)
        worst = ", ".join(f"{max(part):+.1f}" for part in parts)
        last = ", ".join(f"{part[-1]:+.1f}" for part in parts)
        return (
            f"paper: soon after a boundary the cost is next to that of the {self.best}; here: "
            f"{'held' if held else 'not held'}: within {NEAR:g} % after {took} λ, where two are "
            f"allowed; worst: {worst} %; in the end: {last} %"
        )

    def _above(self, result: Result, number: int) -> float:
        """By how many percent a slice costs more than the best."""
        size = result.sizes[number]
        own, best = (result.measured(name, size) for name in (self.name, self.best))
        assert own is not None
        assert best is not None
        return 100 * own.seconds[0] / best.seconds[0] - 100

    def _settled(self, above: list[float]) -> float | None:
        """How long it took until all slices are near, in periods; None if they are not."""
        far = list(self._far(above))
        if not far:
            return 0.0
        return None if far[-1] == len(above) else far[-1] * self.periods

    @staticmethod
    def _far(above: list[float]) -> Iterator[int]:
        return (number for number, percent in enumerate(above, 1) if percent > NEAR)
