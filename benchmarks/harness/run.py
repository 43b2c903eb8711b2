"""Contestants agree first, and then take turns: A B C, B C A, C A B, …

A machine's speed drifts, and each contestant leaves caches as the next one finds them. Taking turns
spreads the drift over all of them, and rotating the order gives each one every predecessor.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.harness.experiment import Answer, Clock, Contestant, Experiment, Fact, Round
from benchmarks.harness.machine import describe_machine
from benchmarks.harness.result import Measurement, Result
from headgate.errors import HeadgateError, UsageError, shorten

Progress = Callable[[str], None]


class Disagreement(HeadgateError):
    """Two contestants gave different answers, so their times mean nothing."""


def run_rounds(
    experiment: Experiment,
    *,
    repeats: int | None = None,
    scale: float = 1.0,
    seed: int = 1,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> Result:
    """Measure every contestant at every size, `repeats` times each.

    Raises Disagreement, before anything is timed, where contestants give different answers.
    """
    repeats = experiment.repeats if repeats is None else repeats
    if repeats < 1:
        raise UsageError(f"{repeats} repeats measure nothing; ask for at least 1")
    if scale <= 0:
        raise UsageError(f"a scale of {scale} leaves no work; 0.01 is a quick look, 1 is all")
    report_progress = progress or (lambda _: None)
    chosen = clock or experiment.clock
    measurements: list[Measurement] = []
    facts: dict[str, Fact] = {}
    for size in experiment.sizes:
        report_progress(f"{experiment.name}: preparing")
        # One size at a time, so that only one round is in memory.
        with experiment.prepare(size, scale, seed) as round_:
            measurements += _measure(
                round_, repeats, report_progress, chosen, experiment.unit.counted
            )
            facts |= round_.facts()
    result = Result(
        experiment=experiment.name,
        title=experiment.title,
        size_label=experiment.size_label,
        unit=experiment.unit,
        baseline=experiment.baseline,
        repeats=repeats,
        scale=scale,
        seed=seed,
        measurements=tuple(measurements),
        facts=facts,
        machine=describe_machine(),
        against=experiment.against,
        look=experiment.look,
    )
    # claims are judged last, by what was measured and counted
    verdicts = {claim.source: claim.verdict(result) for claim in experiment.claims}
    return replace(result, facts=facts | verdicts)


def turns(count: int, repeats: int) -> Iterator[list[int]]:
    """Yield the order of contestants in each repeat, rotated by one every time.

    >>> list(turns(3, 2))
    [[0, 1, 2], [1, 2, 0]]
    """
    for repeat in range(repeats):
        yield [(repeat + place) % count for place in range(count)]


def _measure(
    round_: Round, repeats: int, report_progress: Progress, clock: Clock, counted: bool
) -> Iterator[Measurement]:
    """Check that all agree, let them take turns, and yield a measurement for each contestant."""
    contestants = round_.contestants
    report_progress(f"{round_.size:,}: do all agree?")
    _check_agreement(contestants)
    seconds: list[list[float]] = [[] for _ in contestants]
    for repeat, order in enumerate(turns(len(contestants), repeats), 1):
        if not counted:
            gc.collect()  # so that no turn pays for the garbage of the preparation
        for number in order:
            report_progress(f"{round_.size:,}: {contestants[number].name}, {repeat} of {repeats}")
            seconds[number].append(_take_turn(contestants[number], clock, counted))
    for contestant, times in zip(contestants, seconds, strict=True):
        yield Measurement(
            contestant.name, round_.size, contestant.work, tuple(times), contestant.note
        )


def _check_agreement(contestants: tuple[Contestant, ...]) -> None:
    """Raise Disagreement unless all give the same answer; the calls also warm up what is slow."""
    first = contestants[0]
    # The first contestant is the one that all others are compared with.
    expected = first.answer()
    for other in contestants[1:]:
        _compare(first.name, expected, other.name, other.answer())


def _compare(name: str, expected: Answer, other: str, answer: Answer) -> None:
    if len(answer) != len(expected):
        raise Disagreement(
            f"{name} gives {len(expected):,} answers and {other} {len(answer):,}; nothing was timed"
        )
    for number, (first, second) in enumerate(zip(expected, answer, strict=True)):
        if first != second:
            raise Disagreement(
                f"answer {number} of {name} is {shorten(repr(first), 300)}, "
                f"and of {other} {shorten(repr(second), 300)}; nothing was timed"
            )


def _take_turn(contestant: Contestant, clock: Clock, counted: bool) -> float:
    """Return the seconds of a turn, or what was counted in it."""
    # Nothing but the work is between the two readings of the clock.
    start = clock()
    outcome: Any = contestant.run()
    elapsed = clock() - start
    figure = float(outcome) if counted else elapsed
    del outcome  # freed before the next turn, and off the clock
    contestant.reset()
    return figure
