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


def to_monotone(predicate: Predicate, *, absorb: bool = True) -> Predicate:
    """Return a predicate of AND, OR and atoms that is TRUE for exactly the same rows.

    Without `absorb` it keeps every alternative as it was written (`simplify`).

    NOT COALESCE(a > 3, TRUE)  ->  a <= 3
    (a > 3) IS NULL            ->  a IS NULL
    a IS NOT NULL              ->  a within everything
    """
    return simplify(expand_truth_tests(predicate), only_true=True, absorb=absorb)


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
        return _accept_parts(predicate.parts, accepted, decisive=False)
    if isinstance(predicate, Or):
        return _accept_parts(predicate.parts, accepted, decisive=True)
    assert isinstance(predicate, Atom)
    # An atom has one truth value at a time: accept those in question one by one.
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


def _accept_parts(parts: tuple[Predicate, ...], accepted: Accepted, *, decisive: bool) -> Predicate:
    """Accept for an AND, for which one FALSE part is decisive, or for an OR, for which TRUE is."""
    # NULL: no part is decisive, and at least one is NULL.
    if accepted == ONLY_NULL:
        none_decisive = conjunction(_accept(part, ALL_TRUTHS - {decisive}) for part in parts)
        some_null = disjunction(_accept(part, ONLY_NULL) for part in parts)
        return conjunction((none_decisive, some_null))
    # {TRUE, FALSE}: either of them.
    if None not in accepted and len(accepted) == 2:
        each = (_accept_parts(parts, frozenset({t}), decisive=decisive) for t in accepted)
        return disjunction(each)
    # One accepted part is enough where the decisive value is accepted, with NULL or without; where
    # it is not accepted, no part may have it, so all parts must be accepted.
    combine = disjunction if decisive in accepted else conjunction
    return combine(_accept(part, accepted) for part in parts)


def _atom_with(atom: Atom, truth: bool | None) -> Predicate:
    """Return what is TRUE where the atom has this truth value."""
    if isinstance(atom, Constant):
        return Constant(atom.value is truth)
    if truth is None:
        if isinstance(atom, IsNull):
            return FALSE
        return disjunction(IsNull(column) for column in columns_of(atom))
    true_atom = atom if truth else negate_atom(atom)
    if isinstance(true_atom, IsNull) and true_atom.negated:
        return Within(true_atom.column, EVERYTHING)
    return true_atom
