"""A DISTINCT query without occurrences of a stream that others make superfluous.

"Characterizing Memory Requirements …", Definition 8.2 and what follows it: where an occurrence is
covered by another one of the same stream, the other may stand for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headgate.bounded.cases.case import Case
from headgate.bounded.theory.redundant import Kept, all_kept, twins, without_redundant
from headgate.bounded.theory.relations import closed
from headgate.predicate import Atom, Column, Compare, Constant, conjunction
from headgate.query import Output, Query


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
        number = case.columns.index(column)
        other = case.columns[stands_for.get(number, number)]
        return Column(other.name, other.type, "" if alone else other.source)

    outputs = [replace(output, expression=_column(output, renamed)) for output in query.outputs]
    return replace(
        query,
        sources=tuple(s for number, s in enumerate(query.sources) if number in kept.sources),
        where=conjunction(_atom(atom, renamed) for atom in case.atoms),
        outputs=tuple(outputs),
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


def _column(output: Output, renamed: Callable[[Column], Column]) -> Column:
    assert isinstance(output.expression, Column)
    return renamed(output.expression)


def _atom(atom: Atom, renamed: Callable[[Column], Column]) -> Atom:
    if isinstance(atom, Constant):
        return atom
    if isinstance(atom, Compare):
        return replace(atom, left=renamed(atom.left), right=renamed(atom.right))
    return replace(atom, column=renamed(atom.column))
