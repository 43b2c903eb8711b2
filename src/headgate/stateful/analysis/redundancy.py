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
from headgate.stateful.analysis.case import Case, list_filters
from headgate.stateful.analysis.theory.relations import (
    Occurrences,
    compute_order,
    find_twins,
    keep_all,
    remove_covered,
)


def remove_redundant(query: Query, case: Case) -> Query | None:
    """Return the query, whose only case this is, without covered occurrences; None if none is.

    SELECT DISTINCT x.a FROM s AS x, s AS y WHERE x.a = 1 AND x.b = y.b
    ->  SELECT DISTINCT a FROM s WHERE a = 1 AND b = b
    """
    occurrences = remove_covered(compute_order(case.query), keep_all(case.query))
    if len(occurrences.sources) == len(query.sources) or not query.outputs:
        return None
    # By variable of an occurrence that is left out: the variable that stands for it.
    stands_for = _find_replacements(case, occurrences)
    is_single = len(occurrences.sources) == 1

    def rename(column: Column) -> Column:
        other = column
        if column in case.columns:
            number = case.columns.index(column)
            other = case.columns[stands_for.get(number, number)]
        return Column(other.name, other.type, "" if is_single else other.source)

    # An occurrence with filters that the case leaves out is never covered, so these are all kept.
    remaining_filters = (
        part for source in sorted(occurrences.sources) for part in list_filters(query, source)
    )
    outputs = [replace(o, expression=_rename_expression(o, rename)) for o in query.outputs]
    return replace(
        query,
        sources=tuple(s for number, s in enumerate(query.sources) if number in occurrences.sources),
        # The atoms of the only case replace the condition, under the names of what is left.
        where=conjunction(
            _rename_columns(part, rename) for part in (*case.atoms, *remaining_filters)
        ),
        outputs=tuple(outputs),
        group_by=tuple(rename(column) for column in query.group_by),
        origin=None,
    )


def _find_replacements(case: Case, occurrences: Occurrences) -> dict[int, int]:
    """Map every variable of an occurrence that is left out to the one that stands for it."""
    replacements: dict[int, int] = {}
    for covered, other in occurrences.covered_by:
        pairs = find_twins(case.query, covered, other) or {}
        # An occurrence that stood for another may be left out later: follow the chain to its end.
        replacements = {
            variable: pairs.get(stand_in, stand_in) for variable, stand_in in replacements.items()
        }
        replacements |= pairs
    return replacements


def _rename_expression(output: Output, rename: Callable[[Column], Column]) -> Column | Aggregate:
    expression = output.expression
    if isinstance(expression, Column):
        return rename(expression)
    return (
        expression
        if expression.argument is None
        else replace(expression, argument=rename(expression.argument))
    )


def _rename_columns(predicate: Predicate, rename: Callable[[Column], Column]) -> Predicate:
    """Return the predicate about other columns."""
    if isinstance(predicate, And | Or):
        return replace(predicate, parts=tuple(_rename_columns(p, rename) for p in predicate.parts))
    if isinstance(predicate, Not | Truth):
        return replace(predicate, part=_rename_columns(predicate.part, rename))
    if isinstance(predicate, Constant):
        return predicate
    if isinstance(predicate, Compare):
        return replace(predicate, left=rename(predicate.left), right=rename(predicate.right))
    return replace(predicate, column=rename(predicate.column))
