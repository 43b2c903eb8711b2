"""Events that are expressions: the conditions of a file, and the queries that each of them meets.

A text file has a condition a line; lines that are blank or begin with `--` are skipped. A file of
JSON lines has objects such as {"where": "qty > 3"}, so a file of queries is one of events too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import EventError, Position, SqlError
from headgate.events.attribute_paths import RepeatedKeys
from headgate.events.batch import BOM, UnfitValue, decode_text, show_value
from headgate.events.file_access import (
    JSON_LINES,
    KNOWN_ENDINGS,
    find_file_kind,
    is_compressed,
    open_lines,
)
from headgate.events.json_lines import scan_object
from headgate.matching import Matches
from headgate.matching.base import Chunk
from headgate.predicate import Predicate
from headgate.queries import QuerySet
from headgate.schema import Stream
from headgate.sql import WhereReader

if TYPE_CHECKING:
    from headgate.matching.be_tree.index import BeTreeIndex

BLOCK_LINES = 1_000  # lines that are matched at a time

Line = Predicate | str | None  # a condition, the reason why it cannot be read, or nothing


class Semantics(StrEnum):
    """How a query and an event that is an expression may meet: those of `be_tree.semantics`."""

    stabbing_subscription = "stabbing-subscription"
    stabbing_event = "stabbing-event"
    symmetric = "symmetric"
    containment = "containment"
    enclosure = "enclosure"
    exact = "exact"


def match_conditions(
    events: Path, queries: QuerySet, stream: Stream, semantics: Semantics, limit: int | None
) -> Iterator[Chunk]:
    """Match the conditions of a file against the queries of a stream, a block at a time.

    A query that has no meaning under these semantics is an error before anything is matched.
    """
    from headgate.matching.be_tree.index import BeTreeIndex

    lines = _limit_lines(_read_conditions(events, stream), limit)
    # Of all indexes only the BE-Tree compares expressions with expressions.
    index = BeTreeIndex.build(stream, queries.filters(stream.name))
    # Without events this only checks that every query has a meaning under these semantics.
    index.match_expressions((), semantics)
    first = 0
    while block := list(islice(lines, BLOCK_LINES)):
        # Lines without a condition are blank; they have no number as events.
        parsed = [line for line in block if line is not None]
        yield Chunk(_match_block(index, parsed, semantics, first), len(block) - len(parsed), {})
        first += len(parsed)


def _match_block(
    index: BeTreeIndex, parsed: list[Predicate | str], semantics: Semantics, first: int
) -> Matches:
    """Return the matches of some events, of which the first has this number."""
    # Only lines that could be read are matched; `places` leads from them back to all lines.
    conditions = {at: line for at, line in enumerate(parsed) if not isinstance(line, str)}
    errors = {first + at: line for at, line in enumerate(parsed) if isinstance(line, str)}
    matches = index.match_expressions(list(conditions.values()), semantics)
    places = list(conditions)
    errors |= {first + places[number]: reason for number, reason in matches.errors.items()}
    # `counts[i + 1]` is the number of matches of line i, so that its running sum is the offsets.
    counts = np.zeros(len(parsed) + 1, np.int64)
    counts[np.array(places, np.int64) + 1] = np.diff(matches.offsets)
    return Matches(np.cumsum(counts), matches.positions, matches.known_ids, errors, first)


def _limit_lines(lines: Iterator[Line], limit: int | None) -> Iterator[Line]:
    """Yield lines up to the first `limit` events."""
    events = 0
    for line in lines:
        if events == limit:
            return
        events += line is not None
        yield line


def _read_conditions(path: Path, stream: Stream) -> Iterator[Line]:
    """Read the condition of each line; a missing file is an error at once."""
    # The ending under that of a compression: `.jsonl` of `a.jsonl.gz`.
    ending = Path(path.stem if is_compressed(path) else path).suffix.lower()
    if ending in KNOWN_ENDINGS and ending not in JSON_LINES:
        raise EventError(
            f"{path}: with --semantics events are conditions, one a line of a text file, "
            'or {"where": "…"} in .jsonl'
        )
    # The format is named only to skip the look at the ending; this checks that the file exists.
    find_file_kind(path, format="jsonl")
    return _read_lines(path, stream, _decode_json if ending in JSON_LINES else _decode_text)


def _read_lines(
    path: Path, stream: Stream, text_of: Callable[[bytes], str | None]
) -> Iterator[Line]:
    reader = WhereReader(stream)
    with open_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            # Only the first line of a file may begin with a byte order mark.
            text = line.removeprefix(BOM) if number == 1 else line
            yield _parse_line(text, reader, text_of, Position(str(path), number))


def _parse_line(
    line: bytes, reader: WhereReader, text_of: Callable[[bytes], str | None], place: Position
) -> Line:
    try:
        text = text_of(line) if line.strip() else None
        return None if text is None else reader.read(text)
    except UnfitValue as reason:
        return f"{place.file}:{place.line}: {reason}"
    except SqlError as error:
        return str(error.shift_to(place))


def _decode_text(line: bytes) -> str | None:
    """Return the condition of a text line; None for a comment."""
    text = decode_text(line)
    return None if text.lstrip().startswith("--") else text


def _decode_json(line: bytes) -> str:
    """Return the condition of a JSON object."""
    parsed = scan_object(line)
    pairs = parsed if isinstance(parsed, RepeatedKeys) else parsed.items()
    # All of them, since a repeated key has no value that could be trusted.
    values = [value for key, value in pairs if key == "where"]
    if len(values) > 1:
        raise UnfitValue("`where` given twice")
    if not values or not isinstance(values[0], str):
        problem = f"`where` is {show_value(values[0])}" if values else "no `where`"
        raise UnfitValue(f'{problem}; an event is an object such as {{"where": "qty > 3"}}')
    return values[0]
