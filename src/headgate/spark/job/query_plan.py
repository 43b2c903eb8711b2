"""What a published version of the queries means for a job.

Of a version the job routes, runs, leaves out and refuses queries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.errors import (
    HeadgateError,
    QuerySetError,
    Unbounded,
    UsageError,
    did_you_mean,
)
from headgate.queries import Query
from headgate.schema import Stream
from headgate.snapshot import Snapshot
from headgate.snapshot.arrays import decode_queries
from headgate.snapshot.arrays.queries import decode_frames
from headgate.snapshot.arrays.selection import select_queries
from headgate.snapshot.segments import Tombstones
from headgate.spark.frames import join_first
from headgate.spark.job.event_reduction import ContinuousQuery, build_reduction


@dataclass(frozen=True, slots=True)
class QuerySelection:
    """Which of the queries a job runs, whatever their version.

    `streams` are the names of those that it reads, in the order of its sources; None for a single
    one that the queries know. `routed` is the stream whose filters are matched, and `continuous`
    are the ids of the continuous queries; where they are None, all that can run. Queries that
    bounded memory is not enough for are refused, unless `allow_unbounded`.
    """

    streams: tuple[str, ...] | None = None
    routed: str | None = None
    keep: tuple[str, ...] | None = None
    continuous: tuple[str, ...] | None = None
    allow_unbounded: bool = False


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The filters on one stream, and the continuous queries on all streams, that a job runs.

    `unbounded` are those that bounded memory is not enough for, where they may run all the same.
    `left_out` explains which queries do not run; `refused` are the errors of those that were
    selected and cannot run.
    """

    version: int
    streams: tuple[Stream, ...]
    routed: Stream | None
    continuous: tuple[ContinuousQuery, ...]
    unbounded: tuple[ContinuousQuery, ...]
    left_out: tuple[str, ...]
    refused: tuple[HeadgateError, ...]

    def continuous_on(self, stream: Stream) -> tuple[ContinuousQuery, ...]:
        """Return the continuous queries that read a stream."""
        return tuple(
            query for query in self.continuous if stream.name in build_reduction(query).streams
        )


def plan_queries(snapshot: Snapshot, version: int, selection: QuerySelection) -> QueryPlan:
    """Return what a job does with a published version of the queries."""
    schema = snapshot.schema
    # without names there is one source, whose stream is the routed or the only one
    names = (selection.routed,) if selection.streams is None else selection.streams
    streams = tuple(schema.stream(name) for name in names)
    filtered, others = _split_queries(snapshot)
    routed = _choose_routed(streams, filtered, selection.routed)
    sorter = _QuerySorter(
        {stream.name for stream in streams}, selection.continuous, selection.allow_unbounded
    )
    for query in others:
        sorter.add(query, ContinuousQuery.from_query(query, schema))
    sorter.check_selected(others)
    # filters on a stream that is read, but not routed, would otherwise vanish silently
    idle = [stream.name for stream in streams if stream.name in filtered and stream != routed]
    left_out = (
        [f"filters on {join_first(idle)}, which is not the `stream` of [queries]"] if idle else []
    )
    return QueryPlan(
        version,
        streams,
        routed,
        tuple(sorter.running),
        tuple(sorter.unbounded),
        (*left_out, *sorter.explain_left_out()),
        tuple(sorter.refused),
    )


def _choose_routed(
    streams: Sequence[Stream], filtered: Collection[str], selected_name: str | None
) -> Stream | None:
    """Return the stream whose filters are matched: the selected one, or the only one with any."""
    if selected_name is not None:
        for stream in streams:
            if stream.name.lower() == selected_name.lower():
                return stream
        hint = did_you_mean(selected_name, [stream.name for stream in streams])
        raise UsageError(f"`stream` is {selected_name}, which this job does not read; {hint}")
    # a single stream is routed even without filters: later versions may have some
    if len(streams) == 1:
        return streams[0]
    with_filters = [stream for stream in streams if stream.name in filtered]
    if len(with_filters) > 1:
        names = ", ".join(stream.name for stream in with_filters)
        raise UsageError(
            f"there are filters on {names}, and a job routes one stream; "
            "give its name as `stream` in [queries]"
        )
    return with_filters[0] if with_filters else None


