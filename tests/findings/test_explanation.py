"""Explanations of single queries: what may be given as an event."""

from __future__ import annotations

from pathlib import Path

import pytest

import headgate as hg
from headgate.errors import EventError, UsageError

TRADES = Path(__file__).parents[2] / "examples" / "trades"


def test_values_of_an_event_become_those_of_their_types() -> None:
    """3 is a DECIMAL, too; what a type cannot hold is said, not raised by arithmetic."""
    queries = hg.read_queries(TRADES / "schema.sql", TRADES / "queries.sql")
    explanation = hg.explain(queries["big_buys"], {"side": "buy", "qty": 5000.0})
    assert explanation.is_match
    with pytest.raises(EventError, match="the event cannot be read: `qty`"):
        hg.explain(queries["big_buys"], {"side": "buy", "qty": "many"})


def test_an_id_is_a_string() -> None:
    queries = hg.read_queries(TRADES / "schema.sql", TRADES / "queries.sql")
    with pytest.raises(UsageError, match="ids, which are strings, not 0"):
        queries[0]  # type: ignore[index]
