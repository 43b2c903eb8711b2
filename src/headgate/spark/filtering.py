"""The rows of a DataFrame for which one predicate is TRUE, be it an OR of thousands of boxes.

Spark compiles a condition into code, which an OR of a few dozen boxes makes too long to be run
fast, and one of thousands too long to be run at all. Here no SQL is generated: the predicate
travels as arrays, as `route` sends queries, and an Arrow UDF over just the columns that it mentions
says which rows to keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in its stubs

from headgate.errors import UsageError
from headgate.implication.arguments import Condition, to_predicate
from headgate.predicate import Predicate, collect_columns
from headgate.queries import Query, QuerySet, Source
from headgate.schema import Attribute, Schema, Stream
from headgate.snapshot import fingerprint, open_snapshot
from headgate.spark.frames import stream_of, used_columns
from headgate.spark.routing import NO_ATTRIBUTE, Array
from headgate.spark.transport import Packed, pack
from headgate.sql import Rejected, Script

if TYPE_CHECKING:
    from headgate.implication.evaluation import Evaluator

NAME = "filtered"
KEPT = 4  # predicates that a worker holds on to


def where(predicate: Condition, stream: Stream | Schema | str | None = None) -> Where:
    """A function for `df.transform` that keeps the rows for which a predicate is TRUE.

    The predicate is SQL text, a Predicate, or a Query that is a filter. `stream` declares the
    columns that it mentions: a Stream, a Schema with one, or the text of a CREATE STREAM. Without
    it, text is read by the schema of the DataFrame, and in a Predicate or Query columns have their
    types already.

    A row is kept exactly where `evaluate` says TRUE. One whose value does not fit its type, or is
    outside its CHECK, is not TRUE, and so is left out: `route`, where such a row has an `error`,
    is the way to see it.

        df.transform(hg.spark.where("price BETWEEN 1 AND 2 AND qty > 5 OR qty IS NULL"))
    """
    if isinstance(predicate, Query) and predicate.kind != "filter":
        raise UsageError(f"`{predicate.id}` is no filter of rows; it is of kind {predicate.kind}")
    if isinstance(stream, str):
        stream = _declared(stream)
    known = stream.stream() if isinstance(stream, Schema) else stream
    if isinstance(predicate, str):
        return Where(predicate if known is None else to_predicate(predicate, known), known)
    return Where(predicate, known or _mentioned(predicate))


def _declared(text: str) -> Schema:
    script = Script(Schema())
    for found in script.read(text):
        if isinstance(found, Rejected):
            raise found.error
    return script.schema


def _mentioned(predicate: Predicate | Query) -> Stream:
    """A stream of the columns that are mentioned, as they were bound."""
    used = collect_columns(to_predicate(predicate, None))
    name = predicate.stream_name if isinstance(predicate, Query) else NAME
    return Stream(name, tuple(Attribute(column.name, column.type) for column in used))


@dataclass(frozen=True, slots=True)
class Where:
    """From a DataFrame to those of its rows for which a predicate is TRUE."""

    predicate: Condition
    stream: Stream | None  # None is whatever the DataFrame's schema makes it

    def __call__(self, frame: DataFrame) -> DataFrame:
        stream = self.stream or stream_of(frame, NAME)
        query = _query(self.predicate, stream)
        names = {column.name for column in collect_columns(query.where)}
        used = [attribute for attribute in stream if attribute.name in names]
        inputs = used_columns(frame, stream, used)
        place = pack(QuerySet(Schema((stream,)), [query]))
        sieve = Sieve(place, tuple(inputs) or (NO_ATTRIBUTE,))
        judged = arrow_udf(sieve.judge, "boolean").asNondeterministic()
        place.send(frame.sparkSession)
        return frame.filter(judged(*inputs.values() or [F.lit(True)]))


def _query(predicate: Condition, stream: Stream) -> Query:
    """The predicate as a query, which is the form in which it travels."""
    if isinstance(predicate, Query):
        return replace(predicate, id=NAME, outputs=(), metadata=None)
    bound = to_predicate(predicate, stream)
    return Query(NAME, (Source(stream, stream.name),), bound)


@dataclass(frozen=True, slots=True)
class Sieve:
    """An Arrow UDF by the name `judge`; workers import its class, and it carries only names."""

    place: Packed
    names: tuple[str, ...]

    def judge(self, batches: Iterator[Array]) -> Iterator[Array]:
        """Of each event whether it is to be kept, in order."""
        evaluator = _loaded(self.place.open_here())
        for given in batches:
            arrays = given if isinstance(given, tuple) else (given,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            yield pa.array(evaluator.mask(batch))


def _loaded(directory: str) -> Evaluator:
    """The evaluator of a predicate that was sent, from an earlier task if it is still the same."""
    return _kept(directory, fingerprint(Path(directory)))


@lru_cache(maxsize=KEPT)
def _kept(directory: str, _: str) -> Evaluator:
    from headgate.implication.evaluation import Evaluator

    queries = open_snapshot(directory).query_set()
    return Evaluator.of(queries[NAME].where, queries.schema.stream())
