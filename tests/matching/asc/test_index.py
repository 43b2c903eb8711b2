"""The index answers as a scan does, in every order and while queries come and go; and it adapts."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.errors import QuerySetError, UsageError
from headgate.matching import ScanIndex
from headgate.matching.asc.index import AscIndex
from headgate.matching.asc.monitor import Statistics, Trigger, sum_statistics
from headgate.matching.asc.options import AscOptions
from headgate.matching.asc.order import EvaluationOrder
from headgate.queries import Query
from headgate.schema import DOUBLE, INT, STRING, Attribute, Stream
from headgate.testing.contract import lists, query
from headgate.testing.generate import every_type, random_rows, random_where
from tests.scale import slow_unless_in

OPTIONS = [
    AscOptions(),
    AscOptions(sequence="hybrid"),
    AscOptions(sequence="macro", period=50, threshold=0),
    AscOptions(sequence="hybrid", period=30, threshold=0, fewest=1, sample=20),
    AscOptions("hybrid", period=40, threshold=0, fewest=2, monitored=3, block=0, lookahead=False),
    AscOptions(sequence="fixed", block=1),
]

PAIR = Stream("s", (Attribute("a", INT), Attribute("b", INT)))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda one: f"{one.sequence}-{one.period}")
@pytest.mark.parametrize("seed", slow_unless_in([0], range(3)))
def test_answers_as_a_scan_while_queries_change(options: AscOptions, seed: int) -> None:
    """Values of every type, patterns, pairs of columns and OR, in orders found from few events."""
    random, stream = Random(seed), every_type()
    index, scan = AscIndex(stream, options), ScanIndex(stream)
    held: list[Query] = []
    for turn in range(8):
        for _ in range(random.choice([3, 60])):
            added = query(stream, f"q{turn}-{len(held)}", random_where(random, stream))
            index.insert(added)
            scan.insert(added)
            held.append(added)
        for gone in random.sample(held, len(held) // 3):
            index.remove(gone.id)
            scan.remove(gone.id)
            held.remove(gone)
        rows = random_rows(random, stream, 60)
        assert lists(index.match(rows)) == lists(scan.match(rows))
    assert index.describe()["queries"] == len(held)


def test_all_is_written_anew_when_much_has_left() -> None:
    """Constants that nobody uses are forgotten, and so are their rows; answers stay."""
    index = AscIndex.build(PAIR, [query(PAIR, "stays", "a = 5 AND b < 3")])
    for number in range(3_000):
        index.insert(query(PAIR, f"q{number}", f"a = {2 * number}"))
        if number % 50 == 49:
            assert lists(index.match([{"a": 5, "b": 1}, {"a": 6, "b": 9}]))[0] == ["stays"]
            for gone in range(number - 49, number + 1):
                index.remove(f"q{gone}")
    described = index.describe()
    assert described["regions"] < 2_500
    assert described["queries"] == 1


def test_a_slot_is_given_to_the_next() -> None:
    """The bits of a query that left do not stay with who comes after it."""
    index = AscIndex.build(PAIR, [query(PAIR, "p", "a = 1"), query(PAIR, "q", "b = 2")])
    index.match([{"a": 1}])
    index.remove("p")
    index.insert(query(PAIR, "r", "b >= 2"))
    assert lists(index.match([{"a": 1, "b": 2}, {"a": 0, "b": 3}])) == [["q", "r"], ["r"]]
    assert index.describe()["order"] == ["b"]


def test_too_many_constants_are_refused_by_name() -> None:
    """And a query that is refused has changed nothing."""
    many = ", ".join(str(3 * number) for number in range(20_000))
    for where in (f"a IN ({many})", f"a IN ({many}) AND b = 1"):
        index = AscIndex.build(PAIR, [query(PAIR, "p", "a = 3")], AscOptions(max_bytes=100_000))
        for change in (index.insert, index.update):
            name = "q" if change == index.insert else "p"
            with pytest.raises(QuerySetError, match=f"with `{name}` the bitmaps would take"):
                change(query(PAIR, name, where))
        index.insert(query(PAIR, "r", "b = 1"))
        assert lists(index.match([{"a": 3, "b": 1}])) == [["p", "r"]]


def test_results_do_not_depend_on_the_order() -> None:
    """Any sequence and any arrows, also such as no events would lead to."""
    random = Random(7)
    stream = Stream("s", tuple(Attribute(name, INT) for name in "abcdef"))
    queries = [
        query(stream, f"q{n}", " AND ".join(f"{c} < {random.randint(1, 9)}" for c in names))
        for n, names in enumerate(random.choices(["abc", "cd", "ef", "af"], k=200))
    ]
    rows = [{name: random.randint(0, 9) for name in "abcdef"} for _ in range(200)]
    index = AscIndex.build(stream, queries, AscOptions(sequence="fixed"))
    expected = lists(index.match(rows))
    for _ in range(20):
        sequence = random.sample(range(6), 6)
        rows_of_bits = index.describe()["regions"]
        arrows = np.array(random.choices(range(-1, 6), k=rows_of_bits), np.int16)
        index.order = EvaluationOrder(tuple(sequence), 0, arrows)
        assert lists(index.match(rows)) == expected


def make_switching_stream() -> tuple[list[Query], Any]:
    """Queries on two attributes of which the one or the other drops nearly all events."""
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT), Attribute("c", INT)))
    queries = [query(stream, f"q{n}", f"a = {n} AND b = {n} AND c < 90") for n in range(50)]

    def events(count: int, rare: str, seed: int) -> pa.Table:
        random = np.random.default_rng(seed)
        often = pa.array(random.integers(0, 50, count), pa.int32())
        never = pa.array(random.integers(40, 1_000, count), pa.int32())
        columns = {"a": often, "b": often, "c": often} | {rare: never}
        return pa.table(columns)

    return queries, events


def test_the_order_follows_the_events() -> None:
    """After a change the cost is that of before within two periods, and is told with a reason."""
    queries, events = make_switching_stream()
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT), Attribute("c", INT)))
    options = AscOptions(period=2_000, sample=500, sequence="macro")
    index = AscIndex.build(stream, queries, options)
    index.match(events(11_000, "a", 1))
    settled = index.monitor.history[-1]
    assert index.describe()["order"][0] == "a"
    index.match(events(10_000, "b", 2))
    costs = [period.cost for period in index.monitor.history][-5:]
    assert costs[0] > 1.5 * settled.cost
    assert all(cost < 1.03 * settled.cost for cost in costs[2:])
    described = index.describe()
    assert described["order"][0] == "b"
    assert described["rearranged"] == 4
    assert "changed" in described["last_rearranged"]["because"]
    reasons = [period.rearranged for period in index.monitor.history if period.rearranged]
    assert reasons[:2] == ["the first events came", "the first period is over"]
    assert "constructs for an event went from" in reasons[2] or "dropping ratio" in reasons[2]


def test_a_stream_that_stays_keeps_its_order() -> None:
    """One order after the first events, and no other."""
    queries, events = make_switching_stream()
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT), Attribute("c", INT)))
    index = AscIndex.build(stream, queries, AscOptions(period=1_000))
    index.match(events(20_000, "a", 1))
    reasons = [period.rearranged for period in index.monitor.history if period.rearranged]
    assert reasons == ["the first events came", "the first period is over"]


def test_small_batches_add_up_to_periods() -> None:
    """Events that come one by one are counted and sampled as well."""
    queries, events = make_switching_stream()
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT), Attribute("c", INT)))
    index = AscIndex.build(stream, queries, AscOptions(period=100, sample=50))
    table = events(250, "b", 1)
    for row in range(250):
        index.match(table.slice(row, 1))
    assert [period.events for period in index.monitor.history] == [100, 100]
    assert index.describe()["order"][0] == "b"
    assert index.describe()["events"] == 250


@pytest.mark.parametrize(
    ("periods", "reasons"),
    [
        ([(0.5, 4), (0.5, 4), (0.5, 4)], [0, 0, 0]),
        ([(0.5, 4), (0.5, 5), (0.5, 4)], [0, 1, 1]),  # only the order is worse; then once more
        ([(0.5, 4), (0.2, 4), (0.1, 4), (0.1, 4)], [0, 1, 1, 1]),  # still changing
        ([(0.0, 4), (0.0, 4), (0.2, 4)], [0, 0, 1]),  # no relative change of 0
        ([(0.5, 4), (0.54, 4.3), (0.46, 3.7)], [0, 0, 0]),
        ([(0.5, 4), (0.5, 2), (0.5, 3)], [0, 0, 1]),  # better is no reason, but a measure
        ([(0.002, 4), (0.003, 4), (0.002, 4)], [0, 0, 0]),  # by chance
    ],
)
def test_the_trigger(periods: list[tuple[float, float]], reasons: list[int]) -> None:
    """Equation 5, the cost, and another period after a change."""
    trigger = Trigger(threshold=0.1)
    given = [trigger.find_reason(dropping, cost, 10_000) for dropping, cost in periods]
    assert [reason is not None for reason in given] == [bool(reason) for reason in reasons]


def test_texts_of_a_stream() -> None:
    """Patterns needed and refused, by the same query and by others, with NULL and with texts that
    many events share."""
    stream = Stream("s", (Attribute("t", STRING), Attribute("x", DOUBLE)))
    wheres = {
        "both": "t LIKE 'a%' AND t LIKE '%b'",
        "not": "t NOT LIKE '%b' AND x > 1",
        "either": "t LIKE 'c%' OR t LIKE '%b'",
        "one": "t LIKE 'a%' AND t NOT LIKE '%b'",
        "null": "t IS NULL AND x > 1",
    }
    index = AscIndex.build(stream, [query(stream, name, where) for name, where in wheres.items()])
    rows = [{"t": "ab"}, {"t": "c", "x": 2.0}, {"t": None, "x": 2.0}, {"t": "ax"}, {"t": "ab"}]
    expected = [["both", "either"], ["not", "either"], ["null"], ["one"], ["both", "either"]]
    assert lists(index.match(rows)) == expected
    index.remove("either")
    assert lists(index.match(rows))[0] == ["both"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sequence": "macros"},
        {"period": 0},
        {"sample": True},
        {"threshold": -1},
        {"threshold": "much"},
        {"threshold": True},
        {"sequence": None},
        {"sample": 10**15},
        {"block": -1},
        {"monitored": 0},
        {"lookahead": 1},
    ],
)
def test_wrong_options_are_refused_by_name(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=name):
        AscOptions(**wrong)


def test_one_finds_the_order_for_many() -> None:
    """Indexes that follow count, one learns from all of them, and they take its order."""
    queries, events = make_switching_stream()
    stream = Stream("s", (Attribute("a", INT), Attribute("b", INT), Attribute("c", INT)))
    leader = AscIndex.build(stream, queries, AscOptions(period=2_000))
    followers = [AscIndex.build(stream, queries) for _ in range(3)]
    published = None
    for turn in range(3):
        for follower in followers:
            follower.follow(published)
            follower.match(events(1_000, "b", turn))
        sent = [Statistics.from_json(one.take_statistics().as_json()) for one in followers]
        merged = sum_statistics(sent)
        assert merged is not None
        assert leader.learn(merged) == (turn < 2)
        published = json.loads(json.dumps(leader.publish()))
    assert published is not None
    assert published["sequence"][0] == "b"
    assert leader.describe()["events"] == 9_000
    assert followers[0].describe()["order"] == published["sequence"]
    assert followers[0].describe()["micro_arrows"] == leader.describe()["micro_arrows"]


def test_an_order_for_other_queries_is_taken_as_far_as_it_goes() -> None:
    """Constructs that are gone are passed over, new ones come last, and arrows are left out."""
    index = AscIndex.build(PAIR, [query(PAIR, "p", "a = 1 AND b = 2")])
    order = {"fingerprint": "other", "sequence": ["gone", "b"], "cover": 2, "arrows": [[0], [1]]}
    index.follow(order)
    assert index.describe()["order"] == ["b", "a"]
    assert index.describe()["micro_arrows"] == 0
    assert lists(index.match([{"a": 1, "b": 2}])) == [["p"]]
