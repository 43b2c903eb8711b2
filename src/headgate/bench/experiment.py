"""An experiment is named, has sizes, and prepares for each of them a round of contestants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from headgate.bench.result import Result

Answer = tuple[object, ...]
Fact = str | int | float


def nothing() -> None:
    """What a contestant without state does after its turn."""


def no_facts() -> Mapping[str, Fact]:
    return {}


@dataclass(frozen=True, slots=True)
class Unit:
    """How a figure is made of seconds and work: a cost per piece, or a rate of pieces.

    >>> Unit("µs per statement", "cost", 1e6).figure(seconds=2.0, work=1_000)
    2000.0
    >>> Unit("M pairs per second", "rate", 1e-6).figure(seconds=2.0, work=8_000_000)
    4.0
    """

    label: str
    kind: Literal["cost", "rate"]
    factor: float

    @property
    def better(self) -> Literal["lower", "higher"]:
        return "lower" if self.kind == "cost" else "higher"

    def figure(self, seconds: float, work: int) -> float:
        per_piece = seconds / work if self.kind == "cost" else work / seconds
        return self.factor * per_piece


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to do the work.

    `answer` is called first, untimed: it gives what all contestants must agree on, and warms up.
    `run` is timed, and does `work` pieces of work; its result is dropped after the clock stopped.
    `reset` is called after each turn, untimed, to let go of what the turn left behind.
    """

    name: str
    work: int
    answer: Callable[[], Answer]
    run: Callable[[], object]
    reset: Callable[[], None] = nothing
    note: str = ""


@dataclass(frozen=True, slots=True)
class Round:
    """The contestants at one size. `facts` is called last, for what else there is to tell."""

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
    may leave out contestants that would take too long. `against` has further baselines. What
    becomes of the `claims` is among the facts of the result.
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
