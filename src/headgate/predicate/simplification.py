"""Simplification that never changes a truth value, NULL included.

The laws, for truth values ordered FALSE < NULL < TRUE:

    a > 3 AND a > 5                ->  a > 5             sets of one attribute intersect
    a < 3 OR a >= 3                ->  a within everything (NULL where a is NULL)
    p AND (p OR q)                 ->  p                 absorption; also where p is below a part
    a > 5 AND (a > 3 OR q)         ->  a > 5
    p AND FALSE                    ->  FALSE
    NOT (p AND q)                  ->  NOT p OR NOT q
    (a IS NULL) IS NULL            ->  FALSE             a test of what is never NULL

With `only_true` the result may also turn NULL into FALSE, for predicates where only TRUE matters:

    a > 3 AND a < 2                ->  FALSE
    a IS NULL AND a > 3            ->  FALSE

Without `absorb` every alternative stays, for those who look at the predicates of each: neither is a
part absorbed by another, nor is `p OR TRUE` just TRUE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headgate.predicate.atoms import (
    OPPOSITE,
    OPPOSITE_FORM,
    Atom,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Within,
)
from headgate.predicate.evaluation import negate_truth
from headgate.predicate.tree import (
    ALL_TRUTHS,
    FALSE,
    TRUE,
    And,
    Not,
    Or,
    Predicate,
    Truth,
    conjunction,
    disjunction,
)
from headgate.schema import EVERYTHING, NOTHING, ValueSet, intersection, union


def simplify(predicate: Predicate, *, only_true: bool = False, absorb: bool = True) -> Predicate:
    """Return an equivalent predicate without NOT, as small as the laws above make it."""
    return _simplify(push_negations(predicate), only_true, absorb)


def _simplify(predicate: Predicate, only_true: bool, absorb: bool) -> Predicate:
    if isinstance(predicate, And):
        return _simplify_and(predicate, only_true, absorb)
    if isinstance(predicate, Or):
        return _simplify_or(predicate, only_true, absorb)
    if isinstance(predicate, Truth):
        # A truth test tells NULL from FALSE, so below it no truth value may change.
        return _simplify_test(Truth(_simplify(predicate.part, False, absorb), predicate.accepted))
    if isinstance(predicate, Compare) and predicate.left == predicate.right:
        # A column compared with itself is TRUE or FALSE where it has a value, and NULL elsewhere.
        holds = predicate.operator in ("=", "<=", ">=")
        values = EVERYTHING if holds else NOTHING
        return _simplify(Within(predicate.left, values), only_true, absorb)
    if only_true and isinstance(predicate, Within) and predicate.values.is_empty:
        return FALSE
    if only_true and predicate == Constant(None):
        return FALSE
    return predicate


def _simplify_and(predicate: And, only_true: bool, absorb: bool) -> Predicate:
    simple = conjunction(_simplify(part, only_true, absorb) for part in predicate.parts)
    # Sets of one column first: they may become empty, or absorb other parts.
    parts = _merge_sets(_parts_of(simple, And), intersection)
    parts = [part for part in parts if part != TRUE]
    if FALSE in parts or (only_true and _is_contradictory(parts)):
        return FALSE
    return conjunction(_absorb(parts, Or, is_below) if absorb else parts)


def _simplify_or(predicate: Or, only_true: bool, absorb: bool) -> Predicate:
    simple = disjunction(_simplify(part, only_true, absorb) for part in predicate.parts)
    parts = _merge_sets(_parts_of(simple, Or), union)
    parts = [part for part in parts if part != FALSE]
    if not absorb:
        return disjunction(parts)
    if TRUE in parts or (only_true and _is_exhaustive(parts)):
        return TRUE
    return disjunction(_absorb(parts, And, lambda weak, strong: is_below(strong, weak)))


def _simplify_test(test: Truth) -> Predicate:
    part, accepted = test.part, test.accepted
    if isinstance(part, Constant):
        return TRUE if part.value in accepted else FALSE
    if isinstance(part, IsNull | Truth):
        # The part is never NULL, so whether NULL is accepted does not matter.
        accepted = accepted - {None}
        if accepted == {True}:
            return part
        if accepted == {False}:
            return negate(part)
        return TRUE if accepted else FALSE
    return test


def _parts_of(predicate: Predicate, kind: type[And] | type[Or]) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, kind) else (predicate,)


def _merge_sets(
    parts: Iterable[Predicate], combine: Callable[[Iterable[ValueSet]], ValueSet]
) -> list[Predicate]:
    """Return each column's sets combined into one, where the first of them stood; no part twice."""
    # By column its sets; `places` keeps the order in which columns and other parts first occur.
    sets: dict[Column, list[ValueSet]] = {}
    places: dict[Predicate | Column, Predicate] = {}
    for part in parts:
        if isinstance(part, Within):
            sets.setdefault(part.column, []).append(part.values)
            places[part.column] = part
        else:
            places[part] = part
    for column, values in sets.items():
        if len(values) > 1:
            places[column] = Within(column, combine(values))
    return list(places.values())


