"""How much a bounded query stores at most, in values and in bytes.

A value, a count or a sum is one value. All numbers are exact whole numbers, however huge. Widths
are fixed by type; a text is as long as the longest of its finitely many values, else as long as it
was observed to be, else as long as is assumed, which the result then says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from headgate.predicate import Column
from headgate.queries import Query
from headgate.stateful.analysis.cases.case import Case, find_source
from headgate.stateful.analysis.synopses.answer_parts import list_answer_parts
from headgate.stateful.analysis.synopses.plan import SynopsisPlan, build_plan, merge_cells
from headgate.stateful.analysis.synopses.sizes import ASSUMED_TEXT_BYTES, TextLengths, readable
from headgate.stateful.analysis.synopses.synopsis import Synopsis, describe_synopses


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
        """Return the limit in words.

        >>> str(Memory(9, 72, assumed=("s.name",)))
        'at most 9 values in 72 bytes, if texts of s.name have up to 32 bytes'
        """
        said = f"at most {readable(self.values, 'value')} in {readable(self.bytes, 'byte')}"
        named = ", ".join(self.assumed)
        return (
            f"{said}, if texts of {named} have up to {ASSUMED_TEXT_BYTES} bytes" if named else said
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "values": self.values,
            "bytes": self.bytes,
            "answer": {"values": self.answer_values, "bytes": self.answer_bytes},
            "assumed": list(self.assumed),
            "text": str(self),
        }


def compute_memory_limit(
    query: Query,
    cases: Sequence[Case],
    observed: Mapping[str, int] | None = None,
) -> Memory | None:
    """Return the bound of a query with these cases; None where its synopses are not worked out."""
    kept = describe_synopses(query, cases, observed)
    if not kept:
        return None
    plan = build_plan(query, cases)
    values, size = _answer(plan, TextLengths(plan, observed or {}), kept)
    assumed = dict.fromkeys(name for synopsis in kept for name in synopsis.assumed)
    return Memory(
        sum(synopsis.values for synopsis in kept) + values,
        sum(synopsis.bytes for synopsis in kept) + size,
        values,
        size,
        tuple(assumed),
    )


def _answer(plan: SynopsisPlan, lengths: TextLengths, kept: Sequence[Synopsis]) -> tuple[int, int]:
    """Return the values and bytes of the answer; 0 where it is given away or is the synopsis."""
    query = plan.query
    is_streamed = query.kind != "aggregate" and not query.distinct
    if is_streamed or (len(kept) == 1 and kept[0].rows is None):
        return 0, 0
    # Every choice of outputs of the streams may be a row of the answer.
    groups = prod(synopsis.outputs for synopsis in kept)
    if query.kind == "aggregate" and not query.group_by:
        groups = 1
    if not plan.branches:
        groups = min(groups, 1)
    values = size = 0
    for part in list_answer_parts(plan):
        # A part that lists values has a row for each group and choice of values.
        rows = groups * prod(_choices(plan, column) for column in part.listed)
        values += rows * part.values
        size += rows * part.bytes(lengths)
    return values, size


def _choices(plan: SynopsisPlan, column: Column) -> int:
    """Return how many values a column can have in what is kept."""
    rows = plan.query.sources[find_source(plan.query, column)].rows
    if rows is not None:
        return rows
    cells = merge_cells(plan.branches, column)
    null = any(branch.accepts_null(column) for branch in plan.branches)
    return cells.values + cells.gaps + null
