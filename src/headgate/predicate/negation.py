"""Negation pushed down to the atoms; AND and OR swap, and NULL stays NULL."""

from __future__ import annotations

from headgate.predicate.atoms import OPPOSITE, Atom, Compare, Constant, IsNull, Matches, Within
from headgate.predicate.evaluate import negate_truth
from headgate.predicate.tree import (
    ALL_TRUTHS,
    And,
    Not,
    Or,
    Predicate,
    Truth,
    conjunction,
    disjunction,
)


def push_negations(predicate: Predicate) -> Predicate:
    """The same predicate without NOT.

    NOT (a < 3 OR b IS NULL)  ->  a >= 3 AND b IS NOT NULL
    """
    if isinstance(predicate, And):
        return conjunction(push_negations(part) for part in predicate.parts)
    if isinstance(predicate, Or):
        return disjunction(push_negations(part) for part in predicate.parts)
    if isinstance(predicate, Truth):
        return Truth(push_negations(predicate.part), predicate.accepted)
    return negate(predicate.part) if isinstance(predicate, Not) else predicate


def negate(predicate: Predicate) -> Predicate:
    """NOT of the predicate, without a NOT in it."""
    if isinstance(predicate, And):
        return disjunction(negate(part) for part in predicate.parts)
    if isinstance(predicate, Or):
        return conjunction(negate(part) for part in predicate.parts)
    if isinstance(predicate, Not):
        return push_negations(predicate.part)
    if isinstance(predicate, Truth):
        return Truth(push_negations(predicate.part), ALL_TRUTHS - predicate.accepted)
    return negate_atom(predicate)


def negate_atom(atom: Atom) -> Atom:
    """NOT of an atom is an atom: `a < 3` becomes `a >= 3`, both NULL where a is NULL."""
    if isinstance(atom, Constant):
        return Constant(negate_truth(atom.value))
    if isinstance(atom, Within):
        return Within(atom.column, atom.values.complement())
    if isinstance(atom, IsNull):
        return IsNull(atom.column, not atom.negated)
    if isinstance(atom, Compare):
        return Compare(atom.left, OPPOSITE[atom.operator], atom.right)
    return Matches(atom.column, atom.pattern, not atom.negated)
