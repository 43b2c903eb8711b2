"""Queries come, go and change under `scan` and `keyed` alike, and the answers stay the same."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any, ClassVar
from zlib import crc32

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headgate.errors import QuerySetError
from headgate.matching import Index, ScanIndex
from headgate.matching.keyed import index as keyed_index
from headgate.matching.keyed import parts
from headgate.matching.keyed.index import KeyedIndex, build_from_snapshot
from headgate.predicate import Predicate
from headgate.queries import Query, QuerySet, Source
from headgate.schema import INT, STRING, Attribute, Schema, Stream
from headgate.snapshot import open_current, publish
from headgate.snapshot.arrays import encode_queries
from headgate.sql import WhereReader, parse_where
from headgate.testing.contract import lists
from headgate.testing.contract import query as contract_query
from tests.boundaries import STREAM, Row
from tests.corpus import cases
from tests.scale import at_least, case_count, seed
from tests.strategies import Seeded, row

LARGE, SWALLOWED, STALE = 20, 2, 0.15
SCHEMA = Schema((STREAM,))
ROWS: Sequence[Row] = [row(dice) for dice in [Seeded(seed(5))] for _ in range(25)]
QUERIES_PER_CONDITION = 90  # queries under one condition: enough for a bitmap, and for a rebuild


class Gate:
    """Lets rebuilds through, or has them wait; counts those that are through."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.open, self.reached, self.passed = Event(), Event(), 0
        self.open.set()
        merge: Callable[..., Any] = parts.merge_parts

        def waits(*arguments: Any) -> Any:
            self.reached.set()
            assert self.open.wait(60), "a rebuild was never let through"
            self.passed += 1
            self.reached.clear()
            return merge(*arguments)

        patch.setattr(keyed_index, "merge_parts", waits)


