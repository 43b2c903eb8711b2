"""A continuous query of a job: a join, an aggregate or a DISTINCT query that runs for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from urllib.parse import quote, unquote

from headgate.errors import JobError
from headgate.events import EventBatch
from headgate.queries import Query, compute_query_version
from headgate.schema import Schema
from headgate.spark.job.commit.output import ANSWERS
from headgate.sql import render_schema, render_select
from headgate.stateful.runtime.reduction import Reduction

COLUMNS = ("batch_id", "query_id", "query_version")  # of every answer, before those of its query
KEPT = 10_000  # reductions that a process holds on to
LONGEST = 240  # bytes of a directory's name

_HIDDEN = (".", "_")  # a name that begins so is passed over by those who read a folder


@dataclass(frozen=True, slots=True)
class Standing:
    """A query as a task and the driver need it, with the streams that it reads.

    The definition is a hash of both: with another one, what was stored means nothing any more.
    """

    id: str
    definition: str
    version: str = field(compare=False)
    query: Query = field(compare=False, repr=False)
    schema: Schema = field(compare=False, repr=False)

    @staticmethod
    def of(query: Query, schema: Schema) -> Standing:
        names = {source.stream.name.lower() for source in query.sources}
        streams = tuple(stream for stream in schema if stream.name.lower() in names)
        own = Schema(streams, schema.aggregates)
        text = f"{render_select(query)}\0{render_schema(own)}"
        definition = blake2b(text.encode(), digest_size=16).hexdigest()
        return Standing(query.id, definition, compute_query_version(query), query, own)

    @property
    def folder(self) -> str:
        return folder_of(self.id)


@lru_cache(maxsize=KEPT)
def reduction(standing: Standing) -> Reduction:
    """What the query takes of its streams; a HeadgateError where it cannot be run."""
    check_answers(standing.id, [output.name for output in standing.query.outputs])
    return Reduction(standing.query)


def check_answers(query_id: str, names: Iterable[str]) -> None:
    """Can the rows of a query, with columns of these names, be written? A JobError if not."""
    taken = {name.lower() for name in names}.intersection(COLUMNS)
    if taken:
        raise JobError(
            f"query `{query_id}` gives a column `{min(taken)}`, which every answer has already; "
            "give it another name by AS"
        )
    if len(folder_of(query_id)) - len(ANSWERS) > LONGEST:
        raise JobError(f"query `{query_id}`: its id is too long for the name of a directory")


def folder_of(query_id: str, parent: str = ANSWERS) -> str:
    """Where the answers of a query are, from the root of the output.

    >>> folder_of("big/é"), folder_of("..")
    ('answers/big%2F%C3%A9', 'answers/%2E.')
    """
    name = quote(query_id, safe="")
    seen = f"%{ord(name[0]):02X}{name[1:]}" if name.startswith(_HIDDEN) else name
    return f"{parent}/{seen}"


def id_of(folder: str) -> str:
    """The query whose answers are there; the inverse of `folder_of`.

    >>> id_of(folder_of("..")), id_of(folder_of("50%/~é"))
    ('..', '50%/~é')
    """
    return unquote(folder.partition("/")[2])


TOGETHER = 16  # reductions that are merged at once


class Reducing:
    """The events of one stream, reduced batch by batch for each query that reads it."""

    def __init__(self, stream: str, queries: Sequence[Standing]) -> None:
        self._stream = stream
        self._reductions = {one.id: reduction(one) for one in queries}
        self._found: dict[str, list[bytes]] = {one.id: [] for one in queries}

    @property
    def attributes(self) -> set[str]:
        """The names of the attributes that the queries use."""
        used = (one.attributes(self._stream) for one in self._reductions.values())
        return {name for names in used for name in names}

    def add(self, batch: EventBatch) -> None:
        if not len(batch.events):
            return
        for query_id, found in self._found.items():
            found.append(self._reductions[query_id].reduced(self._stream, batch))
            if len(found) == TOGETHER:
                found[:] = [self._merged(query_id)]

    def result(self) -> dict[str, bytes]:
        """A reduction for each query that had any event."""
        return {
            query_id: self._merged(query_id) for query_id, found in self._found.items() if found
        }

    def _merged(self, query_id: str) -> bytes:
        found = self._found[query_id]
        if len(found) == 1:
            return found[0]
        return self._reductions[query_id].merged(self._stream, found)
