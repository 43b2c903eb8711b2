"""The published versions of a job's queries, and what each means for the job.

Of a version the job routes, runs, leaves out and refuses queries (`QueryPlan`). Before each batch
it takes up the newest sound version (`VersionFollower`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headgate.errors import (
    HeadgateError,
    JobError,
    QuerySetError,
    SnapshotError,
    Unbounded,
    UsageError,
    did_you_mean,
)
from headgate.events.batch import select_attributes
from headgate.queries import Query
from headgate.schema import Stream
from headgate.snapshot import Snapshot, fingerprint, open_snapshot, read_pointer
from headgate.snapshot.arrays import decode_queries
from headgate.snapshot.arrays.queries import decode_frames
from headgate.snapshot.arrays.selection import select_queries
from headgate.snapshot.manifest import MANIFEST_NAME
from headgate.snapshot.segments import Tombstones
from headgate.spark.frames import join_first
from headgate.spark.job.batch.rows import build_match_schema
from headgate.spark.job.commit.claim import JOB_FILE
from headgate.spark.job.continuous_query import ContinuousQuery, build_reduction


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


class VersionFollower:
    """The versions under a root that `headgate publish` writes to.

    A version that is damaged, lacks a stream or an attribute to keep, or would change the columns
    of the output, is skipped with a note, and the job continues with the one before: a bad
    publication must not stop a stream. After the start, a continuous query of a new version that
    cannot run is skipped in the same way.
    """

    def __init__(
        self,
        root: Path,
        selection: QuerySelection,
        columns: str | None,
        note: Callable[[str], None],
        last_version: int | None = None,
    ) -> None:
        self._root = root
        self._selection = selection
        self.columns = columns
        """The columns of a match, which never change; None until there is a stream to route."""
        self._note = note
        self._skipped: int | None = None
        self._problem: str | None = None
        number = read_pointer(root)
        if number is None:
            raise JobError(
                f"{root}: nothing has been published there; headgate publish -q FILE --to {root}"
            )
        if last_version is not None:
            self._check_order(number, last_version)
        self._open(number)
        if self.current.refused:
            raise build_refusal(self.current)
        # unbounded queries have streaming queries of their own, which only a start can change
        self._unbounded = set(self.current.unbounded)

    @property
    def version(self) -> int:
        """The version that was taken up last."""
        return self.current.version

    def directory(self, version: int) -> Path:
        """Return where the snapshot of a version is."""
        return self._root / str(version)

    def take_newest(self) -> int:
        """Take up the newest sound version for a batch that begins now, and return it."""
        try:
            number = read_pointer(self._root)
            if number is not None and number != self._skipped and self._is_new(number):
                # until it is open it counts as skipped, so that a bad one is noted only once
                self._skipped = number
                self._check_order(number, self.version)
                self._open(number)
                self._skipped = None
                for error in self.current.refused:
                    self._note(f"version {number} runs without a query: {error}")
                self._note_unbounded()
        except HeadgateError as error:
            self._note_problem(f"version {self.version} stays: {error}")
        return self.version

    def _note_problem(self, problem: str) -> None:
        """Note why a version is not taken up, once and not before each batch."""
        if problem != self._problem:
            self._note(problem)
        self._problem = problem

    def _check_order(self, number: int, last: int) -> None:
        """Raise a JobError if a version is older than the last: a number means one version only."""
        if number < last:
            raise JobError(
                f"{self._root}: version {number} is current, and this job has used {last} already; "
                "publish the queries that you want, which gives them a greater number, or restore "
                "the directory if another one has come in its place"
            )

    def _note_unbounded(self) -> None:
        """Note unbounded queries that changed: they stay what they were at the start."""
        others = self._unbounded.symmetric_difference(self.current.unbounded)
        if others:
            ids = join_first(sorted({query.id for query in others}))
            self._note(
                f"version {self.version} has other queries that need unbounded memory, which are "
                f"taken up at the next start: {ids}"
            )

    def _is_new(self, number: int) -> bool:
        """Return whether a number is new, or its directory was deleted and published to again."""
        return number != self.version or fingerprint(self.directory(number)) != self._fingerprint

    def plan(self, version: int) -> QueryPlan:
        """Return what the job does with a version, be it an earlier one."""
        if version == self.version:
            return self.current
        snapshot = open_snapshot(self.directory(version))
        return plan_queries(snapshot, version, self._selection)

    def list_ids(self, version: int) -> list[str]:
        """Return the ids of the queries that a version matches, by position."""
        routed = self.plan(version).routed
        if routed is None:
            return []
        queries = open_snapshot(self.directory(version)).query_set()
        return [query.id for query in queries.filters(routed.name)]

    def require_version(self, version: int) -> int:
        """Return a version that a batch began under, or raise a JobError if it is gone."""
        if not (self.directory(version) / MANIFEST_NAME).exists():
            raise JobError(
                f"{self.directory(version)}: is gone, and a batch began under it; restore it. "
                "Versions may be deleted once the job has finished a batch under a later one"
            )
        return version

    def _open(self, number: int) -> None:
        """Make a version the current one, or raise and leave the current one as it is."""
        snapshot = open_snapshot(self.directory(number))
        if snapshot.version != number:
            raise SnapshotError(f"{snapshot.directory}: is version {snapshot.version}")
        plan = plan_queries(snapshot, number, self._selection)
        # checked before the plan becomes current, so that a bad version changes nothing
        columns = self._describe_columns(plan)
        if None not in (self.columns, columns) and columns != self.columns:
            raise JobError(
                f"with version {number} a match would have other columns than those in the output, "
                f"which {JOB_FILE} in the job's state lists; keep other attributes, give the new "
                f"schema a job of its own, or restore {JOB_FILE} if it was changed"
            )
        self.columns = columns or self.columns
        self._fingerprint = fingerprint(snapshot.directory)
        self.current = plan

    def _describe_columns(self, plan: QueryPlan) -> str | None:
        if plan.routed is None:
            return None
        attributes = select_attributes(plan.routed, self._selection.keep)
        return str(build_match_schema(plan.routed, attributes))
