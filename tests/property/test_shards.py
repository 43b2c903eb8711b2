"""Shards have every filter once, and no guard keeps an event from a filter that wants it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from headgate.matching import ScanIndex
from headgate.matching.shards import divide_filters
from headgate.predicate import Predicate
from headgate.queries import Query, Source
from headgate.schema import INT, Attribute, Schema, Stream
from headgate.snapshot.arrays import decode_queries, encode_queries
from headgate.snapshot.arrays.selection import select_queries
from headgate.sql import parse_where
from tests.boundaries import STREAM
from tests.corpus import cases
from tests.property.test_index import EVENTS, events, matrix, query
from tests.scale import case_count

SCHEMA = Schema((STREAM,))
SET = 8  # filters that are divided: of more, few guards are narrow


@pytest.mark.parametrize("count", [1, 3, 8])
def test_agree_with_one_index(count: int) -> None:
    """Over shards that see only what their guards let through, the matches are those of all."""
    known = list(cases(4 + count, case_count(1_500)))
    filters = [query(f"q{n}", case.predicate) for n, case in enumerate(known)]
    whole = matrix(ScanIndex.build(STREAM, filters).match(events()), len(filters))
    encoded = encode_queries(filters, SCHEMA)
    withheld = 0
    # many small sets, so that guards are narrow: one TRUE guard would prove nothing
    for begin in range(0, len(filters), SET):
        places = np.arange(begin, min(begin + SET, len(filters)))
        part = select_queries(encoded, places, SCHEMA)
        merged = np.zeros((EVENTS, len(places)), np.bool_)
        for shard in divide_filters(part, SCHEMA, count):
            guards = ScanIndex.build(STREAM, [query("guard", shard.guard)])
            is_sent = matrix(guards.match(events()), 1)[:, 0]
            own = list(decode_queries(select_queries(part, shard.places, SCHEMA), SCHEMA))
            matches = matrix(ScanIndex.build(STREAM, own).match(events()), len(own))
            withheld += int((~is_sent).sum())
            merged[:, shard.places] = matches & is_sent[:, None]
        assert (merged == whole[:, places]).all()
    # else no guard was there that could fail too often
    assert withheld > 0 or count < SET


def filters_on(stream: Stream, wheres: Iterable[Predicate]) -> list[Query]:
    return [Query(f"q{n}", (Source(stream, "s"),), where) for n, where in enumerate(wheres)]


@pytest.mark.parametrize(("filters", "count"), [(0, 3), (1, 3), (10, 3), (10, 1), (10, 20)])
def test_every_filter_has_one_shard(filters: int, count: int) -> None:
    stream = Stream("s", (Attribute("a", INT),))
    schema = Schema((stream,))
    written = filters_on(stream, (parse_where(f"a = {n}", stream) for n in range(filters)))
    shards = divide_filters(encode_queries(written, schema), schema, count)
    places = [place for shard in shards for place in shard.places.tolist()]
    assert sorted(places) == list(range(filters))
    assert len(shards) == min(filters, count)


def test_few_shards_see_an_event() -> None:
    """With a tenant in every filter, an event goes to the shard of its tenant."""
    stream = Stream("s", (Attribute("tenant", INT), Attribute("x", INT)))
    texts = [f"tenant = {n % 100} AND x BETWEEN {n % 7} AND {n % 7 + 3}" for n in range(1_000)]
    schema = Schema((stream,))
    written = filters_on(stream, (parse_where(text, stream) for text in texts))
    shards = divide_filters(encode_queries(written, schema), schema, 10)
    guards = ScanIndex.build(stream, filters_on(stream, (shard.guard for shard in shards)))
    assert guards.match([{"tenant": tenant, "x": 5} for tenant in range(100)]).total == 100
    assert guards.match([{"tenant": None, "x": 5}, {"tenant": 1_000, "x": 5}]).total == 0
