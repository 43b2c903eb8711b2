"""A clock that is set by hand, and contestants that let it run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks import Contestant, Experiment, Round, Unit
from benchmarks.harness.experiment import Answer

COST = Unit("ms per piece", "cost", 1e3)
RATE = Unit("pieces per second", "rate", 1.0)


@dataclass
class Track:
    """The time, and what happened so far."""

    now: float = 0.0
    log: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def contestant(
        self, name: str, seconds: list[float], *, work: int = 100, answer: Answer = (1,)
    ) -> Contestant:
        """Takes so many seconds in each of its turns."""
        left = iter(seconds)

        def run() -> None:
            self.log.append(name)
            self.now += next(left)

        def warm_up() -> Answer:
            self.log.append(f"{name}?")
            self.now += 1_000
            return answer

        def reset() -> None:
            self.log.append(f"{name}.")
            self.now += 1_000

        return Contestant(name, work, answer=warm_up, run=run, reset=reset)


def experiment(*contestants: Contestant, unit: Unit = COST, baseline: str = "A") -> Experiment:
    """All contestants at one size."""

    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        yield Round(round(size * scale) + seed, contestants, lambda: {"a fact": size})

    return Experiment("fake", "A title", (1_000,), "things", unit, baseline, prepare, repeats=2)
