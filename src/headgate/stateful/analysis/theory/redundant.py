"""Occurrences of a stream that another occurrence makes superfluous under DISTINCT.

"Characterizing Memory Requirements …", Definition 8.2. If every comparison of an occurrence holds
of another occurrence of the same stream too, then a row that stands for the other may stand for
both. What is left has the same closure, restricted to its elements. An occurrence with conditions
that the conjunctive query does not show is never covered.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from headgate.stateful.analysis.theory.relations import Order, bits, union


@dataclass(frozen=True, slots=True)
class Occurrences:
    """What is left of a query: its occurrences, and its outputs in terms of them.

    `covered_by` has those that are left out, in that order, each with the one that covers it.
    """

    sources: frozenset[int]
    outputs: tuple[int, ...]
    covered_by: tuple[tuple[int, int], ...] = ()

    def elements(self, order: Order) -> int:
        """Return the constants, and the variables of the occurrences that are left."""
        constants = union(1 << c for chain in order.elements.of_line for c in chain)
        return constants | union(order.elements.of_source[source] for source in self.sources)


def keep_all(query: Conjunctive) -> Occurrences:
    """Return all occurrences of a query, none left out."""
    return Occurrences(frozenset(range(len(query.streams))), query.outputs)


def remove_covered(order: Order, kept: Occurrences) -> Occurrences:
    """Leave out one covered occurrence after another, until none is."""
    for covered in sorted(kept.sources - order.elements.query.filtered):
        # After each removal start again: an occurrence may be covered only by what was left.
        for other in sorted(kept.sources - {covered}):
            pairs = find_twins(order.elements.query, covered, other)
            if pairs is not None and _covers(order, kept, covered, pairs):
                outputs = tuple(pairs.get(output, output) for output in kept.outputs)
                covered_by = (*kept.covered_by, (covered, other))
                left = Occurrences(kept.sources - {covered}, outputs, covered_by)
                return remove_covered(order, left)
    return kept


def find_twins(query: Conjunctive, covered: int, other: int) -> dict[int, int] | None:
    """Pair the variables of an occurrence with those of the same name in another one.

    A window holds other rows than the stream, and than another window: neither covers the other.
    """
    if query.streams[covered] != query.streams[other] or {covered, other} & query.windowed:
        return None
    named = {query.variables[v].name: v for v in query.variables_of(other)}
    own = {v: query.variables[v].name for v in query.variables_of(covered)}
    return {v: named[name] for v, name in own.items() if name in named}


def _covers(order: Order, kept: Occurrences, covered: int, pairs: dict[int, int]) -> bool:
    """Tell whether all that holds of an occurrence's variables holds of their twins as well."""
    own = order.elements.of_source[covered]
    left = kept.elements(order)
    # Each holds one row of bits per element: <=, >=, < and >.
    relations = (order.at_most, order.at_least, order.below, _reverse_rows(order.below))
    for variable in bits(own):
        itself = 1 << variable
        related = (order.at_most[variable] | order.at_least[variable]) & left
        twin = pairs.get(variable)
        # A variable without a twin must not be asked for: related to itself alone, and not put
        # out.
        if twin is None:
            if related != itself or variable in kept.outputs:
                return False
            continue
        for rows in relations:
            # What holds towards others must hold of the twin as it is; what holds among the
            # occurrence's own variables must hold among their twins.
            theirs = rows[variable] & left & ~own
            inner = union(1 << pairs[v] for v in bits(rows[variable] & own) if v in pairs)
            if (theirs | inner) & ~rows[twin]:
                return False
        # The output must not change when the twin's row stands for both.
        if variable in kept.outputs and not order.same(variable) >> twin & 1:
            return False
    return True


def _reverse_rows(below: list[int]) -> list[int]:
    return [
        union(1 << low for low, row in enumerate(below) if row >> element & 1)
        for element in range(len(below))
    ]
