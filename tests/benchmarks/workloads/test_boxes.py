"""Boxes, and events that match them as often as was asked for."""

import numpy as np
import pytest

from benchmarks.workloads import Boxes, generate_box_events, generate_boxes
from headgate.matching import ScanIndex
from headgate.predicate import collect_columns
from headgate.schema import DOUBLE, INT


def test_seed() -> None:
    """The same seed gives the same boxes and the same events."""
    first, second = generate_boxes(50, seed=4), generate_boxes(50, seed=4)
    assert list(first.where_clauses()) == list(second.where_clauses())
    assert list(first.where_clauses()) != list(generate_boxes(50, seed=5).where_clauses())
    assert generate_box_events(50, seed=4).equals(generate_box_events(50, seed=4))
    assert not generate_box_events(50, seed=4).equals(generate_box_events(50, seed=5))


@pytest.mark.slow
@pytest.mark.parametrize("matching", [0.5, 0.05, 0.002])
def test_matching(matching: float) -> None:
    """An event matches a box as often as was asked for."""
    boxes = generate_boxes(400, matching=matching, seed=1)
    index = ScanIndex.build(boxes.stream, boxes.queries())
    events = generate_box_events(2_000, seed=2)
    rate = index.match(events).total / (len(boxes) * events.num_rows)
    assert rate == pytest.approx(matching, rel=0.1)


def test_constrained() -> None:
    """Every box constrains as many attributes as was asked for, and all are used."""
    boxes = generate_boxes(200, attributes=6, constrained=4, seed=1)
    assert {len(collect_columns(query.where)) for query in boxes.queries()} == {4}
    assert set(boxes.sides.ravel().tolist()) == set(range(6))


def test_types() -> None:
    """Attributes are DOUBLE and INT in turns, in the events too."""
    boxes = generate_boxes(1, seed=1)
    assert [attribute.type for attribute in boxes.stream] == [DOUBLE, INT] * 5
    events = generate_box_events(3, seed=1)
    assert events.schema.types == [attribute.type.arrow for attribute in boxes.stream]


def test_shapes() -> None:
    """The sides of a box differ in length."""
    assert spread(generate_boxes(1_000, seed=1)) > 1.5


def spread(result: Boxes) -> float:
    """How much longer the longest side of a box is than its shortest, typically."""
    per_unit = np.where(result.sides % 2 == 0, 1_000, 1)
    widths = (result.high - result.low) * per_unit
    return float(np.median(widths.max(axis=1) / widths.min(axis=1)))
