"""Advice for many jobs on one cluster: what is shared holds what its readers need, and it pays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from headgate.queries import Query
from headgate.schema import Schema, Stream
from headgate.sharing.advice import (
    Advice,
    Group,
    advise,
    compute_bytes_read,
    halve_group,
    split_groups,
)
from headgate.sharing.content import subscribe
from headgate.sharing.sampled_stream import FilterableTable, SampledStream
from headgate.sql import Script
from tests.scale import case_count

SIZE = 400


def declared(text: str) -> tuple[Stream, list[Query]]:
    script = Script(Schema())
    listed = [one for one in script.read(text) if isinstance(one, Query)]
    return script.schema.stream("s"), listed


def workload(seed: int, jobs: int) -> tuple[Stream, list[Query], pa.Table]:
    """Ranges of two attributes, some of them NULL, and several projections."""
    random = np.random.default_rng(seed)
    text = "CREATE STREAM s (a INT, b DOUBLE, c STRING);"
    for number in range(jobs):
        low, width = random.integers(0, 90), random.integers(1, 60)
        columns = ("a", "a, b", "*", "c AS letter")[random.integers(4)]
        where = f"a BETWEEN {low} AND {low + width}"
        if random.random() < 0.4:
            where += f" AND b < {random.random():.2f}"
        if random.random() < 0.2:
            where = f"({where}) OR c IS NULL"
        text += f"CREATE QUERY q{number} AS SELECT {columns} FROM s WHERE {where};"
    stream, queries = declared(text)
    table = pa.table(
        {
            "a": pa.array(random.integers(0, 100, SIZE), pa.int32()),
            "b": pa.array(random.random(SIZE)),
            "c": pa.array([None if n < 2 else "x" * n for n in random.integers(0, 20, SIZE)]),
        }
    )
    return stream, queries, table


def partitions(jobs: Group) -> Iterator[list[Group]]:
    if not jobs:
        yield []
        return
    first, *rest = jobs
    for groups in partitions(rest):
        yield [[first], *groups]
        for at, group in enumerate(groups):
            yield [*groups[:at], [first, *group], *groups[at + 1 :]]


def after(advice: Advice) -> float:
    return advice.read_after.value + advice.written.value


@pytest.mark.parametrize("seed", range(case_count(20)))
def test_a_shared_stream_holds_what_its_readers_need(seed: int) -> None:
    stream, queries, table = workload(seed, 12)
    advice = advise(queries, stream, table)
    rows = FilterableTable(table, stream)
    by_id = {query.id: query for query in queries}
    for shared in advice.shared:
        carried = rows.compute_mask(shared.where)
        assert carried.sum() / SIZE == shared.rows.value
        for job in shared.jobs:
            wanted = rows.compute_mask(by_id[job].where)
            assert not (wanted & ~carried).any()
            narrow = FilterableTable(table.filter(pa.array(carried)).select(shared.columns), stream)
            again = narrow.compute_mask(by_id[job].where) if (wanted != carried).any() else carried
            assert again.sum() == wanted.sum()
    everyone = [*advice.unshared, *(job for shared in advice.shared for job in shared.jobs)]
    assert sorted(everyone) == sorted(by_id)


@pytest.mark.parametrize("seed", range(case_count(20)))
def test_it_never_costs_more_than_today_nor_much_more_than_the_best(seed: int) -> None:
    stream, queries, table = workload(seed, 6)
    advice = advise(queries, stream, table)
    sampled = SampledStream(stream, 1.0, table)
    jobs = [subscribe(query, "jobs", sampled) for query in queries]
    best = min(
        sum(compute_bytes_read(group, sampled) for group in groups) for groups in partitions(jobs)
    )
    assert best - 1e-9 <= after(advice) <= advice.read_before + 1e-9
    assert after(advice) <= 1.6 * best


def test_jobs_that_read_nearly_everything_stay_at_the_source() -> None:
    stream, queries = declared(
        "CREATE STREAM s (a INT); CREATE QUERY p AS SELECT a FROM s WHERE a > 1;"
        "CREATE QUERY q AS SELECT a FROM s WHERE a > 2;"
    )
    table = pa.table({"a": pa.array(range(100), pa.int32())})
    advice = advise(queries, stream, table)
    assert advice.shared == ()
    assert advice.unshared == ("p", "q")
    assert advice.saved == 0


def test_a_group_is_split_around_jobs_that_have_least_in_common() -> None:
    stream, queries = declared(
        "CREATE STREAM s (a INT);"
        + "".join(
            f"CREATE QUERY q{low} AS SELECT a FROM s WHERE a BETWEEN {low} AND {low + 9};"
            for low in (0, 1, 2, 50, 51, 52)
        )
    )
    sampled = SampledStream(stream, 1.0, pa.table({"a": pa.array(range(1_000), pa.int32())}))
    group = [subscribe(query, "jobs", sampled) for query in queries]
    halves = [{one.id for one in half} for half in halve_group(group)]
    assert {"q0", "q1", "q2"} in halves
    assert {"q50", "q51", "q52"} in halves
    assert len(split_groups([group * 1], sampled)) == 1, (
        "ten rows each do not pay for reading it twice"
    )
