"""By which attributes a query's streams can be split into parts that never meet.

Where every stream has an attribute that equals those of all others in every branch, rows in
different parts do not join. The answer falls into parts too, if none of its rows or groups can come
from two of them: with DISTINCT or groups, one of these attributes must be put out.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.predicate import Column
from headgate.stateful.analysis.cases.case import output_columns
from headgate.stateful.analysis.synopses.branches import Branch, source_of
from headgate.stateful.runtime.join import meeting
from headgate.stateful.runtime.program import Program


def shard_columns(program: Program) -> dict[int, Column] | None:
    """For each source the attribute to split it by; None where it cannot be split."""
    branches = program.plan.branches
    if not branches:
        return None
    first, *others = ([frozenset(c) for c in _equal(program, branch)] for branch in branches)
    classes = [c for c in first if all(any(c <= d for d in other) for other in others)]
    outputs = set(output_columns(program.query))
    for together in classes:
        if program.remembers_answer and not together & outputs:
            continue
        of = {source_of(program.query, column): column for column in together}
        if len(of) == len(program.sources) and len({c.type for c in together}) == 1:
            return of
    return None


def _equal(program: Program, branch: Branch) -> Iterator[set[Column]]:
    """The classes of columns that are equal in a branch; of a single stream, what is put out."""
    if len(program.sources) == 1:
        yield from ({column} for column in output_columns(program.query))
    yield from map(set, meeting([tie for tie in branch.ties if tie.operator == "="]))
