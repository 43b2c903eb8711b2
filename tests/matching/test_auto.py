"""The index `auto`: few queries are scanned, many are keyed, and nobody notices the change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event

import pytest

import headgate as hg
from headgate.errors import UsageError
from headgate.matching import KINDS, ScanIndex, auto, get_index_class
from headgate.matching.auto import MIN_INDEXED_QUERIES as ENOUGH
from headgate.matching.auto import AutoIndex
from headgate.queries import Query, QuerySet
from headgate.schema import Schema
from headgate.testing.contract import lists, query
from headgate.testing.generate import every_type, random_rows, random_where

STREAM = every_type()


def queries(count: int) -> list[Query]:
    random = Random(1)
    return [query(STREAM, f"q{n}", random_where(random, STREAM)) for n in range(count)]


@pytest.mark.parametrize("count", [ENOUGH - 1, ENOUGH, ENOUGH + 1])
def test_the_number_of_queries_decides(count: int) -> None:
    """From a certain number on they are keyed; `describe` says why, `locate` where."""
    index = AutoIndex.build(STREAM, queries(count))
    kind = "scan" if count < ENOUGH else "keyed"
    assert index.describe()["kind"] == kind
    assert str(ENOUGH) in index.describe()["chosen_because"]
    assert index.locate("q0").index == kind


def simple(count: int) -> list[Query]:
    """Conditions on single values, as bitmaps have them."""
    return [
        query(STREAM, f"q{n}", f"int_x = {n % 7} AND bigint_x > {n} OR double_x IS NULL")
        for n in range(count)
    ]


def test_values_of_few_attributes_are_in_bitmaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a query comes that is none for them, or too many do."""
    monkeypatch.setattr(auto, "MAX_BITMAP_BYTES", 4 << 20)
    index = AutoIndex.build(STREAM, simple(ENOUGH + 1))
    assert index.describe()["kind"] == "asc"
    assert "bitmaps" in index.describe()["chosen_because"]
    index.insert(query(STREAM, "text", "string_x LIKE 'a%'"))
    assert index.describe()["kind"] == "asc"
    any_letter = " OR ".join(f"string_x LIKE '{letter}%' AND int_x > 3" for letter in "bcdef")
    index.insert(query(STREAM, "texts", any_letter))
    assert index.describe()["kind"] == "keyed"
    assert len(index) == ENOUGH + 3
    lists_of_values = [
        query(STREAM, f"q{n}", f"int_x IN ({', '.join(map(str, range(2 * n, 400_000, 200)))})")
        for n in range(ENOUGH)
    ]
    assert AutoIndex.build(STREAM, lists_of_values).describe()["kind"] == "keyed"
    many = AutoIndex.build(STREAM, simple(3 * ENOUGH))
    assert many.describe()["kind"] == "asc"
    constants = ", ".join(str(3 * n) for n in range(20_000))
    many.update(query(STREAM, "q0", f"bigint_x IN ({constants})"))
    assert many.describe()["kind"] == "keyed"
    assert len(many) == 3 * ENOUGH


@pytest.mark.parametrize(
    "drawn",
    [
        queries(ENOUGH + 40),
        [*simple(ENOUGH + 40), *queries(ENOUGH + 60)[-20:]],
    ],
)
def test_positions_outlive_the_change(drawn: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is removed and updated before and after, ids and positions are those of scan."""
    monkeypatch.setattr(auto, "MAX_BITMAP_ATTRIBUTES", 4)
    rows = random_rows(Random(2), STREAM, 50)
    chosen, scan = AutoIndex(STREAM), ScanIndex(STREAM)
    kinds = set()
    for n, one in enumerate(drawn):
        assert chosen.insert(one) == scan.insert(one)
        for index in (chosen, scan):
            if n % 5 == 4:
                index.remove(f"q{n - 2}")
        if n % 7 == 6:
            changed = query(STREAM, one.id, "TRUE")
            assert chosen.update(changed) == scan.update(changed)
        if n % 10 == 0:
            assert lists(chosen.match(rows)) == lists(scan.match(rows))
            kinds.add(chosen.describe()["kind"])
    assert kinds >= {"scan", "keyed"}
    assert len(chosen) == len(scan)
    actual, expected = chosen.match(rows).in_order(), scan.match(rows)
    assert actual.positions.tolist() == expected.positions.tolist()


def test_wide_conditions_are_keyed() -> None:
    """Where no row of a bitmap drops anybody, bitmaps would be read to their end."""
    names = [a.name for a in STREAM if a.type.family == "number"]
    wide = [
        query(STREAM, f"q{n}", " AND ".join(f"{name} > {n % 9}" for name in names))
        for n in range(20 * ENOUGH)
    ]
    narrow = [query(STREAM, f"q{n}", f"int_x = {n} AND int_y > 3") for n in range(20 * ENOUGH)]
    assert AutoIndex.build(STREAM, narrow).describe()["kind"] == "asc"
    index = AutoIndex.build(STREAM, wide)
    assert index.describe()["kind"] == "keyed"
    assert "as estimated" in index.describe()["chosen_because"]
    # one by one, the choice is made again each time when there are twice as many
    index = AutoIndex(STREAM)
    for one in [*narrow[: 3 * ENOUGH], *(query(STREAM, f"w{q.id}", "TRUE") for q in wide)]:
        index.insert(one)
    assert len(index) == 23 * ENOUGH


def test_many_queries_are_keyed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of more than bitmaps may hold makes none."""
    monkeypatch.setattr(auto, "MAX_BITMAP_QUERIES", 2 * ENOUGH)
    monkeypatch.setattr(AutoIndex, "_build_bitmaps", lambda _self, queries: 1 / (len(queries) < 1))
    assert AutoIndex.build(STREAM, simple(2 * ENOUGH + 1)).describe()["kind"] == "keyed"


def test_threads_are_kept() -> None:
    """How many threads a match may use is said once, before or after the change."""
    index = hg.build_index(QuerySet(Schema((STREAM,)), queries(3)), threads=1)
    for one in queries(ENOUGH + 3)[3:]:
        index.insert(one)
    assert index.describe()["kind"] == "keyed"
    assert index.threads == 1
    index.threads = 3
    assert index.threads == 3


def test_an_unknown_kind_is_named() -> None:
    """With what there is, and a guess at what was meant."""
    with pytest.raises(UsageError, match=r"no index `keyd`; did you mean `keyed`"):
        get_index_class("keyd")


@pytest.mark.parametrize("kind", KINDS)
def test_readers_during_a_write(kind: str) -> None:
    """While queries come, change and go, one that stays is in every answer, and nothing fails."""
    index = get_index_class(kind).build(STREAM, [query(STREAM, "stays", "TRUE"), *queries(60)])
    rows = random_rows(Random(2), STREAM, 30)
    answers: list[bool] = []
    done = Event()

    def read() -> None:
        while not done.is_set():
            matches = index.match(rows)
            answers.append(all("stays" in matches[n] for n in range(len(rows))))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for n, one in enumerate(queries(160)[60:]):
                index.insert(one)
                index.update(query(STREAM, one.id, "TRUE"))
                if n % 2:
                    index.remove(one.id)
        finally:
            done.set()
        for reader in readers:
            reader.result(60)
    assert answers
    assert all(answers)
