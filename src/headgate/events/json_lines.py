"""JSON lines: one object per line, and every other line is a dead letter.

The standard scanner does the work, with three additions. Numbers with a point or an exponent stay
text (`conversion` says why). An object in which a key stands twice is kept as its pairs. Nesting is
bounded by a number of our own, and not by how deep the caller's stack happens to be. What
`format_json` writes is read back as it was.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from headgate.events.assembly import RowPlaces, assemble_batch, convert_column
from headgate.events.attribute_paths import (
    RepeatedKeys,
    count_undeclared_keys,
    locate_columns,
)
from headgate.events.batch import (
    BOM,
    MAX_RECORD,
    DeadLetter,
    EventBatch,
    UnfitValue,
    decode_text,
    excerpt_record,
    select_attributes,
    show_value,
)
from headgate.events.conversion import make_json_rule, parse_number
from headgate.schema import Stream

MAX_DEPTH = 200

_SPACE = " \t\r\n"
_BRACKET = re.compile(r'[\[{]|[\]}]|"(?:[^"\\]++|\\.)*+"?')


def parse_json_lines(
    lines: Iterable[bytes],
    stream: Stream,
    *,
    source: str,
    columns: Collection[str] | None = None,
    first_line: int = 1,
    first_event: int = 0,
) -> EventBatch:
    """Parse a block of lines, of which the first has the number `first_line`.

    >>> from headgate.schema import INT, Attribute
    >>> trades = Stream("trades", (Attribute("qty", INT),))
    >>> batch = parse_json_lines([b'{"qty": 3}', b"", b'{"QTY": 3.5}'], trades, source="x")
    >>> batch.table.to_pylist(), batch.blank, batch.dead[0].reason
    ([{'qty': 3}], 1, '`qty` is 3.5, which is not an INT')
    """
    block = list(lines)
    if first_line == 1 and block and block[0].startswith(BOM):
        block[0] = block[0][len(BOM) :]
    # every line is blank, an object, or broken; `places` has the line in the block of each row
    rows: list[dict[str, Any] | RepeatedKeys] = []
    places: list[int] = []
    broken: dict[int, str] = {}
    blanks: list[int] = []
    for place, line in enumerate(block):
        if not line or line.isspace():
            blanks.append(place)
            continue
        try:
            rows.append(scan_object(line))
            places.append(place)
        except UnfitValue as reason:
            broken[place] = str(reason)

    # the number of the event on each line: rows and dead letters count, blank lines do not
    is_event = np.ones(len(block), dtype=np.int64)
    is_event[blanks] = 0
    numbers = np.cumsum(is_event) + (first_event - 1)

    def write_letter(place: int, reason: str) -> DeadLetter:
        raw = excerpt_record(block[place])
        return DeadLetter(source, first_line + place, reason, raw, int(numbers[place]))

    # columns from rows: the raw values of each attribute, wherever the objects have it
    attributes = select_attributes(stream, columns)
    located = locate_columns(stream, attributes, rows)
    pairs = zip(attributes, located.values, strict=True)
    return assemble_batch(
        stream,
        [convert_column(a, make_json_rule(a), values) for a, values in pairs],
        RowPlaces(
            numbers[places],
            np.array(places, dtype=np.int64) + first_line,
            lambda row, reason: write_letter(places[row], reason),
        ),
        reasons=located.problems,
        dead=[write_letter(place, reason) for place, reason in broken.items()],
        blank=len(blanks),
        unknown=count_undeclared_keys(stream, rows) if located.has_unknown_keys else None,
    )


def scan_object(line: bytes) -> dict[str, Any] | RepeatedKeys:
    """Return the object that a line holds, with its raw values.

    >>> scan_object(b'{"price": 1.20, "qty": 7}')
    {'price': b'1.20', 'qty': 7}
    """
    if len(line) > MAX_RECORD and len(line.rstrip(b"\r\n")) > MAX_RECORD:
        raise UnfitValue(f"longer than {MAX_RECORD:,} bytes")
    text = decode_text(line).strip(_SPACE)
    # A level takes an opening and a closing bracket, so short texts need no look.
    if len(text) > 2 * MAX_DEPTH and _depth_exceeds(text, MAX_DEPTH):
        raise UnfitValue(f"nested more than {MAX_DEPTH} deep")
    document, end = _decode(text, _DECODER)
    if end != len(text):
        trailing = text[end:].lstrip(_SPACE)
        if trailing.startswith(("{", "[")):
            raise UnfitValue("more than one document on the line")
        raise UnfitValue(f"broken JSON: {show_value(trailing)} after the end of the document")
    if type(document) is not dict and not isinstance(document, RepeatedKeys):
        raise UnfitValue(f"{show_value(document)}, not an object")
    return document


def _decode(text: str, decoder: json.JSONDecoder) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text)
    except json.JSONDecodeError as error:
        problem = error.msg.removesuffix(" at")
        raise UnfitValue(f"broken JSON: {problem} at character {error.pos + 1}") from None
    except RecursionError:
        raise UnfitValue("nested too deep") from None
    except ValueError:  # an integer with more digits than int() takes
        # Once more, with integers parsed by a function of ours: slower, and rarely needed.
        return _decode(text, _LONG_INTEGERS)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | RepeatedKeys:
    members = dict(pairs)
    return members if len(members) == len(pairs) else RepeatedKeys(pairs)


def _depth_exceeds(text: str, limit: int) -> bool:
    """Return whether more than `limit` brackets are open at once, not counting those in strings."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += (match[0] in "[{") - (match[0] in "]}")
        if depth > limit:
            return True
    return False


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object, parse_float=str.encode)
_LONG_INTEGERS = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_float=str.encode, parse_int=parse_number
)


def format_json(value: Any) -> str:
    """Return one line of JSON whose values read back as the events that they came from.

    A DECIMAL is a number with all of its digits, which `json` alone cannot write; NaN and the
    infinities, which JSON lacks, are strings.

    >>> format_json({"price": Decimal("99.50"), "day": date(2024, 2, 29), "ratio": math.nan})
    '{"price": 99.50, "day": "2024-02-29", "ratio": "NaN"}'
    """
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{format_json(str(k))}: {format_json(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(format_json(item) for item in value) + "]"
    # All digits, and no exponent.
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    elif isinstance(value, date | datetime):
        value = value.isoformat()
    return json.dumps(value, ensure_ascii=False)
