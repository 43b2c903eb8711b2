"""A condition as alternatives: conjunctions of atoms of which at least one holds.

Two levels. The *coarse* one expands only what ties several streams together; a condition on one
stream is a filter, and is replaced by what all of its alternatives have in common. Dropping part of
a filter never makes an unbounded query look bounded, as long as no occurrence of the stream is left
out as redundant for it. The *fine* one expands everything: sets of values into intervals, `<>` into
`<` and `>`, and filters into their alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from headgate.errors import ExpansionTooLarge
from headgate.predicate import (
    And,
    Atom,
    Column,
    Compare,
    Constant,
    Operator,
    Or,
    Predicate,
    Within,
    collect_columns,
    disjunction,
    to_monotone,
)
from headgate.predicate.atoms import MIRROR
from headgate.predicate.normal_form import to_conjunctions
from headgate.schema import EVERYTHING, ValueSet, union
from headgate.stateful.analysis.lines import is_finite

MAX_COARSE_ALTERNATIVES = 64
MAX_FINE_ALTERNATIVES = 128
MAX_FILTER_ALTERNATIVES = 64
MAX_SPLIT_INTERVALS = 16

Alternative = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The alternatives, and whether they say all that the condition says.

    `filters` are conditions on one occurrence that are not in the alternatives.
    """

    each: tuple[Alternative, ...]
    exact: bool
    filters: tuple[Predicate, ...] = ()


def split_coarsely(where: Predicate) -> Alternatives:
    """Return alternatives by what ties streams together; raises ExpansionTooLarge past the cap."""
    filters: list[Alternative] = []
    ties: list[Predicate] = []
    exact = True
    left_out: list[Predicate] = []
    monotone = to_monotone(where)
    # Each part ties streams together, is one atom of a filter, or is a filter with alternatives,
    # of which only what they have in common is kept.
    for part in monotone.parts if isinstance(monotone, And) else (monotone,):
        if len({column.source for column in collect_columns(part)}) > 1:
            ties.append(split_inequalities(part))
        elif isinstance(part, Atom):
            filters.append((part,))
            exact &= not _is_split(part)
        else:
            filters.append(_find_common_atoms(part))
            exact = False
            left_out.append(part)
    # Only the ties are multiplied out. Merging then turns a tautology such as a < b OR a >= b back
    # into a filter.
    tied = (
        _merge_alternatives(to_conjunctions(And(tuple(ties)), MAX_COARSE_ALTERNATIVES))
        if ties
        else [()]
    )
    fixed = tuple(atom for alternative in filters for atom in alternative)
    return Alternatives(tuple((*fixed, *atoms) for atoms in tied), exact, tuple(left_out))


def split_finely(where: Predicate) -> Alternatives:
    """Return all alternatives; raises ExpansionTooLarge past the cap."""
    monotone = split_inequalities(to_monotone(where))
    alternatives: list[Alternative] = []
    exact = True
    for atoms in to_conjunctions(monotone, MAX_FINE_ALTERNATIVES):
        # For each atom of a conjunction the intervals to choose from; their product is counted
        # before it is built.
        choices = [tuple(_split_intervals(atom)) for atom in atoms]
        if len(alternatives) + prod(map(len, choices)) > MAX_FINE_ALTERNATIVES:
            raise ExpansionTooLarge(
                f"its condition has over {MAX_FINE_ALTERNATIVES:,} alternatives"
            )
        # A long list of values stays whole, and `exact` says so.
        exact &= not any(_is_split(atom) for choice in choices for atom in choice)
        alternatives.extend(product(*choices))
    return Alternatives(tuple(alternatives), exact)


_ORDERS: dict[Operator, str] = {
    "<": "<", "<=": "<=", "=": "=", ">=": "=>", ">": ">", "<>": "<>"
}  # fmt: skip


