"""Advice on which of many jobs should read a shared stream instead of the source.

This is the planner without a network: the source is one node, and all jobs are at another one. What
goes over the link between them is a stream that one job writes and others read. Reading is the
load, writing the traffic; both are counted in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.predicate import Predicate, disjunction
from headgate.queries import Query
from headgate.schema import Stream
from headgate.sharing.content import Content, Subscription, make_content, unite_contents
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.plan import find_members
from headgate.sharing.planner import Planner
from headgate.sharing.planning import improve_plan
from headgate.sharing.sampled_stream import (
    Estimate,
    PublishedStream,
    SampledStream,
    count_bits,
    sum_estimates,
)

SOURCE, JOBS = "source", "jobs"
IMPROVE_ROUNDS = 2

Group = list[Subscription]  # jobs that read one shared stream


@dataclass(frozen=True, slots=True)
class AdvisedStream:
    """A stream that one job makes of the source, and other jobs read instead of it.

    Attributes
    ----------
    where
        The condition on the rows that it carries.
    columns
        The columns that it carries.
    jobs
        The ids of the queries that can read it.
    rows
        Its share of the rows of the source.
    row_bytes
        The bytes of one of its rows.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> trades = queries.schema.stream("trades")
    >>> sample = hg.sharing.read_sample("examples/trades/events.jsonl", trades)
    >>> advice = hg.sharing.advise(queries.filters("trades"), trades, sample)
    >>> 0 < advice.shared[0].rows.value <= 1
    True
    """

    where: Predicate
    columns: tuple[str, ...]
    jobs: tuple[str, ...]
    rows: Estimate
    row_bytes: float

    @property
    def bytes(self) -> Estimate:
        """Bytes for each row of the source."""
        return self.rows.scale(self.row_bytes)


@dataclass(frozen=True, slots=True)
class Advice:
    """The streams that should be shared, and the jobs that should stay at the source.

    Attributes
    ----------
    stream
        The name of the source.
    shared
        The shared streams, those with most readers first.
    unshared
        The ids of the queries that read the source, as today.
    row_bytes
        The bytes of a row of the source.
    read_before
        Bytes read for each row of the source, if all jobs read it whole.
    read_after
        The same with shared streams, including what their writers read.
    written
        Bytes that these write for each row of the source.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> trades = queries.schema.stream("trades")
    >>> sample = hg.sharing.read_sample("examples/trades/events.jsonl", trades)
    >>> advice = hg.sharing.advise(queries.filters("trades"), trades, sample)
    >>> advice.stream, 0 < advice.saved < 1
    ('trades', True)
    """

    stream: str
    shared: tuple[AdvisedStream, ...]
    unshared: tuple[str, ...]
    row_bytes: float
    read_before: float
    read_after: Estimate
    written: Estimate

    @property
    def saved(self) -> float:
        """The share of all reading that is saved, less what is written."""
        after = self.read_after.value + self.written.value
        return 1 - after / self.read_before if self.read_before else 0.0


def advise(
    queries: Sequence[Query],
    stream: Stream,
    sample: pa.Table,
    *,
    rounds: int = IMPROVE_ROUNDS,
    progress: Callable[[int], None] = lambda _: None,
) -> Advice:
    """Find the shared streams that save most reading for jobs that filter one stream.

    Queries are registered one by one and choose again; then streams are split in two where that
    saves more, and those that save nothing are dropped.

    Parameters
    ----------
    queries
        Filters of the stream; each is a job that reads it whole today.
    stream
        The stream.
    sample
        Some of its rows, with a column for every attribute; `read_sample` reads them.
    rounds
        How many times all queries may choose again.
    progress
        Called with 1 after each registration.

    Returns
    -------
    Advice
        The streams to share, and what that saves.

    Raises
    ------
    UsageError
        A query is a join or an aggregate.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> trades = queries.schema.stream("trades")
    >>> sample = hg.sharing.read_sample("examples/trades/events.jsonl", trades)
    >>> advice = hg.sharing.advise(queries.filters("trades"), trades, sample)
    >>> len(advice.shared), advice.unshared
    (1, ('tech',))
    """
    # With this weight of the load, reading a row of the source costs as much as writing it.
    sampled = SampledStream(stream, 1.0, sample)
    network = Network.of([Node(SOURCE), Node(JOBS)], [Link((SOURCE, JOBS))])
    planner = Planner(
        network, [PublishedStream(sampled, SOURCE)], load_cost=sampled.measure_width(stream.names)
    )
    for query in queries:
        planner.register(query, JOBS)
        progress(1)
    # There is one source, so one tree. Each child of its root is one shared stream, and the queries
    # that it serves are a group.
    (tree,) = improve_plan(planner, rounds, progress).trees.values()
    groups = split_groups([list(hop.served.values()) for hop in tree.root.children], sampled)
    return _make_advice(groups, sampled, [query.id for query in queries])


def _make_advice(groups: Sequence[Group], sampled: SampledStream, jobs: Sequence[str]) -> Advice:
    source = sampled.measure_width(sampled.stream.names)
    # A group pays if its jobs read less together than each would read of the source.
    paying = [group for group in groups if len(group) * source > compute_bytes_read(group, sampled)]
    paying.sort(key=len, reverse=True)
    streams = [_describe_group(group, sampled) for group in paying]
    # The source is read whole by one writer for each shared stream, and by jobs that share none.
    sharing = {subscription.id for group in paying for subscription in group}
    unshared = tuple(job for job in jobs if job not in sharing)
    read_of_source = (len(streams) + len(unshared)) * source
    read_by_jobs = [each.bytes.scale(len(each.jobs)) for each in streams]
    return Advice(
        sampled.stream.name,
        tuple(streams),
        unshared,
        source,
        len(jobs) * source,
        sum_estimates([Estimate(read_of_source, read_of_source, read_of_source), *read_by_jobs]),
        sum_estimates([each.bytes for each in streams]),
    )


def _describe_group(group: Group, sampled: SampledStream) -> AdvisedStream:
    content = unite_group(group, sampled)
    return AdvisedStream(
        disjunction(subscription.where for subscription in find_members(group, sampled)),
        tuple(name for name in sampled.stream.names if name in content.columns),
        tuple(subscription.id for subscription in group),
        sampled.estimate_rate(content.count),
        sampled.measure_width(content.columns),
    )


def split_groups(groups: Sequence[Group], sampled: SampledStream) -> list[Group]:
    """Split groups of jobs in two as long as that saves reading.

    A query that registers by itself never pays for reading the source once more, though together
    with others it would. Here each group decides as a whole.
    """
    # A half goes back on the stack, so that it may be split again.
    ahead, final = list(groups), []
    while ahead:
        group = ahead.pop()
        halves = halve_group(group) if len(group) > 1 else ()
        cost = sum(compute_bytes_read(half, sampled) for half in halves)
        if halves and cost < compute_bytes_read(group, sampled):
            ahead += halves
        else:
            final.append(group)
    return final


def halve_group(group: Group) -> tuple[Group, Group]:
    """Divide jobs into two groups, around two that have little in common.

    The others join the group to which they add fewer rows; of equals, the one with fewer rows.
    """
    # Two seeds: the job with most rows, and the one with most rows that the first lacks.
    first = max(group, key=lambda job: job.count)
    second = max(group, key=lambda job: (job is not first, count_bits(job.rows & ~first.rows)))
    halves: tuple[Group, Group] = [first], [second]
    # 2 × words: the sample rows of both groups so far, as bits.
    rows = np.array([first.rows, second.rows])
    for job in group:
        if job is first or job is second:
            continue
        sizes = np.bitwise_count(rows).sum(axis=1)
        more = np.bitwise_count(rows | job.rows).sum(axis=1) - sizes
        # `lexsort` takes its last key first: fewest new rows, then the smaller group.
        chosen = int(np.lexsort((sizes, more))[0])
        halves[chosen].append(job)
        rows[chosen] |= job.rows
    return halves


def compute_bytes_read(group: Group, sampled: SampledStream) -> float:
    """Return the bytes for each row of the source that a group reads and writes.

    One job reads the source and writes the stream, and all read that; one job needs no stream.
    """
    source = sampled.measure_width(sampled.stream.names)
    if len(group) == 1:
        return source
    # Written once and read by all, the writer included.
    return source + (1 + len(group)) * compute_row_bytes(unite_group(group, sampled), sampled)


def unite_group(group: Group, sampled: SampledStream) -> Content:
    """Return what the shared stream of a group carries."""
    return unite_contents([make_content(subscription) for subscription in group], sampled)


def compute_row_bytes(content: Content, sampled: SampledStream) -> float:
    """Return the bytes of a content for each row of the source."""
    return content.count / sampled.size * sampled.measure_width(content.columns)
