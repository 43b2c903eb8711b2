"""What changes under an index: the stages of a transition, and events that just miss."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.be_tree.adaptation import MAX_STEPS, Transition, move_values
from benchmarks.be_tree.contestants import AUTO
from benchmarks.workloads import generate_begen
from benchmarks.workloads.begen import BegenSpec

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def transition() -> Transition:
    queries = generate_begen(200, BegenSpec(matching=0.1), seed=1)
    first, second = queries.part(0, 100), queries.part(100, 200)
    events = queries.events(100, seed=1).table()
    return Transition(queries.stream, first.queries(), second.queries(), events)


def test_stages(transition: Transition) -> None:
    """From one set to the other and back, by halves; the halves of the way back are others."""
    counts = [
        sum(query in transition.first for query in transition.live(stage)) for stage in range(1, 6)
    ]
    assert counts == [100, 50, 0, 50, 100]
    assert {len(transition.live(stage)) for stage in range(1, 6)} == {100}
    assert not set(transition.live(2)) & set(transition.live(4))


@pytest.mark.parametrize("stage", [1, 2, 3, 4, 5])
def test_replayed(transition: Transition, stage: int) -> None:
    """An index that has seen all changes matches as one that was built at the end of them."""
    replay, seconds = transition.replay(AUTO, stage)
    anew = transition.build(AUTO, transition.live(stage))
    actual, expected = (
        [set(ids) for ids in (matches[i] for i in range(len(matches)))]
        for matches in (index.match(transition.events) for index in (replay, anew))
    )
    assert actual == expected
    assert any(actual)
    assert (seconds > 0) == (stage > 1)


def test_just_missing() -> None:
    """A share of the values moves by a few steps and stays in the domain."""
    events = generate_begen(100, seed=1).events(2_000, seed=1)
    moved = move_values(events, 0.2, 48, seed=1)
    steps = np.abs(moved.value - events.value)
    assert float(np.mean(steps > 0)) == pytest.approx(0.2, rel=0.05)
    assert steps.max() == MAX_STEPS
    assert moved.value.min() == 0
    assert moved.value.max() == 47
