"""The experiments about matching, tiny; counting and NumPy against the definition."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks import EXPERIMENTS, Disagreement, Result, run_rounds
from benchmarks.matching import in_process, match, matchers
from benchmarks.matching.matchers import Matcher, match_by_index, match_by_numpy
from benchmarks.rivals.counting import SiftByStepsIndex, SiftIndex
from benchmarks.workloads import Conjunctions, generate_range_queries
from benchmarks.workloads.integer_events import ABSENT, IntegerEvents, Numbers

pytestmark = pytest.mark.slow


def tiny(name: str, *sizes: int) -> Result:
    return run_rounds(replace(EXPERIMENTS[name], sizes=sizes), repeats=1)


@pytest.mark.parametrize("name", ["match", "match-zipf", "match-rare", "match-ranges"])
def test_integers(name: str) -> None:
    """Five contestants agree where events are integers."""
    measured = tiny(name, 300)
    rivals = (match.COUNTING, match.BY_STEPS, match.NUMPY, match.SCAN)
    assert measured.contestants == (match.AUTO, *rivals)
    assert EXPERIMENTS[name].baseline in measured.contestants
    assert {m.work for m in measured.measurements} == {match.EVENTS}
    assert [fact.rpartition(", ")[2] for fact in measured.facts] == [
        "seconds to build from arrays",
        "bytes a query",
        "MB beside it for 65,536 events",
    ]
    assert all(isinstance(fact, int | float) and fact > 0 for fact in measured.facts.values())


@pytest.mark.parametrize("name", ["match-boxes", "match-patterns"])
def test_others(name: str) -> None:
    """Other queries are for Headgate's own indexes."""
    assert tiny(name, 50).contestants == (match.AUTO, match.SCAN)


def test_updates() -> None:
    """An updated index agrees with one that was built anew; the updates' time is a fact."""
    measured = tiny("match-updates", 500)
    assert measured.contestants == ("updated", "built anew")
    (fact,) = measured.facts
    assert fact == "seconds for 5 inserts and 5 deletes, at 500"


@pytest.mark.parametrize(("name", "size"), [("arrow-pass", 500), ("one-event", 300)])
def test_in_process(name: str, size: int) -> None:
    """Every way of reading an event leads to the same matches as the kernel alone."""
    experiment = replace(EXPERIMENTS[name], sizes=(size,))
    measured = run_rounds(experiment, repeats=1, scale=0.005 if name == "arrow-pass" else 1)
    assert len(measured.contestants) == 3
    assert in_process.KERNEL in measured.contestants


def test_scale() -> None:
    """The scale shrinks the queries; what a batch costs is still shared by as many events."""
    measured = run_rounds(replace(EXPERIMENTS["match"], sizes=(100_000,)), repeats=1, scale=0.001)
    assert measured.sizes == (100,)
    assert measured.measurements[0].work == match.EVENTS


def test_slow_contestants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow get fewer events, down to a least number, and the scan none of very many queries."""
    monkeypatch.setattr(match, "COMPARED", 500_000)
    monkeypatch.setattr(match, "MAX_SCANNED", 500)
    measured = tiny("match", 400, 1_000)
    work = {(m.contestant, m.size): m.work for m in measured.measurements}
    assert work[match.NUMPY, 400] == work[match.SCAN, 400] == 1_250
    assert work[match.NUMPY, 1_000] == match.MIN_EVENTS
    assert work[match.AUTO, 1_000] == match.EVENTS
    assert (match.SCAN, 1_000) not in work


def test_wrong_contestant(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that knows nothing of the last query is found out."""

    def wrong(queries: Conjunctions, events: Numbers) -> Matcher:
        return match_by_numpy(queries.part(0, len(queries) - 1), events)

    monkeypatch.setattr(matchers, "match_by_numpy", wrong)
    with pytest.raises(Disagreement, match=r"answer \d+ of Headgate auto .* of NumPy"):
        tiny("match", 100)


def naive(queries: Conjunctions, events: Numbers) -> list[list[int]]:
    """Every predicate of every query on every event."""
    ends = queries.offsets.tolist()
    return [
        [
            q
            for q in range(len(queries))
            if all(
                event[queries.attribute[k]] != ABSENT
                and queries.low[k] <= event[queries.attribute[k]] <= queries.high[k]
                for k in range(ends[q], ends[q + 1])
            )
        ]
        for event in events
    ]


def listed(match: Matcher, count: int) -> list[list[int]]:
    """The queries of each event, in order."""
    return [
        sorted(positions[start:stop].tolist())
        for offsets, positions in match(count)
        for start, stop in pairwise(offsets.tolist())
    ]


@pytest.mark.parametrize("count", [1, 511, 512, 513])
def test_naive(count: int) -> None:
    """Counting and NumPy give what the definition gives, also for absent values."""
    queries = generate_range_queries(count, attributes=6, constrained=3, matching=0.2, seed=count)
    events = queries.events(40, seed=1).dense()
    events[::3, 2] = ABSENT
    events[5] = ABSENT
    expected = naive(queries, events)
    assert sum(map(len, expected)) > 2 * count
    assert expected[5] == []
    assert listed(match_by_numpy(queries, events), 40) == expected
    table = IntegerEvents.from_dense(events).table()
    for kind in (SiftIndex, SiftByStepsIndex):
        index = kind.from_encoded(queries.stream, queries.encode())
        assert listed(match_by_index(index, table), 40) == expected
