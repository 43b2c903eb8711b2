"""An experiment is named, has sizes, and prepares for each of them a round of contestants."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from headgate.errors import UsageError

if TYPE_CHECKING:
    from benchmarks.harness.result import Result

Answer = tuple[object, ...]
Clock = Callable[[], float]
Fact = str | int | float


class MissingData(UsageError):
    """The data of an experiment are not part of Headgate, and are not installed here."""


def do_nothing() -> None:
    """Reset a contestant that has no state."""


def no_facts() -> Mapping[str, Fact]:
    return {}


@dataclass(frozen=True, slots=True)
class Unit:
    """How a figure is made of seconds and work: a cost per piece, or a rate of pieces.

    Where it is `counted`, what a contestant's `run` gives takes the place of the seconds. A `share`
    is made like a cost, and neither a lower nor a higher one is better.

    >>> Unit("µs per statement", "cost", 1e6).figure(seconds=2.0, work=1_000)
    2000.0
    >>> Unit("M pairs per second", "rate", 1e-6).figure(seconds=2.0, work=8_000_000)
    4.0
    """

    label: str
    kind: Literal["cost", "rate", "share"]
    factor: float
    counted: bool = False

    @property
    def better(self) -> Literal["lower", "higher", "neither"]:
        better: dict[str, Literal["lower", "higher"]] = {"cost": "lower", "rate": "higher"}
        return better.get(self.kind, "neither")

    @property
    def compared(self) -> str:
        """What a ratio to a baseline says."""
        return "times as few as" if self.counted else "times as fast as"

    def figure(self, seconds: float, work: int) -> float:
        per_piece = work / seconds if self.kind == "rate" else seconds / work
        return self.factor * per_piece


@dataclass(frozen=True, slots=True)
class Look:
    """How lines over several sizes are drawn: on logarithmic axes, unless they are `linear`.

    `marks` are sizes, at scale 1, at which something changes. With `panels` a contestant is named
    `panel: line`, and each panel has axes of its own.
    """

    linear: bool = False
    marks: tuple[int, ...] = ()
    panels: bool = False


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to do the work.

    `answer` is called first, untimed: it gives what all contestants must agree on, and warms up.
    `run` is timed, and does `work` pieces of work; its result is dropped after the clock stopped,
    unless it is what the unit counts.
    `reset` is called after each turn, untimed, to let go of what the turn left behind.
    """

    name: str
    work: int
    answer: Callable[[], Answer]
    run: Callable[[], object]
    reset: Callable[[], None] = do_nothing
    note: str = ""


@dataclass(frozen=True, slots=True)
class Round:
    """The contestants at one size. `facts` is called last, for what else is worth reporting."""

    size: int
    contestants: tuple[Contestant, ...]
    facts: Callable[[], Mapping[str, Fact]] = no_facts


class Claim(Protocol):
    """What a source says of the contestants, and how that compares with a result."""

    @property
    def source(self) -> str: ...

    def verdict(self, result: Result) -> str: ...


Prepare = Callable[[int, float, int], AbstractContextManager[Round]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is compared, at which sizes, in which unit, and against whom.

    `prepare(size, scale, seed)` opens a round, with less work where the scale is below 1. A round
    may leave out contestants that would take too long. `against` has further baselines; where the
    baseline is empty, nobody is compared. What becomes of the `claims` is among the facts of the
    result. The `clock` may be that of the processor, on which others do not count, where
    contestants have one thread each.
    """

    name: str
    title: str
    sizes: tuple[int, ...]
    size_label: str
    unit: Unit
    baseline: str
    prepare: Prepare = field(repr=False)
    repeats: int = 5
    against: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    look: Look = Look()
    clock: Clock = time.perf_counter
