"""Which rows of a stream can take part at all, attribute by attribute.

What the whole condition leaves to each attribute is known beforehand. Whoever can skip other rows
cheaply may: they would be dropped anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.schema import EVERYTHING, NOTHING, ValueSet, union
from headgate.stateful.analysis.synopses.branches import source_of
from headgate.stateful.analysis.synopses.plan import Plan


@dataclass(frozen=True, slots=True)
class Needed:
    """The values of an attribute in rows that can take part, and whether it may be NULL there."""

    values: ValueSet
    null: bool


def needed(plan: Plan, source: int) -> dict[str, Needed]:
    """What each attribute of an occurrence must be; nothing is said of the others.

    No row can take part in a query without branches; that is not said either.
    """
    compared = [c for branch in plan.branches for c in branch.reach]
    found = {}
    for column in dict.fromkeys(compared):
        if source_of(plan.query, column) == source:
            values = union(
                branch.reach.get(column, EVERYTHING) if branch.accepts_values(column) else NOTHING
                for branch in plan.branches
            )
            null = any(branch.accepts_null(column) for branch in plan.branches)
            found[column.name] = Needed(values, null)
    return found
