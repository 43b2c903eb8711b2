"""Short ways to declare a stream and to read a few events of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headgate.events import EventBatch, parse_csv_records, parse_json_lines, split_csv
from headgate.schema import Attribute, Stream, Type


def stream(**types: Type) -> Stream:
    """A stream of these attributes; `a__b` stands for the path `a.b`."""
    attributes = (Attribute(name.replace("__", "."), type_) for name, type_ in types.items())
    return Stream("s", tuple(attributes))


def parse(
    declared: Stream, *lines: str | bytes, columns: Sequence[str] | None = None
) -> EventBatch:
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    return parse_json_lines(raw, declared, source="x.jsonl", columns=columns)


def parse_csv(declared: Stream, text: str | bytes, *, separator: str = ",") -> EventBatch:
    """The events of a CSV text whose first line is the header."""
    raw = text.encode() if isinstance(text, str) else text
    header, *lines = raw.splitlines(keepends=True)
    return parse_csv_records(
        split_csv(lines, separator=separator, first_line=2),
        declared,
        header=header.decode().rstrip("\r\n").split(separator),
        source="x.csv",
    )


def rows(batch: EventBatch) -> list[dict[str, Any]]:
    return batch.table.to_pylist()


def values(batch: EventBatch) -> list[Any]:
    """The values of the only column."""
    (name,) = batch.table.schema.names
    return [row[name] for row in rows(batch)]


def exact(result: list[Any]) -> list[str]:
    """Values in a form that tells −0.0 from 0.0 and 1.0 from 1, and equates NaN with itself."""
    return [v.isoformat() if isinstance(v, datetime) else repr(v) for v in result]


def reasons(batch: EventBatch) -> list[str]:
    return [letter.reason for letter in batch.dead]
