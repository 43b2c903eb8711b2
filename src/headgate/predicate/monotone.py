"""The rows for which a predicate is TRUE, as AND and OR over atoms only.

A query matches where its predicate is TRUE, so the difference between FALSE and NULL can be spent:
NOT goes to the atoms, and `IS TRUE`, `IS NULL`, `COALESCE` of a condition become conditions. What
remains is monotone: it is TRUE as soon as enough of its atoms are TRUE. All indexes start here.
"""

from __future__ import annotations

from headgate.predicate.atoms import Atom, Constant, IsNull, Within
from headgate.predicate.simplification import negate_atom, push_negations, simplify
from headgate.predicate.tree import (
    ALL_TRUTHS,
    FALSE,
    TRUE,
    Accepted,
    And,
    Or,
    Predicate,
    Truth,
    columns_of,
    conjunction,
    disjunction,
)
from headgate.schema import EVERYTHING

ONLY_TRUE: Accepted = frozenset({True})
ONLY_NULL: Accepted = frozenset({None})


def to_monotone(predicate: Predicate) -> Predicate:
    """Return a predicate of AND, OR and atoms that is TRUE for exactly the same rows.

    NOT COALESCE(a > 3, TRUE)  ->  a <= 3
    (a > 3) IS NULL            ->  a IS NULL
    a IS NOT NULL              ->  a within everything
    """
    return simplify(expand_truth_tests(predicate), only_true=True)


def expand_truth_tests(predicate: Predicate) -> Predicate:
    """Return the monotone form unsimplified: contradictions stand as they were written."""
    return _accept(push_negations(predicate), ONLY_TRUE)


def _accept(predicate: Predicate, accepted: Accepted) -> Predicate:
    """Return what is TRUE where the truth value is accepted; it grows at most by its depth."""
    if not accepted or accepted == ALL_TRUTHS:
        return TRUE if accepted else FALSE
    if isinstance(predicate, Truth):
        return _accept_test(predicate, accepted)
    if isinstance(predicate, And):
        return _accept_parts(predicate.parts, accepted, weakest=False)
    if isinstance(predicate, Or):
        return _accept_parts(predicate.parts, accepted, weakest=True)
    assert isinstance(predicate, Atom)
    truths = [truth for truth in (True, False, None) if truth in accepted]
    return disjunction(_atom_with(predicate, truth) for truth in truths)


def _accept_test(test: Truth, accepted: Accepted) -> Predicate:
    """Return what accepts a truth test, which is never NULL and so can be seen through."""
    inner: Accepted = frozenset()
    if True in accepted:
        inner |= test.accepted
    if False in accepted:
        inner |= ALL_TRUTHS - test.accepted
    return _accept(test.part, inner)


def _accept_parts(parts: tuple[Predicate, ...], accepted: Accepted, *, weakest: bool) -> Predicate:
    """Accept for an AND, which FALSE decides, or for its mirror OR (`weakest`)."""
    winner = weakest  # the value that decides alone: FALSE for AND, TRUE for OR
    if accepted == frozenset({winner}):
        return disjunction(_accept(part, accepted) for part in parts)
    if accepted == frozenset({not winner}) or accepted == frozenset({not winner, None}):
        return conjunction(_accept(part, accepted) for part in parts)
    if accepted == frozenset({winner, None}):
        return disjunction(_accept(part, accepted) for part in parts)
    # NULL: no part decides alone, and at least one is NULL.
    if accepted == ONLY_NULL:
        no_winner = conjunction(_accept(part, ALL_TRUTHS - {winner}) for part in parts)
        some_null = disjunction(_accept(part, ONLY_NULL) for part in parts)
        return conjunction((no_winner, some_null))
    # What is left is {TRUE, FALSE}: either of them.
    return disjunction(_accept_parts(parts, frozenset({t}), weakest=weakest) for t in accepted)


def _atom_with(atom: Atom, truth: bool | None) -> Predicate:
    """Return what is TRUE where the atom has this truth value."""
    if isinstance(atom, Constant):
        return Constant(atom.value is truth)
    if truth is None:
        if isinstance(atom, IsNull):
            return FALSE
        return disjunction(IsNull(column) for column in columns_of(atom))
    held = atom if truth else negate_atom(atom)
    if isinstance(held, IsNull) and held.negated:
        return Within(held.column, EVERYTHING)
    return held
