"""What one version of the queries asks of the streams that a job reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.errors import HeadgateError, QuerySetError, Unbounded, UsageError, did_you_mean
from headgate.queries import Query
from headgate.schema import Stream
from headgate.snapshot import Snapshot
from headgate.snapshot.arrays import decode_queries
from headgate.snapshot.arrays.frames import decode_frames
from headgate.snapshot.arrays.selection import select_queries
from headgate.snapshot.segments import Tombstones
from headgate.spark.frames import listed
from headgate.spark.job.continuous_query import Standing, reduction


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a job is told to do with the queries, whatever their version.

    `streams` are the names of those that it reads, in the order of its sources; None for a single
    one that the queries know. `routed` is the stream whose filters are matched, and `continuous`
    are the ids of the queries that run for ever; where they are None, all that can be. Those that
    bounded memory is not enough for are refused, unless `allow_unbounded`.
    """

    streams: tuple[str, ...] | None = None
    routed: str | None = None
    keep: tuple[str, ...] | None = None
    continuous: tuple[str, ...] | None = None
    allow_unbounded: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters on one stream and the continuous queries on all that a job runs.

    `unbounded` are those that bounded memory is not enough for, where they may run all the same.
    `left_out` says of which queries nothing will come, and why; `refused` are the errors of those
    that were to run and cannot.
    """

    version: int
    streams: tuple[Stream, ...]
    routed: Stream | None
    continuous: tuple[Standing, ...]
    unbounded: tuple[Standing, ...]
    left_out: tuple[str, ...]
    refused: tuple[HeadgateError, ...]

    def on(self, stream: Stream) -> tuple[Standing, ...]:
        """The continuous queries that read a stream."""
        return tuple(one for one in self.continuous if stream.name in reduction(one).streams)


def asked(snapshot: Snapshot, version: int, wanted: Wanted) -> Asked:
    """What a published version asks of a job."""
    schema = snapshot.schema
    names = (wanted.routed,) if wanted.streams is None else wanted.streams
    streams = tuple(schema.stream(name) for name in names)
    filtered, others = _queries(snapshot)
    routed = _routed(streams, filtered, wanted.routed)
    sorted_ = _Sorted(
        {stream.name for stream in streams}, wanted.continuous, wanted.allow_unbounded
    )
    for query in others:
        sorted_.add(query, Standing.of(query, schema))
    sorted_.check_chosen(others)
    idle = [stream.name for stream in streams if stream.name in filtered and stream != routed]
    left_out = (
        [f"filters on {listed(idle)}, which is not the `stream` of [queries]"] if idle else []
    )
    return Asked(
        version,
        streams,
        routed,
        tuple(sorted_.running),
        tuple(sorted_.unbounded),
        (*left_out, *sorted_.left_out()),
        tuple(sorted_.refused),
    )


def _routed(
    streams: Sequence[Stream], filtered: Collection[str], wanted: str | None
) -> Stream | None:
    """The stream whose filters are matched: the chosen one, or the only one that has any."""
    if wanted is not None:
        found = [stream for stream in streams if stream.name.lower() == wanted.lower()]
        if not found:
            hint = did_you_mean(wanted, [stream.name for stream in streams])
            raise UsageError(f"`stream` is {wanted}, which this job does not read; {hint}")
        return found[0]
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
class _Sorted:
    """Queries that are no filters, sorted by whether the job can run them."""

    read: Collection[str]
    chosen: Collection[str] | None
    allow_unbounded: bool
    running: list[Standing] = field(default_factory=list)
    unbounded: list[Standing] = field(default_factory=list)
    refused: list[HeadgateError] = field(default_factory=list)
    windowed: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, query: Query, standing: Standing) -> None:
        if self.chosen is not None and query.id not in self.chosen:
            return
        missing = [s.stream.name for s in query.sources if s.stream.name not in self.read]
        windows = any(source.rows is not None for source in query.sources)
        if self.chosen is not None and (missing or windows):
            why = f"reads {missing[0]}, which this job does not" if missing else "has a row window"
            self.refused.append(QuerySetError(f"query `{query.id}` {why}; it cannot run here"))
        elif missing:
            self.unread.append(query.id)
        elif windows:
            self.windowed.append(query.id)
        else:
            self._try(standing)

    def _try(self, standing: Standing) -> None:
        try:
            reduction(standing)
            self.running.append(standing)
        except Unbounded as error:
            if self.allow_unbounded:
                self.unbounded.append(standing)
            else:
                self.refused.append(error)
        except HeadgateError as error:
            self.refused.append(error)

    def check_chosen(self, known: Sequence[Query]) -> None:
        ids = [query.id for query in known]
        for chosen in self.chosen or ():
            if chosen not in ids:
                hint = did_you_mean(chosen, ids)
                text = f"no join, aggregate or DISTINCT query `{chosen}`; {hint}"
                self.refused.append(QuerySetError(text))

    def left_out(self) -> list[str]:
        found = []
        if self.unread:
            found.append(f"they read a stream that this job does not: {listed(self.unread)}")
        if self.windowed:
            found.append(f"row windows do not run on Spark: {listed(self.windowed)}")
        return found


def refusal(found: Asked) -> HeadgateError:
    """The error of the first query that cannot run, with a way to go on without it."""
    first = found.refused[0]
    return first if isinstance(first, QuerySetError) else advised(first, found)


def advised(error: HeadgateError, found: Asked, without: Standing | None = None) -> HeadgateError:
    """An error that stops the start, with how to run the job without its query."""
    others = [one for one in (*found.continuous, *found.unbounded) if one != without]
    ids = ", ".join(f'"{one.id}"' for one in others)
    more = len(found.refused) - 1
    hint = f"to run the job without it, give queries = [{ids}] in [continuous]"
    hint += f" ({more} more cannot run either)" if more > 0 else ""
    if not isinstance(error, Unbounded):
        return type(error)(f"{error}; {hint}")
    if without is None:
        hint += ";\nto leave it to Spark's own join, under a cap, allow_unbounded = true there"
    return Unbounded(f"{error}\n{hint}", error.verdict)


def _queries(snapshot: Snapshot) -> tuple[set[str], list[Query]]:
    """The streams that have filters, and all queries that are none, in the order of the set.

    Of the filters, of which there may be a million, no object is made.
    """
    filtered: set[str] = set()
    others: list[tuple[int, Query]] = []
    start = 0
    for segment in snapshot.segments:
        if isinstance(segment, Tombstones):
            continue
        queries = segment.queries
        inside = (snapshot.order >= start) & (snapshot.order < start + len(queries))
        ranks = np.flatnonzero(inside)
        places = snapshot.order[ranks] - start
        start += len(queries)
        frames = decode_frames(queries.frames, snapshot.schema)
        is_filter = np.array([frame.kind == "filter" for frame in frames], np.bool_)
        used = queries.frame[places]
        filtered.update(frames[number].stream_name for number in np.unique(used[is_filter[used]]))
        own = ~is_filter[used]
        decoded = decode_queries(
            select_queries(queries, places[own], snapshot.schema), snapshot.schema
        )
        others += zip(ranks[own].tolist(), decoded, strict=True)
    return filtered, [query for _, query in sorted(others, key=lambda pair: pair[0])]
