"""Courses are the flows and deliveries of a plan, put together, and none is lost."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from benchmarks.workloads.networks import READINGS, generate_networked_queries
from benchmarks.workloads.networks import SOURCE as PEER
from headgate.plots.network_layout import (
    FAINT_COLOURS,
    MAX_LANES,
    SOURCE_COLOUR,
    STRONG_COLOURS,
    choose_colours,
    make_lanes,
)
from headgate.sharing.decisions import Strategy
from headgate.sharing.plan import Plan, make_plan
from headgate.sharing.planner import Planner
from headgate.sharing.sampled_stream import PublishedStream, SampledStream
from headgate.sharing.shared_streams import list_shared_streams


def planned(strategy: Strategy, queries: int = 40) -> Plan:
    drawn = generate_networked_queries(8, queries, seed=3, rows=512)
    published = PublishedStream(SampledStream(READINGS, 100.0, drawn.sample), PEER)
    planner = Planner(drawn.network, [published], strategy=strategy)
    for query, target in drawn.queries:
        planner.register(query, target)
    return make_plan(planner)


@pytest.mark.parametrize("strategy", ["ship", "filter", "share", "widen"])
def test_nothing_is_lost(strategy: Strategy) -> None:
    """On every link flows what the plan says, and every query has a course that ends with it."""
    plan = planned(strategy)
    streams = list_shared_streams(plan)
    carried: Counter[int] = Counter()
    for course in streams:
        assert len(course.nodes) == len(course.links) + 1
        for step, link in enumerate(course.links):
            assert set(course.nodes[step : step + 2]) == {*plan.network.links[link].ends}
            carried[link] += 1
    links: list[int | None] = [flow.link for flow in plan.flows]
    links += [delivery.link for delivery in plan.deliveries]
    links += [origin.link for origin in plan.origins.values()]
    assert carried == Counter(link for link in links if link is not None)
    moved = sum(course.bytes_moved for course in streams)
    assert moved == pytest.approx(sum(one.value for one in plan.traffic))
    results = [name for course in streams for name in course.results]
    assert sorted(results) == sorted(one.query.id for one in plan.deliveries)


def test_taken_from() -> None:
    """A course begins on the way of the one that it is taken from."""
    streams = list_shared_streams(planned("widen"))
    assert [course.number for course in streams] == list(range(len(streams)))
    for course in streams:
        assert course.is_source == (course.taken_from is None)
        if course.taken_from is not None:
            before = streams[course.taken_from]
            assert course.nodes[0] in before.nodes
            assert set(course.serves) <= set(before.serves)
            assert course.is_tap == (not before.is_source)
    assert any(course.is_widened for course in streams)


def test_filtered_at_the_source_is_one_course_a_query() -> None:
    streams = list_shared_streams(planned("filter", 5))
    assert sorted(course.members for course in streams[1:]) == [(f"q{n}",) for n in range(5)]
    assert all(course.results == course.members for course in streams)


def test_lanes_do_not_overlap() -> None:
    """None overlaps another, those of one direction lie together, and few are told apart."""
    plan = planned("filter")
    streams = list_shared_streams(plan)
    by_link = make_lanes(plan.network, streams, 8.0)
    assert set(by_link) == {link for course in streams for link in course.links}
    for lanes in by_link.values():
        assert len(lanes) <= MAX_LANES
        ways = [lane.is_forward for lane in lanes]
        assert ways == sorted(ways)
        for lane, after in pairwise(lanes):
            assert lane.offset + lane.width / 2 < after.offset - after.width / 2
        middle = lanes[0].offset - lanes[0].width / 2 + lanes[-1].offset + lanes[-1].width / 2
        assert middle == pytest.approx(0)
    total = sum(lane.bytes for lanes in by_link.values() for lane in lanes)
    assert total == pytest.approx(sum(course.bytes_moved for course in streams))


def test_colours() -> None:
    """What moves most has a colour of its own."""
    streams = list_shared_streams(planned("filter"))
    chosen = choose_colours(streams)
    counts = Counter(chosen.values())
    assert chosen[0] == SOURCE_COLOUR
    assert all(counts[colour] == 1 for colour in (SOURCE_COLOUR, *STRONG_COLOURS))
    assert set(counts) <= {SOURCE_COLOUR, *STRONG_COLOURS, *FAINT_COLOURS}
