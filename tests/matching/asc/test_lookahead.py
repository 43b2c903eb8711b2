"""Looking ahead: the kernels do what a plain version does, and what it does pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

from headgate.matching.asc.kernels.sequences import (
    MIN_STANDARD_ERRORS,
    MonitoredSample,
    find_arrows,
    improve_sequence,
)
from headgate.matching.asc.order import find_used_constructs
from tests.matching.asc.helpers import (
    bitmap,
    plain_constructs,
    plain_events,
    random_bitmaps,
    random_sample,
)
from tests.oracles import asc_definition


@dataclass(frozen=True)
class Case:
    """Constructs and events, for the kernels and for the plain version, and some order."""

    monitored: MonitoredSample
    plain: Sequence[asc_definition.AnyConstruct]
    events: list[list[int]]
    alive: int
    order: list[int]

    def cost(self, order: list[int]) -> int:
        walks = (asc_definition.evaluate(self.plain, e, order, {}, self.alive) for e in self.events)
        return sum(len(walk.path) for walk in walks)

    def rows(self) -> dict[tuple[int, int], int]:
        """The row of each region that an event is in."""
        return {
            (number, region): int(self.monitored.sample[i, number])
            for i, event in enumerate(self.events)
            for number, region in enumerate(event)
        }


def draw_case(seed: int) -> Case:
    random = Random(seed)
    bitmaps = random_bitmaps(random, random.choice([8, 40, 90]), random.randint(3, 6))
    sample = random_sample(random, bitmaps, 120)
    used = find_used_constructs(bitmaps)[0].tolist()
    random.shuffle(used)
    counted = np.bitwise_or.reduce(bitmaps.usage[used], axis=0)
    whole = np.zeros(1, np.int64), np.full(1, len(sample))
    monitored = MonitoredSample(bitmaps.bits, bitmaps.usage, counted, sample, *whole)
    events = plain_events(bitmaps, sample)
    return Case(monitored, plain_constructs(bitmaps), events, bitmap(counted), used)


def move(order: list[int], place: int, to: int) -> list[int]:
    rest = order[:place] + order[place + 1 :]
    return [*rest[:to], order[place], *rest[to:]]


@pytest.mark.parametrize("seed", range(25))
def test_no_single_move_saves_anything_more(seed: int) -> None:
    """And no move on the way there cost anything."""
    case = draw_case(seed)
    improved = improve_sequence(case.monitored, np.array(case.order, np.int64)).tolist()
    assert sorted(improved) == sorted(case.order)
    reached = case.cost(improved)
    assert reached <= case.cost(case.order)
    places = range(len(improved))
    assert all(reached <= case.cost(move(improved, i, j)) for i in places for j in places)


def plain_arrows(case: Case, fewest: int) -> dict[tuple[int, int], int]:
    """As `find_arrows`, by walking each event's whole way for each candidate."""
    arrows: dict[tuple[int, int], int] = {}
    decided: set[tuple[int, int]] = set()
    for depth in range(1, len(case.order) - 1):
        groups: dict[tuple[int, int], list[tuple[list[int], asc_definition.Evaluation]]] = {}
        for event in case.events:
            walked = asc_definition.evaluate(
                case.plain, event, case.order, arrows, case.alive, depth
            )
            standing = walked.path[-1], event[walked.path[-1]]
            if walked.grb and standing not in decided:
                groups.setdefault(standing, []).append((event, walked))
        new: dict[tuple[int, int], int] = {}
        for standing, group in groups.items():
            if len(group) < fewest:
                continue
            decided.add(standing)
            saved = {
                target: [
                    _measure_saving(case, event, arrows, walked, target) for event, walked in group
                ]
                for target in case.order
            }
            best = max(case.order, key=lambda target: sum(saved[target]))
            if (
                sum(saved[best])
                > MIN_STANDARD_ERRORS * sum(one * one for one in saved[best]) ** 0.5
            ):
                new[standing] = best
        arrows |= new
    return arrows


def _measure_saving(
    case: Case,
    event: list[int],
    arrows: asc_definition.Arrows,
    walked: asc_definition.Evaluation,
    target: int,
) -> int:
    """How many constructs fewer, if one that is not evaluated yet is next."""
    if target in walked.path:
        return 0
    usual = next(number for number in case.order if number not in walked.path)
    along = _rest(case, event, arrows, walked, usual)
    return along - _rest(case, event, arrows, walked, target)


def _rest(
    case: Case,
    event: list[int],
    arrows: asc_definition.Arrows,
    walked: asc_definition.Evaluation,
    target: int | None,
) -> int:
    """How many constructs are evaluated from here on."""
    path, grb, steps = list(walked.path), walked.grb, 0
    while target is not None:
        path.append(target)
        steps += 1
        grb &= case.plain[target].regions[event[target]].qrb
        if not grb:
            break
        target = arrows.get((path[-1], event[path[-1]]))
        if target is None or target in path:
            target = next((number for number in case.order if number not in path), None)
    return steps


@pytest.mark.parametrize("seed", range(25))
def test_arrows_are_those_of_the_plain_version(seed: int) -> None:
    case = draw_case(seed)
    fewest = Random(seed).choice([1, 4])
    steps, selectivity = len(case.order), np.zeros(len(case.plain), np.int64)
    bounds = np.zeros(steps, np.int64), np.full(steps, len(case.events))
    monitored = case.monitored._replace(begin=bounds[0], end=bounds[1])
    order = np.array(case.order, np.int64)
    arrows = find_arrows(monitored, order, 0, selectivity, fewest, True)
    rows = case.rows()
    expected = {rows[region]: target for region, target in plain_arrows(case, fewest).items()}
    assert {row: int(arrows[row]) for row in np.flatnonzero(arrows >= 0).tolist()} == expected