def _merge_alternatives(alternatives: Iterable[Alternative]) -> list[Alternative]:
    """Merge alternatives that differ in one comparison of the same columns.

    a < b OR a >= b  ->  a IS NOT NULL AND b IS NOT NULL
    a < b OR a = b   ->  a <= b
    """
    remaining = list(alternatives)
    while True:
        # After a merge start again, as the merged alternative may merge with another; each merge
        # removes one, so this ends.
        for first, second in combinations(remaining, 2):
            merged = _merge_atoms(
                [a for a in first if a not in second], [a for a in second if a not in first]
            )
            if merged is not None:
                common = [atom for atom in first if atom in second]
                others = [each for each in remaining if each not in (first, second)]
                remaining = [*others, (*common, *merged)]
                break
        else:
            return remaining


def _merge_atoms(firsts: list[Atom], seconds: list[Atom]) -> Alternative | None:
    """Return the union of two alternatives' own atoms; None unless each is one comparison."""
    if len(firsts) != 1 or len(seconds) != 1:
        return None
    first, second = firsts[0], seconds[0]
    if not isinstance(first, Compare) or not isinstance(second, Compare):
        return None
    if (second.left, second.right) == (first.right, first.left):
        second = Compare(first.left, MIRROR[second.operator], first.right)
    if (first.left, first.right) != (second.left, second.right):
        return None
    # The union as a set of "<", "=" and ">": all three leave only that neither side is NULL.
    orders = set(_ORDERS[first.operator]) | set(_ORDERS[second.operator])
    if len(orders) == 3:
        return Within(first.left, EVERYTHING), Within(first.right, EVERYTHING)
    # "<>" would be split again, so it is not merged into.
    for operator, covered in _ORDERS.items():
        if orders == set(covered) and operator != "<>":
            return (Compare(first.left, operator, first.right),)
    return None


def _is_split(atom: Atom) -> bool:
    """Return whether an atom is more than one alternative."""
    if isinstance(atom, Within):
        return atom.values.only_interval is None
    return isinstance(atom, Compare) and atom.operator == "<>"


def split_inequalities(predicate: Predicate) -> Predicate:
    """Return the same with `a <> b` as `a < b OR a > b`."""
    if isinstance(predicate, And):
        return And(tuple(split_inequalities(part) for part in predicate.parts))
    if isinstance(predicate, Or):
        return disjunction(split_inequalities(part) for part in predicate.parts)
    if isinstance(predicate, Compare) and predicate.operator == "<>":
        left, right = predicate.left, predicate.right
        return Or((Compare(left, "<", right), Compare(left, ">", right)))
    return predicate


def _split_intervals(atom: Atom) -> Iterator[Atom]:
    """Yield the intervals of a set; a long list of values is left as it is."""
    if not isinstance(atom, Within) or not _is_split(atom):
        yield atom
        return
    intervals = atom.values.intervals
    if len(intervals) > MAX_SPLIT_INTERVALS and is_finite(atom.values, atom.column.type):
        yield atom
        return
    yield from (Within(atom.column, ValueSet.of(interval)) for interval in intervals)


def _find_common_atoms(part: Predicate) -> Alternative:
    """Return atoms that hold in every alternative of a filter; none where it has too many."""
    try:
        alternatives = to_conjunctions(part, MAX_FILTER_ALTERNATIVES)
    except ExpansionTooLarge:
        return ()
    if not alternatives:
        # No alternative is left: the filter is never TRUE.
        return (Constant(False),)
    # By alternative, column -> values. A column that all of them limit is limited to the union.
    sets = [{a.column: a.values for a in atoms if isinstance(a, Within)} for atoms in alternatives]
    shared: Iterable[Column] = [c for c in sets[0] if all(c in other for other in sets)]
    widened = [Within(column, union(each[column] for each in sets)) for column in shared]
    others = [a for a in alternatives[0] if not isinstance(a, Within)]
    return (*widened, *(a for a in others if all(a in atoms for atoms in alternatives)))