@dataclass(slots=True)
class _QuerySorter:
    """Queries that are no filters, sorted by whether the job can run them.

    `streams` are those that the job reads, `selected` the ids that it is to run; None for all.
    """

    streams: Collection[str]
    selected: Collection[str] | None
    allow_unbounded: bool
    running: list[ContinuousQuery] = field(default_factory=list)
    unbounded: list[ContinuousQuery] = field(default_factory=list)
    refused: list[HeadgateError] = field(default_factory=list)
    windowed: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, query: Query, continuous: ContinuousQuery) -> None:
        """Sort one query; one that was selected by id and cannot run is refused, not left out."""
        if self.selected is not None and query.id not in self.selected:
            return
        names = [source.stream.name for source in query.sources]
        missing = [name for name in names if name not in self.streams]
        windows = any(source.rows is not None for source in query.sources)
        # a query that was named must run, or the job does not start
        if self.selected is not None and (missing or windows):
            why = f"reads {missing[0]}, which this job does not" if missing else "has a row window"
            self.refused.append(QuerySetError(f"query `{query.id}` {why}; it cannot run here"))
        elif missing:
            self.unread.append(query.id)
        elif windows:
            self.windowed.append(query.id)
        else:
            self._add_runnable(continuous)

    def _add_runnable(self, query: ContinuousQuery) -> None:
        try:
            build_reduction(query)
            self.running.append(query)
        # the only refusal that the configuration can overrule
        except Unbounded as error:
            if self.allow_unbounded:
                self.unbounded.append(query)
            else:
                self.refused.append(error)
        except HeadgateError as error:
            self.refused.append(error)

    def check_selected(self, queries: Sequence[Query]) -> None:
        """Refuse ids that were selected and that no query has."""
        ids = [query.id for query in queries]
        for query_id in self.selected or ():
            if query_id not in ids:
                hint = did_you_mean(query_id, ids)
                text = f"no join, aggregate or DISTINCT query `{query_id}`; {hint}"
                self.refused.append(QuerySetError(text))

    def explain_left_out(self) -> list[str]:
        """Return why queries do not run that were not selected by id."""
        reasons = []
        if self.unread:
            reasons.append(
                f"queries that read a stream which this job does not: {join_first(self.unread)}"
            )
        if self.windowed:
            reasons.append(
                f"queries with row windows, which do not run on Spark: {join_first(self.windowed)}"
            )
        return reasons


def build_refusal(plan: QueryPlan) -> HeadgateError:
    """Return the error of the first query that cannot run, with how to run the job without it."""
    first = plan.refused[0]
    return first if isinstance(first, QuerySetError) else add_advice(first, plan)


def add_advice(
    error: HeadgateError, plan: QueryPlan, without: ContinuousQuery | None = None
) -> HeadgateError:
    """Return an error that stops the start, with how to run the job without its query."""
    # the list that the user can copy into the configuration
    others = [query for query in (*plan.continuous, *plan.unbounded) if query != without]
    ids = ", ".join(f'"{query.id}"' for query in others)
    more = len(plan.refused) - 1
    hint = f"to run the job without it, give queries = [{ids}] in [continuous]"
    hint += f" ({more} more cannot run either)" if more > 0 else ""
    if not isinstance(error, Unbounded):
        return type(error)(f"{error}; {hint}")
    if without is None:
        hint += ";\nto leave it to Spark's own join, under a cap, allow_unbounded = true there"
    return Unbounded(f"{error}\n{hint}", error.verdict)


def _split_queries(snapshot: Snapshot) -> tuple[set[str], list[Query]]:
    """Return the streams that have filters, and all other queries in the order of the set.

    There may be a million filters, so no object is made of any: what kind a query is, is read from
    the arrays of its segment.
    """
    filtered: set[str] = set()
    others: list[tuple[int, Query]] = []
    start = 0  # of the segment, among the queries of all segments
    for segment in snapshot.segments:
        if isinstance(segment, Tombstones):
            continue
        queries = segment.queries
        # ranks are the positions in the set, places those in the segment
        inside = (snapshot.order >= start) & (snapshot.order < start + len(queries))
        ranks = np.flatnonzero(inside)
        places = snapshot.order[ranks] - start
        start += len(queries)
        # queries of one shape share a frame, and the frame knows their kind and stream
        frames = decode_frames(queries.frames, snapshot.schema)
        is_filter = np.array([frame.kind == "filter" for frame in frames], np.bool_)
        used = queries.frame[places]
        filtered.update(frames[number].stream_name for number in np.unique(used[is_filter[used]]))
        is_other = ~is_filter[used]
        chosen = select_queries(queries, places[is_other], snapshot.schema)
        decoded = decode_queries(chosen, snapshot.schema)
        others += zip(ranks[is_other].tolist(), decoded, strict=True)
    return filtered, [query for _, query in sorted(others, key=lambda pair: pair[0])]
