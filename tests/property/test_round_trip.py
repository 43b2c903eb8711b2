"""Rendering and reading again gives the same object."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given

from headgate.predicate import simplify
from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.sql import (
    Declared,
    Rejected,
    Script,
    parse_where,
    render_predicate,
    render_query,
    render_schema,
    render_stream,
)
from tests.boundaries import STREAM
from tests.corpus import SHARDS, cases
from tests.scale import case_count, seed
from tests.statements import Statements
from tests.strategies import Seeded, wheres


def accepted(actual: Iterable[Declared | Rejected]) -> list[Declared]:
    """What a script declares; fails on the first statement that it refuses."""
    result: list[Declared] = []
    for each in actual:
        assert not isinstance(each, Rejected), str(each.error)
        result.append(each)
    return result


@given(wheres())
def test_predicate_round_trip_shrinking(text: str) -> None:
    """What a clause means survives being written and read."""
    predicate = parse_where(text, STREAM)
    assert parse_where(render_predicate(predicate), STREAM) == predicate


@pytest.mark.parametrize("shard", SHARDS[:2])
def test_predicate_round_trip(shard: int) -> None:
    """A parsed predicate, rendered and parsed, is the same predicate."""
    for case in cases(shard):
        again = parse_where(render_predicate(case.predicate), STREAM)
        assert again == case.predicate, case.text


@pytest.mark.parametrize("shard", SHARDS[:2])
def test_simplified_round_trip(shard: int) -> None:
    """A simplified predicate survives too, up to simplification."""
    for case in cases(shard):
        simple = simplify(case.predicate)
        again = parse_where(render_predicate(simple), STREAM)
        assert simplify(again) == simple, case.text


@pytest.mark.parametrize("shard", SHARDS[:2])
def test_statement_round_trip(shard: int) -> None:
    """CREATE STREAM with its domains, CREATE AGGREGATE, and CREATE QUERY with joins, row windows,
    aggregates, DISTINCT, GROUP BY and aliases, survive being written and read."""
    dice = Seeded(seed(shard))
    for _ in range(case_count(40)):
        statements = Statements(dice)
        script = Script(Schema())
        declared = accepted(script.read(statements.schema()))
        queries = accepted(script.read(statements.queries(4)))
        again = Script(Schema())
        assert accepted(again.read(render_schema(script.schema))) == declared
        assert again.schema == script.schema
        written = ";\n".join(render_query(q) for q in queries if isinstance(q, Query))
        assert accepted(again.read(written)) == queries, written


def test_stream_round_trip_names_the_zone() -> None:
    """A schema in another zone says so, and reads back in that zone."""
    script = Script(Schema())
    text = "SET TIME ZONE 'Europe/Berlin'; CREATE STREAM s (at TIMESTAMP CHECK (at > '2024-07-01'))"
    (stream,) = accepted(script.read(text))
    assert isinstance(stream, Stream)
    again = Script(Schema())
    assert accepted(again.read(render_schema(script.schema))) == [stream]
    assert "2024-06-30 22:00:00" in render_stream(stream)
