"""Which of many jobs should read from a shared stream instead of the source?

The planner without a network: the source is one node, and all jobs stand at another one. What goes
over the link between them is a stream that one job writes and others read. To read is the load, and
to write is the traffic; both are counted in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate.predicate import Predicate, disjunction
from headgate.queries import Query
from headgate.schema import Stream
from headgate.sharing.improve import improve_plan
from headgate.sharing.network import Link, Network, Node
from headgate.sharing.plan import find_members
from headgate.sharing.planner import Planner, PublishedStream
from headgate.sharing.sampled import Estimate, SampledStream, sum_estimates
from headgate.sharing.splitting import Group, compute_bytes_read, split_groups, unite_group

SOURCE, JOBS = "source", "jobs"
IMPROVE_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class AdvisedStream:
    """A stream that one job makes of the source, and several read instead of it.

    `rows` is its share of the source's rows; `row_bytes` what one of them takes.
    """

    where: Predicate
    columns: tuple[str, ...]
    jobs: tuple[str, ...]
    rows: Estimate
    row_bytes: float

    @property
    def bytes(self) -> Estimate:
        """For each row of the source."""
        return self.rows.scale(self.row_bytes)


@dataclass(frozen=True, slots=True)
class Advice:
    """The shared streams, those with most readers first, and the jobs that stay at the source.

    Bytes are for each row of the source: `before`, when all jobs read it whole; `read` by jobs and
    by those who write shared streams, and `written` by these.
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
        """The share of all reading that is no longer done, once writing is paid for."""
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
    """The shared streams that save most reading, found by registering the queries one by one.

    All are filters of one stream, of which `sample` has rows. `progress` hears of each query. In so
    many `rounds` after that, all of them choose anew; then streams are split where that saves more,
    and one that saves nothing is dropped.
    """
    sampled = SampledStream(stream, 1.0, sample)
    network = Network.of([Node(SOURCE), Node(JOBS)], [Link((SOURCE, JOBS))])
    planner = Planner(
        network, [PublishedStream(sampled, SOURCE)], load_cost=sampled.measure_width(stream.names)
    )
    for query in queries:
        planner.register(query, JOBS)
        progress(1)
    (tree,) = improve_plan(planner, rounds, progress).trees.values()
    groups = split_groups([list(hop.served.values()) for hop in tree.root.children], sampled)
    return _make_advice(groups, sampled, [query.id for query in queries])


def _make_advice(groups: Sequence[Group], sampled: SampledStream, jobs: Sequence[str]) -> Advice:
    source = sampled.measure_width(sampled.stream.names)
    paying = [group for group in groups if len(group) * source > compute_bytes_read(group, sampled)]
    paying.sort(key=len, reverse=True)
    found = [_describe_group(group, sampled) for group in paying]
    sharing = {one.id for group in paying for one in group}
    alone = tuple(job for job in jobs if job not in sharing)
    of_source = (len(found) + len(alone)) * source
    by_jobs = [each.bytes.scale(len(each.jobs)) for each in found]
    return Advice(
        sampled.stream.name,
        tuple(found),
        alone,
        source,
        len(jobs) * source,
        sum_estimates([Estimate(of_source, of_source, of_source), *by_jobs]),
        sum_estimates([each.bytes for each in found]),
    )


def _describe_group(group: Group, sampled: SampledStream) -> AdvisedStream:
    content = unite_group(group, sampled)
    return AdvisedStream(
        disjunction(one.where for one in find_members(group, sampled)),
        tuple(name for name in sampled.stream.names if name in content.columns),
        tuple(one.id for one in group),
        sampled.estimate_rate(content.count),
        sampled.measure_width(content.columns),
    )
