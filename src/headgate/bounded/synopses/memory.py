"""How much a bounded query stores at most, in values and in bytes.

A value, a count or a sum is one value. All numbers are exact whole numbers, however huge. Widths
are fixed by type; a text is as long as the longest of its finitely many values, else as long as it
was observed to be, else as long as is assumed, which the result then says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from headgate.bounded.cases.case import aggregates, output_columns
from headgate.bounded.synopses.sizes import ASSUMED_TEXT, readable, width
from headgate.bounded.synopses.synopsis import Synopsis
from headgate.query import Query
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Memory:
    """The most that is ever stored: by the synopses, and by the answer itself.

    The answer is kept by DISTINCT, so as to give a row once, and by aggregates. `assumed` names the
    attributes whose texts are assumed to be short.
    """

    values: int
    bytes: int
    answer_values: int = 0
    answer_bytes: int = 0
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """
        >>> str(Memory(9, 72, assumed=("s.name",)))
        'at most 9 values in 72 bytes, if texts of s.name have up to 32 bytes'
        """
        said = f"at most {readable(self.values, 'value')} in {readable(self.bytes, 'byte')}"
        named = ", ".join(self.assumed)
        return f"{said}, if texts of {named} have up to {ASSUMED_TEXT} bytes" if named else said

    def as_json(self) -> dict[str, Any]:
        return {
            "values": self.values,
            "bytes": self.bytes,
            "answer": {"values": self.answer_values, "bytes": self.answer_bytes},
            "assumed": list(self.assumed),
            "text": str(self),
        }


def memory(query: Query, schema: Schema, synopses: Sequence[Synopsis]) -> Memory | None:
    """The bound of a query with these synopses; None where they are not worked out."""
    if not synopses:
        return None
    values, size = _answer(query, schema, synopses)
    assumed = dict.fromkeys(name for synopsis in synopses for name in synopsis.assumed)
    return Memory(
        sum(synopsis.values for synopsis in synopses) + values,
        sum(synopsis.bytes for synopsis in synopses) + size,
        values,
        size,
        tuple(assumed),
    )


def _answer(query: Query, schema: Schema, synopses: Sequence[Synopsis]) -> tuple[int, int]:
    """The values and bytes of the answer; none where it is given away, or is the synopsis."""
    is_streamed = query.kind != "aggregate" and not query.distinct
    if is_streamed or (len(synopses) == 1 and synopses[0].rows is None):
        return 0, 0
    columns = len(output_columns(query, schema))
    rows = prod(synopsis.outputs for synopsis in synopses)
    if query.kind == "aggregate" and not query.group_by:
        rows = 1
    each = sum(synopsis.output_bytes for synopsis in synopses)
    others = (a for a in aggregates(query) if a.function not in ("MIN", "MAX"))
    each += sum(width(aggregate.type) for aggregate in others)
    return rows * (columns + len(aggregates(query))), rows * each
