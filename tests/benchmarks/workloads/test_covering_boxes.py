"""Boxes that cover a part of the space, and overlap there."""

import numpy as np
import pytest

from benchmarks.workloads import generate_box_events, generate_covering_boxes
from tests.benchmarks.workloads.rates import about, rate, share_of_events

COUNT = 600


def test_seed() -> None:
    """The same seed gives the same boxes."""
    first, second, other = (
        list(generate_covering_boxes(50, seed=s).where_clauses()) for s in (4, 4, 5)
    )
    assert first == second != other


@pytest.mark.slow
@pytest.mark.parametrize("selectivity", [0.01, 0.3])
@pytest.mark.parametrize("attributes", [2, 3, 5])
def test_selectivity(selectivity: float, attributes: int) -> None:
    """The share asked for of all events matches a box at least."""
    boxes = generate_covering_boxes(COUNT, attributes=attributes, selectivity=selectivity, seed=1)
    events = generate_box_events(10_000, attributes=attributes, seed=2)
    assert len(boxes) == COUNT
    assert about(selectivity, share_of_events(boxes.stream, boxes.queries(), events))


def test_overlap() -> None:
    """Tiles alone match an event once at most; half the boxes as overlap double the matches."""
    events = generate_box_events(10_000, attributes=3, seed=2)
    tiles, doubled = (
        generate_covering_boxes(COUNT, selectivity=0.3, overlap=share, seed=1)
        for share in (0.0, 0.5)
    )
    once = rate(tiles.stream, tiles.queries(), events) * COUNT
    assert once == share_of_events(tiles.stream, tiles.queries(), events)
    assert about(2 * once, rate(doubled.stream, doubled.queries(), events) * COUNT)
    assert np.all(doubled.low < doubled.high)
