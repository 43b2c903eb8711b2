"""The kernels find the sequences, arrows and counts that the definitions give."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from headgate.matching.asc.kernels.evaluate import (
    DROPPED,
    EVALUATED,
    EVENTS,
    FOLLOWED,
    MICRO,
    evaluate_events,
)
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import EvaluationOrder, find_order, find_used_constructs
from tests.matching.asc.helpers import (
    PlainConstruct,
    PlainRegion,
    bitmap,
    plain_constructs,
    plain_events,
    random_bitmaps,
    random_sample,
)
from tests.oracles import asc_definition


@pytest.mark.parametrize("seed", range(150))
def test_sequences_and_arrows_are_those_of_the_definitions(seed: int) -> None:
    """With periods of their own, or one for all; with few events and with many."""
    random = Random(seed)
    bitmaps = random_bitmaps(random, random.choice([3, 20, 100]), random.randint(1, 7))
    sample = random_sample(random, bitmaps, random.choice([0, 5, 200, 400]))
    monitored, fewest = random.choice([None, 7, 30]), random.choice([1, 2, 5])
    options = AscOptions("hybrid", monitored=monitored, fewest=fewest, lookahead=False)
    order = find_order(bitmaps, sample, options, thorough=True)
    used = find_used_constructs(bitmaps)[0].tolist()
    every, events = plain_constructs(bitmaps), plain_events(bitmaps, sample)
    constructs = [every[number] for number in used]  # by place among those in use
    narrowed = [_narrow(one, used) for one in constructs]
    events = [[event[number] for number in used] for event in events]
    steps = max(0, len(used) - 1)
    size = len(events) if monitored is None else min(monitored, len(events) // max(1, steps))
    starts = [0 if monitored is None else size * step for step in range(steps)]
    periods = [events[start : start + size] for start in starts]
    alive = bitmap(bitmaps.alive)
    sequence, cover = asc_definition.macro_sequence(narrowed, periods, alive)
    assert order.sequence == tuple(used[place] for place in sequence)
    assert order.cover == cover
    arrows = asc_definition.hybrid_arrows(narrowed, sequence, cover, periods, alive, fewest)
    expected = {
        int(bitmaps.constructs[used[at]].rows[region]): used[target]
        for (at, region), target in arrows.items()
    }
    at = np.flatnonzero(order.arrows >= 0).tolist()
    assert {row: int(order.arrows[row]) for row in at} == expected


def _narrow(construct: asc_definition.AnyConstruct, used: list[int]) -> asc_definition.AnyConstruct:
    """With candidates by their places among the constructs in use."""
    regions = tuple(
        PlainRegion(
            region.qrb,
            sum(1 << place for place, number in enumerate(used) if region.cab >> number & 1),
        )
        for region in construct.regions
    )
    return PlainConstruct(construct.qub, regions)


@pytest.mark.parametrize("seed", range(30))
def test_counts_are_those_of_the_definitions(seed: int) -> None:
    """In blocks of any size: what an event evaluates, follows and finds."""
    random = Random(seed)
    bitmaps = random_bitmaps(random, random.choice([5, 90, 700]), random.randint(2, 7))
    sample = random_sample(random, bitmaps, 40)
    used = find_used_constructs(bitmaps)[0].tolist()
    random.shuffle(used)
    arrows = np.full(bitmaps.rows, -1, np.int16)
    for row in random.sample(range(bitmaps.rows), bitmaps.rows // 2):
        arrows[row] = random.choice(used)
    table, block = bitmaps.table(), random.choice([1, 2, 16, 64])
    tally = np.zeros(5, np.int64)
    out, offsets = np.empty(100_000, np.int64), np.empty(len(sample) + 1, np.int64)
    seen = np.full(2_000, -1, np.int64)
    at = np.ascontiguousarray(sample.T)
    way = EvaluationOrder(tuple(used), 0, arrows).packed
    end = evaluate_events(table, at, 0, len(sample), way, block, 2_000, seen, out, offsets, tally)
    assert end == len(sample)
    plain, events = plain_constructs(bitmaps), plain_events(bitmaps, sample)
    by_region = {
        (number, region): int(arrows[row])
        for number, subject in enumerate(bitmaps.constructs)
        for region, row in enumerate(subject.rows.tolist())  # type: ignore[union-attr]
        if arrows[row] >= 0
    }
    alive = bitmap(bitmaps.alive)
    walked = [asc_definition.evaluate(plain, event, used, by_region, alive) for event in events]
    assert tally[EVENTS] == len(events)
    assert tally[DROPPED] == sum(one.grb == 0 for one in walked)
    assert tally[EVALUATED] == sum(len(one.path) for one in walked)
    assert tally[FOLLOWED] == sum(max(0, len(one.path) - 1) for one in walked)
    assert tally[MICRO] == sum(one.micro for one in walked)
    for event, one in enumerate(walked):
        positions = {int(table.owner[s]) for s in range(64 * len(table.alive)) if one.grb >> s & 1}
        assert sorted(positions) == sorted(out[offsets[event] : offsets[event + 1]].tolist())