def _absorb(
    parts: list[Predicate],
    kind: type[And] | type[Or],
    absorbs: Callable[[Predicate, Predicate], bool],
) -> list[Predicate]:
    """Leave out every composite part of which one member is absorbed by another part."""
    composite = [part for part in parts if isinstance(part, kind)]
    if not composite:
        return parts
    # `p AND (p OR q)` is p: the composite part goes as soon as one of its members is a simple part,
    # or a set of values that a simple part implies.
    simple = [part for part in parts if not isinstance(part, kind)]
    known = set(simple)
    # By column the one set that `_merge_sets` left among the simple parts.
    sets = {part.column: part for part in simple if isinstance(part, Within)}

    def is_absorbed(part: Predicate) -> bool:
        return isinstance(part, kind) and any(
            member in known
            or (
                isinstance(member, Within)
                and member.column in sets
                and absorbs(sets[member.column], member)
            )
            for member in part.parts
        )

    return [part for part in parts if not is_absorbed(part)]


def is_below(strong: Predicate, weak: Predicate) -> bool:
    """Return whether `strong` is known never to be above `weak`: for sets of one column."""
    if strong == weak:
        return True
    return (
        isinstance(strong, Within)
        and isinstance(weak, Within)
        and strong.column == weak.column
        and weak.values.covers(strong.values)
    )


def _is_contradictory(parts: list[Predicate]) -> bool:
    """Return whether the parts have `a IS NULL` and a set of a, or an empty set."""
    within = {part.column for part in parts if isinstance(part, Within)}
    empty = any(isinstance(part, Within) and part.values.is_empty for part in parts)
    return empty or any(
        isinstance(part, IsNull) and not part.negated and part.column in within for part in parts
    )


def _is_exhaustive(parts: list[Predicate]) -> bool:
    """Return whether the parts have `a IS NULL` and all values of a."""
    full = {part.column for part in parts if isinstance(part, Within) and part.values.is_everything}
    return any(
        isinstance(part, IsNull) and not part.negated and part.column in full for part in parts
    )


def push_negations(predicate: Predicate) -> Predicate:
    """Return the same predicate without NOT.

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
    """Return NOT of the predicate, without a NOT in it."""
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
    """Return NOT of an atom, which is an atom: `a >= 3` for `a < 3`, both NULL with a."""
    if isinstance(atom, Constant):
        return Constant(negate_truth(atom.value))
    if isinstance(atom, Within):
        return Within(atom.column, atom.values.complement(), OPPOSITE_FORM[atom.form])
    if isinstance(atom, IsNull):
        return IsNull(atom.column, not atom.negated)
    if isinstance(atom, Compare):
        return Compare(atom.left, OPPOSITE[atom.operator], atom.right)
    return Matches(atom.column, atom.pattern, not atom.negated)
