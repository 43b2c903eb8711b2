"""Every index gives exactly the matches that the text of each query says."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest

from headgate.matching import KINDS, Matches, get_index_class
from headgate.predicate import Predicate
from headgate.queries import Query, Source
from headgate.sql import parse_where
from tests.boundaries import STREAM, TYPES, Row
from tests.corpus import cases
from tests.oracles.naive import meaning
from tests.scale import seed
from tests.strategies import Seeded, row

EVENTS = 100


@lru_cache(maxsize=1)
def rows() -> list[Row]:
    dice = Seeded(seed(7))
    return [row(dice) for _ in range(EVENTS)]


def events() -> pa.Table:
    schema = pa.schema([(attribute.name, attribute.type.arrow) for attribute in STREAM])
    return pa.Table.from_pylist(rows(), schema=schema)


def query(name: str, where: Predicate) -> Query:
    return Query(name, (Source(STREAM, STREAM.name),), where)


def matrix(matches: Matches, queries: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Events by queries, True where they match."""
    grid = np.zeros((len(matches), queries), dtype=np.bool_)
    counts = np.diff(matches.offsets)
    grid[np.repeat(np.arange(len(matches)), counts), matches.positions] = True
    return grid


def matched(
    kind: str, predicates: list[Predicate]
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    queries = [query(f"q{n}", predicate) for n, predicate in enumerate(predicates)]
    matches = get_index_class(kind).build(STREAM, queries).match(events())
    assert not matches.errors
    assert len(matches) == EVENTS
    return matrix(matches, len(queries))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shard", range(2))
def test_oracle_index(kind: str, shard: int) -> None:
    """An event matches a query exactly when the naive oracle finds its text TRUE."""
    known = list(cases(shard, 300))
    actual = matched(kind, [case.predicate for case in known])
    for at, case in enumerate(known):
        oracle = meaning(case.text, TYPES)
        expected = [oracle(event) is True for event in rows()]
        assert actual[:, at].tolist() == expected, case.text


@pytest.mark.parametrize("kind", KINDS)
def test_three_way_partition_through_the_index(kind: str) -> None:
    """Each event matches exactly one of p, NOT (p) and (p) IS NULL."""
    known = list(cases(2, 120))
    thirds = [matched(kind, [case.predicate for case in known])]
    for form in ("NOT ({})", "({}) IS NULL"):
        thirds.append(matched(kind, [parse_where(form.format(c.text), STREAM) for c in known]))
    total = sum(third.astype(int) for third in thirds)
    for event, at in np.argwhere(total != 1).tolist():
        pytest.fail(f"{known[at].text!r} on {rows()[event]}: {[t[event, at] for t in thirds]}")


@pytest.mark.parametrize("kind", KINDS)
def test_and_narrows_or_widens_through_the_index(kind: str) -> None:
    """AND never adds a match, and OR never removes one."""
    known = cases(3, 120)
    pairs = list(zip(known, known, strict=True))
    single = matched(kind, [one.predicate for one, _ in pairs])
    both = [parse_where(f"({p.text}) AND ({q.text})", STREAM) for p, q in pairs]
    either = [parse_where(f"({p.text}) OR ({q.text})", STREAM) for p, q in pairs]
    assert not (matched(kind, both) & ~single).any()
    assert not (single & ~matched(kind, either)).any()
