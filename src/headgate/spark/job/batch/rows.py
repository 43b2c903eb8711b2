"""The rows of the output: for each match, each dead letter, and each answer of a query.

A match has the columns below and, unless no attribute is kept, the event in a column `event`: a
struct, so that no attribute can collide with ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.events import DeadLetter, EventBatch
from headgate.matching import Matches
from headgate.matching.known_ids import as_known_ids
from headgate.schema import Attribute, Stream
from headgate.spark.job.event_reduction import ANSWER_COLUMNS
from headgate.spark.worker import QueryVersions

MAX_TABLE_ROWS = 1 << 18  # the matches of one event may span several tables

_Fields = tuple["pa.Field[Any]", ...]

_DEAD: _Fields = (
    pa.field("batch_id", pa.int64()),
    pa.field("source", pa.string()),
    pa.field("line", pa.int64()),
    pa.field("reason", pa.string()),
    pa.field("raw", pa.string()),
)
_MATCH: _Fields = (
    pa.field("batch_id", pa.int64()),
    pa.field("set_version", pa.int64()),
    pa.field("query_id", pa.string()),
    pa.field("query_version", pa.string()),
    pa.field("source", pa.string()),
    pa.field("line", pa.int64()),
)


@lru_cache(maxsize=10)
def build_match_schema(stream: Stream, attributes: tuple[Attribute, ...]) -> pa.Schema:
    """Return the columns of a match.

    >>> from headgate.schema import INT
    >>> s = Stream("s", (Attribute("bid.size", INT), Attribute("bid.price", INT)))
    >>> build_match_schema(s, s.attributes).field("event").type
    StructType(struct<bid: struct<size: int32, price: int32>>)
    """
    # the type of the struct follows from that of empty columns
    empty = [pa.array([], attribute.type.arrow) for attribute in attributes]
    event = _build_event_column(stream, attributes, empty)
    return pa.schema((*_MATCH, pa.field("event", event.type)) if attributes else _MATCH)


def build_match_tables(
    batch: EventBatch,
    matches: Matches,
    schema: pa.Schema,
    attributes: tuple[Attribute, ...],
    versions: QueryVersions,
    *,
    batch_id: int,
    set_version: int,
    source: str,
) -> Iterator[pa.Table]:
    """Yield the rows of a chunk of matches, in tables of bounded size."""
    # for each match the number of its event, and the row of that event in the batch
    numbers = np.repeat(np.arange(len(matches)), np.diff(matches.offsets)) + matches.first
    rows = np.searchsorted(batch.events, numbers)
    arrays = [batch.table.column(attribute.name) for attribute in attributes]
    event = _build_event_column(batch.stream, attributes, arrays) if attributes else None
    # of all ids, from which each match takes its own
    ids = as_known_ids(matches.known_ids)
    for start in range(0, matches.total, MAX_TABLE_ROWS):
        positions = matches.positions[start : start + MAX_TABLE_ROWS]
        event_rows = rows[start : start + MAX_TABLE_ROWS]
        count = len(positions)
        columns = [
            pa.repeat(pa.scalar(batch_id, pa.int64()), count),
            pa.repeat(pa.scalar(set_version, pa.int64()), count),
            ids.take(positions),
            versions.get(positions),
            pa.repeat(pa.scalar(source, pa.string()), count),
            pa.array(batch.lines[event_rows]),
        ]
        if event is not None:
            columns.append(event.take(event_rows))
        yield pa.Table.from_arrays(columns, schema=schema)


def label_rows(rows: pa.Table, batch: int, query_id: str, version: str) -> pa.Table:
    """Return the answers of a query behind columns that say which batch and query they are of."""
    # in the order of ANSWER_COLUMNS
    values = (pa.scalar(batch, pa.int64()), pa.scalar(query_id), pa.scalar(version))
    columns = [pa.repeat(value, rows.num_rows) for value in values]
    names = [*ANSWER_COLUMNS, *rows.column_names]
    return pa.Table.from_arrays([*columns, *rows.columns], names=names)


def build_dead_table(letters: Sequence[DeadLetter], batch_id: int) -> pa.Table:
    """Return dead letters as rows."""
    # `event` is left out: source and line say where it was
    columns: dict[str, list[Any]] = {
        "batch_id": [batch_id] * len(letters),
        "source": [letter.source for letter in letters],
        "line": [letter.line for letter in letters],
        "reason": [letter.reason for letter in letters],
        "raw": [letter.raw for letter in letters],
    }
    return pa.table(columns, schema=pa.schema(_DEAD))


def _build_event_column(
    stream: Stream, attributes: Sequence[Attribute], arrays: Sequence[pa.Array[Any]]
) -> pa.Array[Any]:
    """Return the kept attributes of events as a struct; dotted paths become nested structs."""
    tree: dict[str, Any] = {}
    for attribute, array in zip(attributes, arrays, strict=True):
        *outer, name = split_path(stream, attribute)
        inner = tree
        for step in outer:
            inner = inner.setdefault(step, {})
        inner[name] = array
    return _build_struct(tree)


def split_path(stream: Stream, attribute: Attribute) -> list[str]:
    """Return the path of an attribute; if a prefix is an attribute itself, it is one flat name.

    >>> from headgate.schema import INT
    >>> s = Stream("s", tuple(Attribute(name, INT) for name in ("bid.size", "ask", "ask.x")))
    >>> [split_path(s, attribute) for attribute in s]
    [['bid', 'size'], ['ask'], ['ask.x']]
    """
    parts = attribute.name.split(".")
    # `ask` and `ask.x` cannot both be a column and a struct of the same name
    starts = (".".join(parts[:depth]) for depth in range(1, len(parts)))
    return [attribute.name] if any(stream.get(start) for start in starts) else parts


def _build_struct(tree: dict[str, Any]) -> pa.Array[Any]:
    arrays = [_build_struct(inner) if isinstance(inner, dict) else inner for inner in tree.values()]
    return pa.StructArray.from_arrays(arrays, names=list(tree))
