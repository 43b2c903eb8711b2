"""The rows of the output: one for each match, and one for each dead letter.

A match has the columns below and, unless no attribute is kept, the event in a column
`event`, a struct, so that no attribute can collide with ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.events import DeadLetter, EventBatch
from headgate.matching import Matches
from headgate.schema import Attribute, Stream
from headgate.spark.worker import Versions

MAX_ROWS = 1 << 18  # of a table; an event with very many matches may go over several

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
def match_schema(stream: Stream, kept: tuple[Attribute, ...]) -> pa.Schema:
    """The columns of a match.

    >>> from headgate.schema import INT
    >>> s = Stream("s", (Attribute("bid.size", INT), Attribute("bid.price", INT)))
    >>> match_schema(s, s.attributes).field("event").type
    StructType(struct<bid: struct<size: int32, price: int32>>)
    """
    empty = [pa.array([], attribute.type.arrow) for attribute in kept]
    event = _event(stream, kept, empty)
    return pa.schema((*_MATCH, pa.field("event", event.type)) if kept else _MATCH)


def match_tables(
    batch: EventBatch,
    matches: Matches,
    schema: pa.Schema,
    kept: tuple[Attribute, ...],
    versions: Versions,
    *,
    batch_id: int,
    set_version: int,
    source: str,
) -> Iterator[pa.Table]:
    """The rows of a chunk of matches, in tables of bounded size."""
    numbers = np.repeat(np.arange(len(matches)), np.diff(matches.offsets)) + matches.first
    rows = np.searchsorted(batch.events, numbers)
    arrays = [batch.table.column(attribute.name) for attribute in kept]
    event = _event(batch.stream, kept, arrays) if kept else None
    ids: Any = pa.array(matches.known_ids, pa.string())
    for start in range(0, matches.total, MAX_ROWS):
        positions = matches.positions[start : start + MAX_ROWS]
        here = rows[start : start + MAX_ROWS]
        count = len(positions)
        columns = [
            pa.repeat(pa.scalar(batch_id, pa.int64()), count),
            pa.repeat(pa.scalar(set_version, pa.int64()), count),
            ids.take(positions),
            versions.of(positions),
            pa.repeat(pa.scalar(source, pa.string()), count),
            pa.array(batch.lines[here]),
        ]
        if event is not None:
            columns.append(event.take(here))
        yield pa.Table.from_arrays(columns, schema=schema)


def dead_table(letters: Sequence[DeadLetter], batch_id: int) -> pa.Table:
    """Dead letters as rows."""
    columns: dict[str, list[Any]] = {
        "batch_id": [batch_id] * len(letters),
        "source": [letter.source for letter in letters],
        "line": [letter.line for letter in letters],
        "reason": [letter.reason for letter in letters],
        "raw": [letter.raw for letter in letters],
    }
    return pa.table(columns, schema=pa.schema(_DEAD))


def _event(
    stream: Stream, kept: Sequence[Attribute], arrays: Sequence[pa.Array[Any]]
) -> pa.Array[Any]:
    """The kept attributes of each event as a struct, those with dotted paths as structs in it."""
    tree: dict[str, Any] = {}
    for attribute, array in zip(kept, arrays, strict=True):
        *outer, name = steps(stream, attribute)
        at = tree
        for step in outer:
            at = at.setdefault(step, {})
        at[name] = array
    return _struct(tree)


def steps(stream: Stream, attribute: Attribute) -> list[str]:
    """The way to an attribute; a path whose beginning is an attribute itself is one flat name.

    >>> from headgate.schema import INT
    >>> s = Stream("s", tuple(Attribute(name, INT) for name in ("bid.size", "ask", "ask.x")))
    >>> [steps(s, attribute) for attribute in s]
    [['bid', 'size'], ['ask'], ['ask.x']]
    """
    parts = attribute.name.split(".")
    starts = (".".join(parts[:depth]) for depth in range(1, len(parts)))
    return [attribute.name] if any(stream.get(start) for start in starts) else parts


def _struct(tree: dict[str, Any]) -> pa.Array[Any]:
    arrays = [_struct(inner) if isinstance(inner, dict) else inner for inner in tree.values()]
    return pa.StructArray.from_arrays(arrays, names=list(tree))
