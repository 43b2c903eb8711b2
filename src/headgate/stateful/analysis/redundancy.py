"""A DISTINCT query without occurrences of a stream that others make superfluous.

"Characterizing Memory Requirements …", Definition 8.2 and what follows it: where an occurrence is
covered by another one of the same stream, the other may stand for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headgate.predicate import (
    And,
    Column,
    Compare,
    Constant,
    Not,
    Or,
    Predicate,
    Truth,
    conjunction,
)
from headgate.queries import Aggregate, Output, Query
from headgate.stateful.analysis.cases.case import Case, filters
from headgate.stateful.analysis.theory.redundant import Kept, all_kept, twins, without_redundant
from headgate.stateful.analysis.theory.relations import closed


def lean(query: Query, case: Case) -> Query | None:
    """The query, whose only case this is, with covered occurrences replaced; None where none is.

    SELECT DISTINCT x.a FROM s AS x, s AS y WHERE x.a = 1 AND x.b = y.b
    ->  SELECT DISTINCT a FROM s WHERE a = 1 AND b = b
    """
    kept = without_redundant(closed(case.query), all_kept(case.query))
    if len(kept.sources) == len(query.sources) or not query.outputs:
        return None
    stands_for = _standing(case, kept)
    alone = len(kept.sources) == 1

    def renamed(column: Column) -> Column:
        other = column
        if column in case.columns:
            number = case.columns.index(column)
            other = case.columns[stands_for.get(number, number)]
        return Column(other.name, other.type, "" if alone else other.source)

    # an occurrence with filters that the case leaves out is never covered
    beside = (part for source in sorted(kept.sources) for part in filters(query, source))
    outputs = [replace(o, expression=_expression(o, renamed)) for o in query.outputs]
    return replace(
        query,
        sources=tuple(s for number, s in enumerate(query.sources) if number in kept.sources),
        where=conjunction(_renamed(part, renamed) for part in (*case.atoms, *beside)),
        outputs=tuple(outputs),
        group_by=tuple(renamed(column) for column in query.group_by),
        origin=None,
    )


def _standing(case: Case, kept: Kept) -> dict[int, int]:
    """For every variable of an occurrence that is left out, the one that stands for it."""
    found: dict[int, int] = {}
    for covered, other in kept.covered_by:
        pairs = twins(case.query, covered, other) or {}
        found = {variable: pairs.get(stand_in, stand_in) for variable, stand_in in found.items()}
        found |= pairs
    return found


def _expression(output: Output, renamed: Callable[[Column], Column]) -> Column | Aggregate:
    found = output.expression
    if isinstance(found, Column):
        return renamed(found)
    return found if found.argument is None else replace(found, argument=renamed(found.argument))


def _renamed(predicate: Predicate, renamed: Callable[[Column], Column]) -> Predicate:
    """The predicate about other columns."""
    if isinstance(predicate, And | Or):
        return replace(predicate, parts=tuple(_renamed(p, renamed) for p in predicate.parts))
    if isinstance(predicate, Not | Truth):
        return replace(predicate, part=_renamed(predicate.part, renamed))
    if isinstance(predicate, Constant):
        return predicate
    if isinstance(predicate, Compare):
        return replace(predicate, left=renamed(predicate.left), right=renamed(predicate.right))
    return replace(predicate, column=renamed(predicate.column))
