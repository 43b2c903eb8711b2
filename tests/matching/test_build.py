"""One choice of index for queries in memory and in a snapshot, with equal matches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headgate.errors import UsageError
from headgate.matching import KINDS, build_index, build_index_from_snapshot
from headgate.matching.asc.options import AscOptions
from headgate.matching.auto import MAX_BITMAP_QUERIES, MIN_INDEXED_QUERIES
from headgate.queries import QuerySet
from headgate.schema import INT, Attribute, Schema, Stream
from headgate.snapshot import publish
from headgate.testing.contract import query

STREAM = Stream("s", tuple(Attribute(name, INT) for name in "abc"))
EVENTS = [{"a": n % 7, "b": n % 5} for n in range(40)]


def query_set(count: int) -> QuerySet:
    wheres = (f"a = {n % 7} AND b < {n % 5}" for n in range(count))
    queries = [query(STREAM, f"q{n}", where) for n, where in enumerate(wheres)]
    return QuerySet(Schema((STREAM,)), queries)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [3, MIN_INDEXED_QUERIES])
def test_agree_memory_and_snapshot(kind: str, count: int, tmp_path: Path) -> None:
    queries = query_set(count)
    built = build_index_from_snapshot(publish(queries, tmp_path), kind, threads=1)
    expected = build_index(queries, kind).match(EVENTS)
    assert built.index.threads == 1
    assert built.index.match(EVENTS).ids().to_pylist() == expected.ids().to_pylist()
    assert built.columns == {"a", "b"}
    positions = np.array([2, 0])
    assert [one.id for one in built.queries_at(positions)] == ["q2", "q0"]


def comparisons(count: int) -> QuerySet:
    """Return queries that compare two attributes."""
    queries = [query(STREAM, f"q{n}", f"a = {n % 7} AND b < c") for n in range(count)]
    return QuerySet(Schema((STREAM,)), queries)


@pytest.mark.parametrize(
    ("queries", "kind"),
    [
        (query_set(MIN_INDEXED_QUERIES - 1), "scan"),
        (query_set(MIN_INDEXED_QUERIES), "asc"),
        (comparisons(MIN_INDEXED_QUERIES), "asc"),
        (query_set(MAX_BITMAP_QUERIES), "asc"),
        (query_set(MAX_BITMAP_QUERIES + 1), "keyed"),
    ],
)
def test_auto_chooses_the_same_for_a_snapshot(queries: QuerySet, kind: str, tmp_path: Path) -> None:
    built = build_index_from_snapshot(publish(queries, tmp_path))
    chosen = [index.describe()["kind"] for index in (build_index(queries), built.index)]
    assert chosen == [kind, kind]


def test_filters_of_one_stream_are_decoded_without_the_others(tmp_path: Path) -> None:
    """Deltas, removed queries, joins and other streams: what is left keeps its order."""
    other = Stream("t", (Attribute("a", INT),))
    schema = Schema((STREAM, other))
    mixed = [query((STREAM, other)[n % 3 == 0], f"q{n}", f"a = {n}") for n in range(300)]
    publish(QuerySet(schema, mixed), tmp_path)
    changed = [q for n, q in enumerate(mixed) if n not in (1, 3)]
    changed[2:2] = [query(STREAM, "new", "a = 99"), query(other, "alien", "a = 98")]
    snapshot = publish(QuerySet(schema, changed), tmp_path)
    assert len(snapshot.stored) > 1
    for stream in schema.streams:
        expected = [(q.id, str(q.where)) for q in changed if q.stream_name == stream.name]
        assert [(q.id, str(q.where)) for q in snapshot.filters(stream)] == expected


def test_options_are_for_one_kind(tmp_path: Path) -> None:
    queries, options = query_set(3), AscOptions(period=7)
    built = build_index_from_snapshot(publish(queries, tmp_path), "asc", options=options)
    assert getattr(built.index, "options") == options  # noqa: B009
    with pytest.raises(UsageError, match='of kind "asc", not "auto"'):
        build_index(queries, options=options)
    with pytest.raises(UsageError, match="`options` are AscOptions, not str"):
        build_index_from_snapshot(publish(queries, tmp_path), "asc", options="macro")
    with pytest.raises(UsageError, match="at least 1"):
        build_index(queries, threads=0)
