"""The events of a task, reduced to what each continuous query of a job can tell apart.

A continuous query is a join, an aggregate or a DISTINCT. The driver joins the reductions of all
tasks with the query's state (`state`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from headgate.errors import JobError
from headgate.events import EventBatch
from headgate.queries import Query, compute_query_version
from headgate.schema import Schema
from headgate.spark.job.commit.output import ANSWERS, encode_folder
from headgate.sql import render_schema, render_select
from headgate.stateful.runtime.reduction import StreamReducer

ANSWER_COLUMNS = ("batch_id", "query_id", "query_version")  # before those of the query
MAX_CACHED_REDUCTIONS = 10_000
MAX_FOLDER_BYTES = 240  # of a directory's name, which file systems limit to 255
MAX_UNMERGED = 16  # reductions that are collected before they are merged


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """A query as tasks and the driver need it, with the streams that it reads.

    The `definition` is a hash of both: under another definition, stored state is meaningless.
    """

    id: str
    definition: str
    version: str = field(compare=False)
    query: Query = field(compare=False, repr=False)
    schema: Schema = field(compare=False, repr=False)

    @staticmethod
    def from_query(query: Query, schema: Schema) -> ContinuousQuery:
        """Return a query with just the streams that it reads."""
        names = {source.stream.name.lower() for source in query.sources}
        streams = tuple(stream for stream in schema if stream.name.lower() in names)
        own = Schema(streams, schema.aggregates)
        # the id is not part of it: renaming a query is a new query anyway
        text = f"{render_select(query)}\0{render_schema(own)}"
        definition = blake2b(text.encode(), digest_size=16).hexdigest()
        return ContinuousQuery(query.id, definition, compute_query_version(query), query, own)

    @property
    def folder(self) -> str:
        """The folder of its answers, relative to the root of the output."""
        return encode_folder(self.id)


@lru_cache(maxsize=MAX_CACHED_REDUCTIONS)
def build_reduction(query: ContinuousQuery) -> StreamReducer:
    """Return what a query takes of its streams, or raise a HeadgateError if it cannot run."""
    check_answer_columns(query.id, [output.name for output in query.query.outputs])
    return StreamReducer(query.query)


def check_answer_columns(query_id: str, names: Iterable[str]) -> None:
    """Raise a JobError if a query's rows, with columns of these names, cannot be written."""
    reserved = {name.lower() for name in names}.intersection(ANSWER_COLUMNS)
    if reserved:
        raise JobError(
            f"query `{query_id}` gives a column `{min(reserved)}`, which every answer has already; "
            "give it another name by AS"
        )
    if len(encode_folder(query_id)) - len(ANSWERS) > MAX_FOLDER_BYTES:
        raise JobError(f"query `{query_id}`: its id is too long for the name of a directory")


class EventReducer:
    """The events of one stream, reduced batch by batch for each query that reads it.

    It runs in a task: what is sent to the driver is one small reduction for each query.
    """

    def __init__(self, stream: str, queries: Sequence[ContinuousQuery]) -> None:
        self._stream = stream
        self._reductions = {query.id: build_reduction(query) for query in queries}
        self._reduced: dict[str, list[bytes]] = {query.id: [] for query in queries}

    @property
    def attributes(self) -> set[str]:
        """The names of the attributes that the queries use."""
        used = (reduction.attributes(self._stream) for reduction in self._reductions.values())
        return {name for names in used for name in names}

    def add(self, batch: EventBatch) -> None:
        """Reduce a batch of events for every query."""
        # an empty reduction would only be merged away again
        if not len(batch.events):
            return
        for query_id, reduced in self._reduced.items():
            reduced.append(self._reductions[query_id].reduce(self._stream, batch))
            # merged now and then, so that memory does not grow with the number of batches
            if len(reduced) == MAX_UNMERGED:
                reduced[:] = [self._merge(query_id)]

    def result(self) -> dict[str, bytes]:
        """Return a reduction for each query that had any event."""
        return {
            query_id: self._merge(query_id)
            for query_id, reduced in self._reduced.items()
            if reduced
        }

    def _merge(self, query_id: str) -> bytes:
        reduced = self._reduced[query_id]
        if len(reduced) == 1:
            return reduced[0]
        return self._reductions[query_id].merge(self._stream, reduced)
