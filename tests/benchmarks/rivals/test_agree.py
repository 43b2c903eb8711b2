"""Every rival finds what Headgate's own indexes find, on the paper's workload and on every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.rivals import static_index
from benchmarks.rivals.counting import AppIndex, SiftIndex
from benchmarks.rivals.k_index import KIndex
from benchmarks.rivals.static_index import StaticIndex
from benchmarks.workloads import generate_begen, generate_range_queries
from benchmarks.workloads.begen import EXPRESSIVENESS, BegenSpec, Level
from headgate.errors import ExpansionTooLarge, QuerySetError
from headgate.matching import Index, Matches, ScanIndex
from headgate.matching.keyed.index import KeyedIndex
from headgate.queries import Query, Source
from headgate.schema import INT, Attribute, Stream
from headgate.testing.contract import query
from tests.benchmarks.rivals.rivals import RIVALS
from tests.boundaries import STREAM
from tests.corpus import cases
from tests.scale import at_least, slow_unless_in
from tests.strategies import Seeded, row

pytestmark = pytest.mark.slow  # compiles the kernels of rivals

LEVELS: tuple[Level, ...] = tuple(EXPRESSIVENESS)
UNEQUAL = "<>, NOT IN or NOT BETWEEN on `"


def assert_same(actual: Matches, expected: Matches) -> None:
    actual, expected = actual.in_order(), expected.in_order()
    assert np.array_equal(actual.offsets, expected.offsets)
    assert np.array_equal(actual.positions, expected.positions)


def chunks(index: Index, events: Any) -> list[Matches]:
    return list(index.match_chunks(events))


@pytest.mark.parametrize("zipf", slow_unless_in([1.0], [0.0, 1.0]))
@pytest.mark.parametrize("level", slow_unless_in(["medium"], LEVELS))
@pytest.mark.parametrize("kind", RIVALS)
def test_agree_with_keyed(kind: type[StaticIndex], level: Level, zipf: float) -> None:
    """Millions of pairs, at all levels of expressiveness, with attributes uniform and by Zipf."""
    queries = generate_begen(
        3_000,
        BegenSpec(dimensions=60, predicates=5, fewest=3, zipf=zipf, operators=level, extra=3),
        seed=7,
    )
    events = queries.events(500, seed=8).table()
    encoded = queries.encode()
    if kind is KIndex and level == "high":
        with pytest.raises(QuerySetError, match=UNEQUAL):
            kind.from_encoded(queries.stream, encoded)
        return
    expected = KeyedIndex.from_encoded(queries.stream, encoded).match(events)
    assert expected.total > 500
    assert_same(kind.from_encoded(queries.stream, encoded).match(events), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RIVALS)
def test_agree_with_scan_on_every_type(kind: type[StaticIndex]) -> None:
    """NULL, NaN, 2^53 + 1 and the like, in clauses and rows near the limits of each type."""
    source = (Source(STREAM, STREAM.name),)
    drawn = [
        Query(f"{shard}.{n}", source, case.predicate)
        for shard in range(2)
        for n, case in enumerate(cases(shard))
    ]
    queries = [one for one in drawn if kind.refusal(one) is None]
    assert len(queries) > at_least(300)
    dice = Seeded(9)
    schema = pa.schema([(attribute.name, attribute.type.arrow) for attribute in STREAM])
    events = pa.Table.from_pylist([row(dice) for _ in range(300)], schema=schema)
    expected = ScanIndex.build(STREAM, queries).match(events)
    assert_same(kind.build(STREAM, queries).match(events), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RIVALS)
def test_small_room(kind: type[StaticIndex], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is little room for matches there are more chunks, and the answer is the same."""
    queries = generate_range_queries(400, attributes=6, constrained=3, matching=0.2, seed=1)
    events = queries.events(50, seed=1).table()
    expected = KeyedIndex.from_encoded(queries.stream, queries.encode()).match(events)
    monkeypatch.setattr(static_index, "OUTPUT", 1)
    index = kind.from_encoded(queries.stream, queries.encode())
    assert len(chunks(index, events)) > 10
    assert_same(index.match(events), expected)
    index.insert(query(queries.stream, "all", "TRUE"))
    assert len(chunks(index, events)) == 50
    assert index.match(events).total == expected.total + 50