@contextmanager
def small_parts() -> Iterator[Gate]:
    """Parts are merged, and put together in the background, after very few changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "MAX_MERGED_AT_ONCE", LARGE)
        patch.setattr(parts, "MAX_MERGE_RATIO", SWALLOWED)
        patch.setattr(parts, "STALE_SHARE", STALE)
        patch.setattr(parts, "MIN_STALE", STALE * LARGE)
        gate = Gate(patch)
        try:
            yield gate
        finally:
            gate.open.set()


def filtering(query_id: str, where: Predicate) -> Query:
    return Query(query_id, (Source(STREAM, STREAM.name),), where)


READER = WhereReader(STREAM)
CONDITIONS = [case.predicate for case in cases(0, 400)]
numbers = st.integers(0, 1 << 16)  # of conditions, queries and events, as far as there are


def condition(number: int) -> Predicate:
    return CONDITIONS[number % len(CONDITIONS)]


class LockStep(RuleBasedStateMachine):
    """What is done to one index is done to the other."""

    seen: ClassVar[Counter[str]] = Counter()  # over all runs

    def __init__(self) -> None:
        super().__init__()
        self.patched = small_parts()
        self.gate = self.patched.__enter__()
        self.root = Path(tempfile.mkdtemp())
        self.next = 0
        self.published: list[Query] | None = None
        self.begin([])

    def teardown(self) -> None:
        self.gate.open.set()
        self.keyed.settle()
        self.seen["rebuilds"] += self.gate.passed
        shutil.rmtree(self.root)
        self.patched.__exit__(None, None, None)

    def begin(self, queries: list[Query]) -> None:
        self.live = {query.id: query for query in queries}
        self.scan = ScanIndex.build(STREAM, queries)
        self.keyed = KeyedIndex.build(STREAM, queries)
        self.keyed.threads = 1

    @property
    def indexes(self) -> tuple[Index, Index]:
        return self.scan, self.keyed

    def new(self, number: int) -> Query:
        self.next += 1
        return filtering(f"q{self.next}", condition(number))

    def chosen(self, choice: int) -> Query:
        return list(self.live.values())[choice % len(self.live)]

    def put(self, query: Query) -> None:
        self.live[query.id] = query
        assert self.scan.insert(query) == self.keyed.insert(query)

    def take(self, query: Query) -> None:
        del self.live[query.id]
        for index in self.indexes:
            index.remove(query.id)

    @initialize(wheres=st.lists(numbers, max_size=20))
    def start(self, wheres: list[int]) -> None:
        self.begin([self.new(where) for where in wheres])

    @rule(wheres=st.lists(numbers, min_size=1, max_size=12))
    def insert(self, wheres: list[int]) -> None:
        for where in wheres:
            self.put(self.new(where))

    @rule(first=st.integers(-3, 3))
    def insert_several(self, first: int) -> None:
        """Boxes that all ask for one thing."""
        for n in range(QUERIES_PER_CONDITION):
            self.next += 1
            text = f"flag AND qty >= {first + n % 5} AND lots < {n % 7}"
            self.put(filtering(f"q{self.next}", READER.read(text)))

    @precondition(lambda self: self.live)
    @rule(choice=numbers)
    def remove(self, choice: int) -> None:
        self.take(self.chosen(choice))

    @precondition(lambda self: self.live)
    @rule(choice=numbers, share=st.sampled_from((1, 2, 3)))
    def remove_many(self, choice: int, share: int) -> None:
        for query in list(self.live.values())[choice % share :: share]:
            self.take(query)

    @precondition(lambda self: self.live)
    @rule(choice=numbers, where=numbers)
    def update(self, choice: int, where: int) -> None:
        query = filtering(self.chosen(choice).id, condition(where))
        del self.live[query.id]
        self.live[query.id] = query
        assert self.scan.update(query) == self.keyed.update(query)

    @rule(where=numbers, other=numbers)
    def come_and_go(self, where: int, other: int) -> None:
        """In, changed and out again before anybody matches."""
        query = self.new(where)
        self.put(query)
        for index in self.indexes:
            index.update(filtering(query.id, condition(other)))
        self.take(query)

    @rule(where=numbers)
    def refuse(self, where: int) -> None:
        for index in self.indexes:
            with pytest.raises(QuerySetError, match=r"nobody"):
                index.remove("nobody")
            with pytest.raises(QuerySetError, match=r"nobody"):
                index.update(filtering("nobody", condition(where)))

    @rule(start=numbers, size=st.integers(0, 40))
    def match(self, start: int, size: int) -> None:
        """Other events, in another number."""
        dice = Seeded(start)
        rows = [row(dice) for _ in range(size)]
        assert lists(self.keyed.match(rows)) == lists(self.scan.match(rows))

    @rule()
    def hold(self) -> None:
        """From now on a rebuild stays under way."""
        self.gate.open.clear()

    @rule()
    def settle(self) -> None:
        self.gate.open.set()
        self.keyed.settle()

    @rule(mixed=st.booleans())
    def snapshot(self, mixed: bool) -> None:
        """In the order in which they came, or so that new ones stand between old ones."""
        self.published = list(self.live.values())
        if mixed:
            self.published.sort(key=lambda query: crc32(query.id.encode()))
        assert len(publish(QuerySet(SCHEMA, self.published), self.root)) == len(self.published)

    @precondition(lambda self: self.published is not None)
    @rule(how=st.sampled_from(("queries", "arrays", "snapshot", "snapshot")))
    def reload(self, how: str) -> None:
        """Both begin anew with what was published."""
        self.settle()
        snapshot = open_current(self.root)
        queries = list(snapshot.query_set())
        assert queries == self.published
        self.begin(queries)
        if how == "arrays":
            self.keyed = KeyedIndex.from_encoded(STREAM, encode_queries(queries, SCHEMA))
        elif how == "snapshot":
            self.keyed = build_from_snapshot(snapshot, STREAM)
            self.seen["steps reloaded"] += len(snapshot.segments) > 1

    @invariant()
    def same_answers(self) -> None:
        assert len(self.keyed) == len(self.scan) == len(self.live)
        assert lists(self.keyed.match(ROWS)) == lists(self.scan.match(ROWS))


def test_agree_in_lock_step() -> None:
    """Whatever is done to both, every event has the same queries after every step."""
    LockStep.seen.clear()
    steps = settings(max_examples=case_count(60), stateful_step_count=40)
    run_state_machine_as_test(LockStep, settings=steps)
    assert LockStep.seen["rebuilds"] > at_least(5)  # how many is up to Hypothesis


@pytest.mark.parametrize(
    "where",
    ["b LIKE 'x%'", "NOT b LIKE 'y%'", "b IS NULL", "a = 1", "a < b", "NULL", "b IN ('x', 'y')"],
)
def test_parts_that_ask_the_same(where: str) -> None:
    """Parts with equal conditions have, put together, the queries of both."""
    stream = Stream("s", (Attribute("a", STRING), Attribute("b", STRING)))
    if "= 1" in where:
        stream = Stream("s", (Attribute("a", INT), Attribute("b", STRING)))
    events = [{"b": text} for text in ("x", "xx", "y", None)] + [{"a": None, "b": "x"}, {}]
    queries = [
        contract_query(stream, f"q{n}", f"({where}) {rest}")
        for n, rest in enumerate(("", "AND b = 'x'", "OR b = 'y'", "AND b <> 'x'", "", "IS NULL"))
    ]
    index = KeyedIndex.build(stream, queries[:1])
    for n, late in enumerate(queries[1:], 2):
        index.match(events)
        index.insert(late)
        expected = ScanIndex.build(stream, queries[:n]).match(events)
        assert lists(index.match(events)) == lists(expected)
    assert len(index.describe()["parts"]) < len(queries)


NUMBERS = Stream("numbers", (Attribute("a", INT),))
LAST = 120  # the greatest value of `a` in an event
COUNT = 250


def number_query(query_id: str, where: str) -> Query:
    return Query(query_id, (Source(NUMBERS, "numbers"),), parse_where(where, NUMBERS))


def states() -> list[tuple[set[str], int]]:
    """After each change the queries that every event matches, and the one number that `at` asks."""
    result: list[tuple[set[str], int]] = [({"all0"}, 0)]
    for n in range(1, COUNT):
        result.append((result[-1][0] | {f"all{n}"}, result[-1][1]))
        if n % 3:
            result.append((result[-1][0], n % LAST))
        if n % 5 > 1:
            result.append((result[-1][0] - {f"all{n // 2}"}, result[-1][1]))
    return result


def change(index: Index, before: tuple[set[str], int], after: tuple[set[str], int]) -> None:
    for gone in before[0] - after[0]:
        index.remove(gone)
    for new in after[0] - before[0]:
        index.insert(number_query(new, "a >= 0"))
    if before[1] != after[1]:
        index.update(number_query("at", f"a = {after[1]}"))


def seen_by(index: Index, events: list[dict[str, int]]) -> tuple[set[str], int]:
    """The state that a match has seen, which must be one for all its events."""
    matches = lists(index.match(events))
    at = [number for number, ids in enumerate(matches) if "at" in ids]
    everywhere = {tuple(query for query in ids if query != "at") for ids in matches}
    assert len(at) == len(everywhere) == 1
    return set(everywhere.pop()), at[0]


def test_matching_while_queries_come_and_go() -> None:
    """A match sees one state for all its events: none older than its begin, none from after it."""
    known = states()
    started = finished = 0
    events = [{"a": n} for n in range(LAST)]
    with small_parts() as gate, ThreadPoolExecutor(2) as pool:
        first = [number_query("all0", "a >= 0"), number_query("at", "a = 0")]
        index = KeyedIndex.build(NUMBERS, first)

        def read() -> int:
            matched = 0
            while finished < len(known) - 1:
                oldest = finished
                seen = seen_by(index, events)
                assert seen in known[oldest : started + 1]
                matched += 1
            return matched

        readers = [pool.submit(read) for _ in range(2)]
        for n in range(1, len(known)):
            started = n
            change(index, known[n - 1], known[n])
            finished = n
            sleep(0.002)
        assert min(reader.result(60) for reader in readers) > 20
        index.settle()
        assert seen_by(index, events) == known[-1]
        assert gate.passed > 3


def test_nobody_waits_for_a_rebuild() -> None:
    """While a rebuild is held up, matches and changes go on; then nothing comes back that left."""
    events = [{"a": n} for n in range(10)]
    with small_parts() as gate, ThreadPoolExecutor(1) as pool:

        def at_once(action: Callable[[], Any]) -> Any:
            done: Future[Any] = pool.submit(action)
            return done.result(60)

        queries = [number_query(f"q{n}", f"a >= {n % 10} OR a = 0") for n in range(100)]
        scan, index = ScanIndex.build(NUMBERS, queries), KeyedIndex.build(NUMBERS, queries)
        index.match(events)
        gate.open.clear()
        for n in range(0, 60, 2):
            for each in (scan, index):
                each.remove(f"q{n}")
        assert lists(at_once(lambda: index.match(events))) == lists(scan.match(events))
        assert gate.reached.wait(60)
        for n in range(20):
            changed = number_query(f"q{2 * n + 1}", f"a < {n}")
            new = number_query(f"new{n}", f"a <> {n}")
            for each in (scan, index):
                at_once(lambda: each.remove(f"q{60 + n}"))  # noqa: B023
                at_once(lambda: each.update(changed))  # noqa: B023
                at_once(lambda: each.insert(new))  # noqa: B023
            assert lists(at_once(lambda: index.match(events))) == lists(scan.match(events))
        assert gate.passed == 0
        gate.open.set()
        index.settle()
        assert gate.passed >= 1
        assert lists(index.match(events)) == lists(scan.match(events))
        assert len(index) == len(scan) == 70


def test_a_rebuild_of_nothing() -> None:
    """An index that was emptied, and then put together, matches nothing and takes new queries."""
    with small_parts() as gate:
        index = KeyedIndex.build(NUMBERS, [number_query(f"q{n}", f"a > {n}") for n in range(50)])
        assert index.match([{"a": 9}]).total == 9
        for n in range(50):
            index.remove(f"q{n}")
        assert index.match([{"a": 9}]).total == 0
        index.settle()
        assert gate.passed == 1
        assert index.match([{"a": 9}, {}]).offsets.tolist() == [0, 0, 0]
        index.insert(number_query("again", "a > 0"))
        assert lists(index.match([{"a": 9}])) == [["again"]]


def test_steps_that_put_queries_between_others(tmp_path: Path) -> None:
    """Positions that are not in the order of filing are right, also once parts are put together."""
    schema, events = Schema((NUMBERS,)), [{"a": n} for n in range(60)]
    base = [number_query(f"q{n}", f"a = {n}") for n in range(40)]
    changed = [base[0], *base[2:39], number_query("new", "a = 50"), base[39]]
    publish(QuerySet(schema, base), tmp_path)
    publish(QuerySet(schema, changed), tmp_path)
    snapshot = open_current(tmp_path)
    assert len(snapshot.segments) == 3
    with small_parts() as gate:
        index, scan = build_from_snapshot(snapshot, NUMBERS), ScanIndex.build(NUMBERS, changed)
        assert lists(index.match(events)) == lists(scan.match(events))
        for gone in ("q30", "q3", "q5", "q7", "q9", "q11", "new", "q20", "q39"):
            for each in (index, scan):
                each.remove(gone)
            assert lists(index.match(events)) == lists(scan.match(events))
            index.settle()
            assert lists(index.match(events)) == lists(scan.match(events))
        assert gate.passed >= 1
