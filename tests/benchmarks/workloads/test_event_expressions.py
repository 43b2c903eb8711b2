"""Events as expressions: ranges around the values of an event."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.workloads import generate_begen
from benchmarks.workloads.begen import derive_event_expressions
from benchmarks.workloads.integer_events import BETWEEN, EQUAL


def test_ranges() -> None:
    """Each expression has its event's attributes and holds its values; some stay equal."""
    queries = generate_begen(100, seed=1)
    events, expressions = (
        queries.events(500, seed=4),
        derive_event_expressions(queries, 500, seed=4),
    )
    assert np.array_equal(expressions.offsets, events.offsets)
    assert np.array_equal(expressions.attribute, events.attribute)
    assert np.all((expressions.low <= events.value) & (events.value <= expressions.high))
    assert set(expressions.operator.tolist()) == {EQUAL, BETWEEN}
    assert float(np.mean(expressions.operator == EQUAL)) == pytest.approx(0.3, rel=0.1)
    widths = (expressions.high - expressions.low + 1)[expressions.operator == BETWEEN]
    assert float(widths.mean()) == pytest.approx(0.12 * 48, rel=0.1)


def test_as_queries() -> None:
    """An expression is a conjunction like any other, and its own event satisfies it."""
    queries = generate_begen(20, seed=1)
    expressions = derive_event_expressions(queries, 3, seed=4)
    assert len(expressions.queries()) == 3
    assert "BETWEEN" in next(expressions.where_clauses())
