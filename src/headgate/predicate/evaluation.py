"""The truth of a predicate for one row, in SQL's three values: True, False and None.

This is the obvious version: one row at a time, straight from the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.predicate.atoms import Atom, Compare, Constant, IsNull, Matches, Within
from headgate.predicate.comparison import OPERATOR_TESTS, compare_values, zone_of
from headgate.predicate.tree import And, Not, Or, Predicate, Truth
from headgate.schema import Value

Row = Mapping[str, Value | None]


def evaluate(predicate: Predicate, row: Row) -> bool | None:
    """Return True, False or None for NULL; an attribute that the row lacks is NULL.

    >>> from headgate.predicate.atoms import Column, Within
    >>> from headgate.schema import INT, Interval, ValueSet
    >>> small = Within(Column("a", INT), ValueSet.of(Interval(None, 5)))
    >>> [evaluate(small, {"a": value}) for value in (4, 5, None)]
    [True, False, None]
    """
    if isinstance(predicate, And):
        return all_of(evaluate(part, row) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any_of(evaluate(part, row) for part in predicate.parts)
    if isinstance(predicate, Not):
        return negate_truth(evaluate(predicate.part, row))
    if isinstance(predicate, Truth):
        return evaluate(predicate.part, row) in predicate.accepted
    return evaluate_atom(predicate, row)


def evaluate_atom(atom: Atom, row: Row) -> bool | None:
    """Return the truth of a single atom."""
    if isinstance(atom, Constant):
        return atom.value
    if isinstance(atom, Compare):
        left, right = row.get(atom.left.key), row.get(atom.right.key)
        # A comparison with NULL is NULL.
        if left is None or right is None:
            return None
        zone = zone_of(atom.left.type, atom.right.type)
        return OPERATOR_TESTS[atom.operator](compare_values(left, right, zone), 0)
    # All other atoms are about one column, and only IS NULL has an answer for NULL.
    value = row.get(atom.column.key)
    if isinstance(atom, IsNull):
        return (value is None) != atom.negated
    if value is None:
        return None
    if isinstance(atom, Within):
        return atom.column.type.ordinal(value) in atom.values
    assert isinstance(atom, Matches)
    assert isinstance(value, str)
    return atom.pattern.matcher.matches(value) != atom.negated


def all_of(truths: Iterable[bool | None]) -> bool | None:
    """Return the AND of truth values: FALSE wins, then NULL."""
    result: bool | None = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def any_of(truths: Iterable[bool | None]) -> bool | None:
    """Return the OR of truth values: TRUE wins, then NULL."""
    return negate_truth(all_of(negate_truth(truth) for truth in truths))


def negate_truth(truth: bool | None) -> bool | None:
    """Return the NOT of a truth value: NULL stays NULL."""
    return None if truth is None else not truth
