"""Faults that were found once, and must not come back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headgate.matching.asc.bitmaps import Bitmaps
from headgate.matching.asc.index import AscIndex
from headgate.matching.asc.monitor import Statistics, sum_statistics
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import EvaluationOrder
from headgate.queries import Query
from headgate.schema import BIGINT, INT, STRING, Attribute, Stream
from headgate.testing.contract import lists, query

STREAM = Stream("s", tuple(Attribute(name, INT) for name in "abc"))


def make_queries(**wheres: str) -> list[Query]:
    return [query(STREAM, name, where) for name, where in wheres.items()]


def table(**columns: np.ndarray) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})


def test_an_attribute_that_nobody_asks_about_any_more_is_not_read() -> None:
    index = AscIndex.build(STREAM, make_queries(x="a = 1", y="c = 1"))
    index.remove("y")
    matches = index.match([{"a": 1, "c": "unreadable"}])
    assert lists(matches) == [["x"]]
    assert not matches.errors


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("step", ["_write", "_use", "_take_slots"])
def test_queries_survive_an_interruption(
    monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException], step: str
) -> None:
    """Ctrl-C while they are written, and all are there the next time."""
    index = AscIndex.build(STREAM, make_queries(x="a = 1", z="b > 3 OR c = 2"))
    index.insert(query(STREAM, "y", "c = 1"))
    index.remove("x")
    index.insert(query(STREAM, "x", "b = 2"))

    def interrupt(*_: object) -> None:
        raise interruption

    with monkeypatch.context() as patch:
        patch.setattr(Bitmaps, step, interrupt)
        with pytest.raises(interruption):
            index.match([{"c": 1}])
    rows = [{"c": 1}, {"b": 2}, {"a": 1}, {"c": 2, "b": 5}]
    assert lists(index.match(rows)) == [["y"], ["x"], [], ["z"]]


def test_an_order_survives_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C when all was written anew, with fewer constructs, and the order not yet brought up to
    date."""
    index = AscIndex.build(STREAM, make_queries(x="a = 1", y="b = 1", z="c = 1"))
    index.remove("x")
    index.remove("y")
    index._bitmaps.rebuild()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("headgate.matching.asc.adaptive_order.find_used_constructs", interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.match([{"c": 1}])
    assert lists(index.match([{"c": 1}, {"a": 1, "b": 1}])) == [["z"], []]
    assert index.describe()["order"] == ["c"]


def test_slots_are_used_again() -> None:
    """However often one goes and one comes."""
    index = AscIndex.build(STREAM, make_queries(stays="a = 1"))
    for number in range(300):
        index.insert(query(STREAM, f"q{number}", f"b = {number % 7}"))
        assert lists(index.match([{"a": 1, "b": number % 7}])) == [["stays", f"q{number}"]]
        index.remove(f"q{number}")
    assert index._bitmaps.words == 1


@pytest.mark.parametrize("matched", [True, False])
def test_who_has_left_takes_no_room(matched: bool) -> None:
    """Constants of queries that are gone are no reason to refuse another."""
    index = AscIndex(STREAM, AscOptions(max_bytes=64 << 10))
    for number in range(1_500):
        many = ", ".join(str(10 * number + 2 * one) for one in range(20))
        index.insert(query(STREAM, f"q{number}", f"a IN ({many})"))
        if matched and number % 10 == 0:
            index.match([{"a": 1}])
        index.remove(f"q{number}")
    assert len(index) == 0


def test_events_are_counted_though_all_is_written_anew() -> None:
    index = AscIndex.build(STREAM, make_queries(stays="a = 1"), AscOptions(period=10_000))
    for number in range(2_500):
        index.insert(query(STREAM, f"q{number}", f"b = {number}"))
        index.match([{"a": 1}])
        index.remove(f"q{number}")
    assert index._bitmaps.epoch > 0
    assert index.describe()["events"] == 2_500


def test_filing_says_what_is() -> None:
    index = AscIndex.build(
        STREAM, make_queries(always="TRUE", never="a = 1 AND a = 2", two="a = 1 OR b = 2")
    )
    assert "every event" in index.locate("always").how
    assert "never" in index.locate("never").how
    assert "2 bits" in index.locate("two").how
    index.insert(query(STREAM, "new", "c = 1"))
    assert "a bit in each of" in index.locate("new").how


def test_a_rhythm_in_the_stream_does_not_fool_the_sample() -> None:
    """Fifty devices report in turn, one of them in a way that asks for another order."""
    queries = [query(STREAM, f"q{n}", f"a = {n} AND b = {n}") for n in range(50)]
    count, random = 60_000, np.random.default_rng(1)
    device = np.arange(count) % 50
    odd = device == 0
    a = np.where(odd, random.integers(0, 50, count), 1_000)
    b = np.where(odd, 1_000, random.integers(0, 50, count))
    options = AscOptions(period=20_000, sample=400, sequence="macro")
    index = AscIndex.build(STREAM, queries, options)
    index.match(table(a=a, b=b))
    assert index.describe()["order"] == ["a", "b"]
    assert index.monitor.history[-1].cost < 1.1


def test_a_better_order_is_chosen_though_nothing_shows() -> None:
    """First the first two constructs drop all events; then the third would do so alone."""
    queries = [query(STREAM, f"q{n}", f"a = {n} AND b = {n} AND c = 5") for n in range(50)]
    index = AscIndex.build(STREAM, queries, AscOptions(period=1_000, sequence="macro"))
    count, random = 20_000, np.random.default_rng(1)
    a = random.integers(0, 50, count)
    index.match(table(a=a, b=(a + 1) % 50, c=np.full(count, 5)))
    assert index.monitor.history[-1].cost == 2
    index.match(table(a=a, b=(a + 1) % 50, c=np.full(count, 6)))
    assert index.describe()["order"][0] == "c"
    assert index.monitor.history[-1].cost == 1
    assert "another order" in index.describe()["last_rearranged"]["because"]


def test_noise_is_no_reason() -> None:
    """A ratio that is so small that it differs from period to period by chance."""
    queries = [query(STREAM, "most", "a < 999"), query(STREAM, "some", "b < 500 AND c < 500")]
    random = np.random.default_rng(1)
    columns = {name: random.integers(0, 1_000, 200_000) for name in "abc"}
    index = AscIndex.build(STREAM, queries, AscOptions(period=5_000))
    index.match(table(**columns))
    assert 0 < index.monitor.history[-1].dropping < 0.005
    assert index.describe()["rearranged"] == 2


def test_statistics_of_other_constructs_are_passed_over() -> None:
    """Also where a query came between the events and the statistics, or no events came."""
    index = AscIndex.build(STREAM, make_queries(x="a = 1"))
    other = AscIndex.build(STREAM, make_queries(x="a = 1"), AscOptions(period=50))
    index.follow(None)
    index.match([{"a": 1}] * 90)
    for one in (index, other):
        one.insert(query(STREAM, "y", "b = 2"))
    late = index.take_statistics()
    assert late.fingerprint == other.take_statistics().fingerprint
    assert len(late.sample) == 0
    other.learn(late)
    assert lists(other.match([{"a": 1, "b": 2}])) == [["x", "y"]]
    assert sum_statistics([late]) is None
    sample = np.zeros((5, 2), np.int32)
    many = [Statistics(name, np.ones(5, np.int64), sample) for name in ("old", "new", "new")]
    merged = sum_statistics(many)
    assert merged is not None
    assert (merged.fingerprint, len(merged.sample), merged.tally.tolist()) == ("new", 10, [2] * 5)


def test_more_attributes_than_a_word_has_bits() -> None:
    """Arrows lead to the first 64 places only; the others are evaluated all the same."""
    stream = Stream("s", tuple(Attribute(f"a{n}", INT) for n in range(90)))
    queries = [query(stream, f"q{n}", f"a{n} = 1 AND a{(n + 7) % 90} = 1") for n in range(90)]
    random = np.random.default_rng(1)
    events = {one.name: random.integers(0, 2, 3_000) for one in stream}
    options = AscOptions(period=500, threshold=0, fewest=1, lookahead=False)
    index = AscIndex.build(stream, queries, options)
    matches = index.match(table(**events))
    assert index.describe()["constructs"] == 90
    for row in (0, 1, 2_999):
        there = {name: int(values[row]) for name, values in events.items()}
        expected = [f"q{n}" for n in range(90) if there[f"a{n}"] and there[f"a{(n + 7) % 90}"]]
        assert matches[row] == expected


@pytest.mark.parametrize("lookahead", [True, False])
def test_a_fixed_order_stays(lookahead: bool) -> None:
    """Whatever the events are; and an order that leaves constructs out loses no condition."""
    queries = [query(STREAM, f"q{n}", f"a = {n} AND b < {n} AND c = 5") for n in range(50)]
    options = AscOptions(sequence="fixed", period=200, lookahead=lookahead)
    index = AscIndex.build(STREAM, queries, options)
    index.order = EvaluationOrder((1,))
    random = np.random.default_rng(1)
    events = {name: random.integers(0, 50, 5_000) for name in "ab"} | {"c": np.full(5_000, 6)}
    assert index.match(table(**events)).total == 0
    assert index.describe()["order"] == ["b", "a", "c"]
    assert index.describe()["rearranged"] == 0


@pytest.mark.parametrize("end", [-(2**63), 2**63 - 1])
def test_the_ends_of_a_type_in_a_table(end: int) -> None:
    """A table of all values between constants is made after many events."""
    stream = Stream("s", (Attribute("a", BIGINT),))
    wheres = {"is": f"a = {end}", "is not": f"a <> {end}"}
    index = AscIndex.build(stream, [query(stream, *one) for one in wheres.items()])
    events = pa.table({"a": pa.array([0, end] * 50_000, pa.int64())})
    assert [index.match(events)[row] for row in (0, 1, 99_998, 99_999)] == [["is not"], ["is"]] * 2


@pytest.mark.parametrize("where", ["TRUE", "a = 1 AND a = 2", "t LIKE 'a%'", None])
def test_an_index_without_values_to_look_at(where: str | None) -> None:
    """Nothing but texts, or nothing at all: there is no order to find, however many events come."""
    stream = Stream("s", (Attribute("a", INT), Attribute("t", STRING)))
    queries = [] if where is None else [query(stream, "q", where)]
    index = AscIndex.build(stream, queries, AscOptions(period=1_000))
    index.insert(query(stream, "gone", "a = 3"))
    index.match([{"a": 3}])
    index.remove("gone")
    expected = {"TRUE": 5_000, "t LIKE 'a%'": 2_500}.get(where or "", 0)
    assert index.match([{"t": "ab"}, {"t": "b"}] * 2_500).total == expected


def test_costs_that_differ_by_chance_are_no_reason() -> None:
    """With a small threshold and short periods."""
    queries = [query(STREAM, f"q{n}", f"a = {n} AND b = {n} AND c = {n}") for n in range(20)]
    random = np.random.default_rng(1)
    columns = {name: random.integers(0, 20, 100_000) for name in "abc"}
    index = AscIndex.build(
        STREAM, queries, AscOptions(period=500, threshold=0.01, sequence="macro")
    )
    index.match(table(**columns))
    assert index.describe()["rearranged"] < 10