@pytest.mark.slow
@pytest.mark.parametrize("kind", RIVALS)
def test_changes_after_arrays(kind: type[StaticIndex]) -> None:
    """An index that was built from arrays can be changed as any other."""
    queries = generate_begen(200, BegenSpec(extra=3, matching=0.1), seed=1)
    events = queries.events(50, seed=2).table()
    changed = kind.from_encoded(queries.stream, queries.part(0, 150).encode())
    scan = ScanIndex.build(queries.stream, queries.part(0, 150).queries())
    for one in queries.part(150, 200).queries():
        changed.insert(one)
        scan.insert(one)
    for number in range(0, 200, 7):
        changed.remove(f"q{number}")
        scan.remove(f"q{number}")
    assert_same(changed.match(events), scan.match(events))


@pytest.mark.parametrize("kind", RIVALS)
def test_a_query_with_or_is_reported_once(kind: type[StaticIndex]) -> None:
    """Whichever and however many of its conjunctions hold."""
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    where = "a = 1 OR b = 2 OR (a BETWEEN 0 AND 5 AND b > 1)"
    index = kind.build(stream, [query(stream, "p", "b = 9"), query(stream, "q", where)])
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 9}, {"b": 9}, {"a": 3, "b": 9}]
    values = index.match(rows).ids().to_pylist()
    assert values == [["q"], ["q"], [], ["p"], ["p", "q"]]
    assert index.describe()["entries"] == 4


REFUSED = {
    "name LIKE 'a%'": "`q` has LIKE; ",
    "name NOT ILIKE 'a%' AND a = 1": "`q` has ILIKE; ",
    "name RLIKE '^a'": "`q` has RLIKE; ",
    "a < b": "`q` has `a` < `b`; ",
    "a = 1 OR b IS NULL": "`q` has `b` IS NULL; ",
}


@pytest.mark.parametrize("kind", RIVALS)
def test_refused_by_name(kind: type[StaticIndex]) -> None:
    """What a rival cannot express is refused before anything changes."""
    from headgate.schema import STRING

    attributes = (Attribute("a", INT), Attribute("b", INT), Attribute("name", STRING))
    stream = Stream("s", attributes)
    index = kind.build(stream, [query(stream, "p", "a = 1"), query(stream, "q", "a = 2")])
    for where, reason in REFUSED.items():
        refused = query(stream, "q", where)
        assert (kind.refusal(refused) or "").startswith(reason)
        with pytest.raises(QuerySetError, match="indexes comparisons with constants only"):
            index.update(refused)
    many = " AND ".join(f"(a = {n} OR b = {n})" for n in range(10))
    with pytest.raises(
        QuerySetError, match="`r`: as an OR of ANDs the condition has 1,024 alternatives"
    ):
        index.insert(query(stream, "r", many))
    assert index.match([{"a": 2}]).ids().to_pylist() == [["q"]]


@pytest.mark.parametrize("where", ["a <> 3", "a NOT IN (1, 5)", "b = 2 AND a NOT BETWEEN 1 AND 5"])
def test_strong_inequality(where: str) -> None:
    """An absent attribute fails <> and NOT IN; the k-index could not see that, and refuses."""
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    one = query(stream, "q", where)
    assert (KIndex.refusal(one) or "").startswith(f"`q` has {UNEQUAL}a`")
    for kind in RIVALS:
        if kind is not KIndex:
            matches = kind.build(stream, [one]).match([{"b": 2}, {"a": 9, "b": 2}])
            assert matches.ids().to_pylist() == [[], ["q"]]


def test_too_much_to_count() -> None:
    """SIFT's counters and the lists of enumeration have a limit, which is told."""
    wide = generate_range_queries(1, attributes=300, constrained=260, seed=1)
    with pytest.raises(QuerySetError, match="255 predicates or more"):
        SiftIndex.from_encoded(wide.stream, wide.encode())
    assert len(AppIndex.from_encoded(wide.stream, wide.encode())) == 1


def test_too_much_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that would not fit are declined before they are written."""
    from benchmarks.rivals import counting

    monkeypatch.setattr(counting, "MAX_LISTED", 100)
    queries = generate_range_queries(50, seed=1)
    with pytest.raises(ExpansionTooLarge, match=r"lists of [\d,]+ entries, over the cap of 100"):
        SiftIndex.from_encoded(queries.stream, queries.encode())
