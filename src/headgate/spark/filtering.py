"""Filtering: the rows of a DataFrame for which one predicate is TRUE, however large it is.

Spark compiles a condition into code, which an OR of a few dozen boxes makes too long to run fast,
and one of thousands too long to run at all. Here no SQL is generated: the predicate
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
from headgate.spark.frames import NO_ATTRIBUTE, Array, select_columns, stream_of
from headgate.spark.transport import PackedSnapshot, pack_queries
from headgate.sql import Rejected, Script

if TYPE_CHECKING:
    from headgate.implication.evaluation import Evaluator

QUERY_ID = "filtered"
MAX_CACHED_PREDICATES = 4  # in one worker


def where(predicate: Condition, stream: Stream | Schema | str | None = None) -> Where:
    """Return a function for `df.transform` that keeps the rows for which a predicate is TRUE.

    A row whose value does not fit its type, or is outside its CHECK, is not TRUE, and is left out.
    Use `route` to see such rows: there they have an `error`.

    Parameters
    ----------
    predicate : str, Predicate or Query
        SQL text, a predicate, or a query that is a filter.
    stream : Stream, Schema or str, optional
        The declaration of the columns that the predicate mentions: a stream, a schema with one, or
        the text of a CREATE STREAM. Without it, text is read by the schema of the DataFrame; a
        predicate or query knows the types already.

    Returns
    -------
    Where
        A function from DataFrame to DataFrame.

    Raises
    ------
    UsageError
        If the query is not a filter.

    Examples
    --------
    Keep the rows of a condition that may be an OR of thousands of boxes::

        trades.transform(hg.spark.where("price BETWEEN 1 AND 2 AND qty > 5 OR qty IS NULL")).show()
    """
    if isinstance(predicate, Query) and predicate.kind != "filter":
        raise UsageError(f"`{predicate.id}` is no filter of rows; it is of kind {predicate.kind}")
    if isinstance(stream, str):
        stream = _read_declaration(stream)
    declared = stream.stream() if isinstance(stream, Schema) else stream
    # text without a declaration can be bound only when the DataFrame is known
    if isinstance(predicate, str):
        return Where(predicate if declared is None else to_predicate(predicate, declared), declared)
    return Where(predicate, declared or _collect_stream(predicate))


def _read_declaration(text: str) -> Schema:
    script = Script(Schema())
    for statement in script.read(text):
        if isinstance(statement, Rejected):
            raise statement.error
    return script.schema


def _collect_stream(predicate: Predicate | Query) -> Stream:
    """Return a stream of the columns that are mentioned, as they were bound."""
    used = collect_columns(to_predicate(predicate, None))
    name = predicate.stream_name if isinstance(predicate, Query) else QUERY_ID
    return Stream(name, tuple(Attribute(column.name, column.type) for column in used))


@dataclass(frozen=True, slots=True)
class Where:
    """A function from a DataFrame to its rows for which a predicate is TRUE; made by `where`.

    Examples
    --------
    Make a filter once, and keep with it the rows of any DataFrame that has its columns::

        is_large = hg.spark.where("qty > 5")
        is_large(trades).show()
    """

    predicate: Condition
    stream: Stream | None  # None: that of the DataFrame's schema

    def __call__(self, frame: DataFrame) -> DataFrame:
        """Return the rows of a DataFrame for which the predicate is TRUE.

        Parameters
        ----------
        frame : DataFrame
            The rows, streaming or not.

        Returns
        -------
        DataFrame
            The same columns, with fewer rows.
        """
        stream = self.stream or stream_of(frame, QUERY_ID)
        query = _build_query(self.predicate, stream)
        names = {column.name for column in collect_columns(query.where)}
        used = [attribute for attribute in stream if attribute.name in names]
        # only the mentioned columns leave the JVM
        inputs = select_columns(frame, stream, used)
        # a query set of one query, so that it travels and is cached as those of `route`
        place = pack_queries(QuerySet(Schema((stream,)), [query]))
        row_filter = RowFilter(place, tuple(inputs) or (NO_ATTRIBUTE,))
        is_true = arrow_udf(row_filter.evaluate, "boolean").asNondeterministic()
        place.send(frame.sparkSession)
        return frame.filter(is_true(*inputs.values() or [F.lit(True)]))


def _build_query(predicate: Condition, stream: Stream) -> Query:
    """Return the predicate as a query, which is the form in which it travels."""
    if isinstance(predicate, Query):
        # equal conditions are one snapshot, whatever query they come from
        return replace(predicate, id=QUERY_ID, outputs=(), metadata=None)
    bound = to_predicate(predicate, stream)
    return Query(QUERY_ID, (Source(stream, stream.name),), bound)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The Arrow UDF of a filter, by the name `evaluate`; pickled to the workers."""

    place: PackedSnapshot
    names: tuple[str, ...]

    def evaluate(self, batches: Iterator[Array]) -> Iterator[Array]:
        """Yield for each event whether to keep it, in order."""
        evaluator = _load_evaluator(self.place.open_on_worker())
        for columns in batches:
            # Spark hands over a single column without a tuple around it
            arrays = columns if isinstance(columns, tuple) else (columns,)
            batch = pa.RecordBatch.from_arrays(list(arrays), names=list(self.names))
            yield pa.array(evaluator.mask(batch))


def _load_evaluator(directory: str) -> Evaluator:
    """Return the evaluator of a predicate, from an earlier task if it is still the same."""
    return _load_by_fingerprint(directory, fingerprint(Path(directory)))


@lru_cache(maxsize=MAX_CACHED_PREDICATES)
def _load_by_fingerprint(directory: str, _: str) -> Evaluator:
    from headgate.implication.evaluation import Evaluator

    queries = open_snapshot(directory).query_set()
    return Evaluator.of(queries[QUERY_ID].where, queries.schema.stream())
