"""Conditions that no box expresses become columns of their own.

A pattern becomes a BOOLEAN column that says whether it matches, and a comparison of two columns one
that says whether the first is below (-1), equal to (0) or above (1) the second. Both are NULL where
a column that they mention is. What is left of a predicate are sets of values and IS NULL.

A LIKE that is a text or a prefix needs no such column: it is a range of texts.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.predicate import (
    And,
    Column,
    Compare,
    Matches,
    Or,
    Predicate,
    Within,
    conjunction,
    disjunction,
    values_where,
)
from headgate.predicate.atoms import MIRROR, Atom, Operator
from headgate.predicate.narrowing import prefix_range
from headgate.schema import BOOLEAN, INT, ValueSet

Condition = Matches | Compare
Conditions = dict[Column, Condition]  # the condition that a column stands for: TRUE, or `=`

ORDER, PATTERN = "\0order", "\0pattern"  # as sources: no stream is called so
SIGNS: tuple[tuple[int, Operator], ...] = ((-1, "<"), (0, "="), (1, ">"))


def replace_conditions(predicate: Predicate, conditions: Conditions) -> Predicate:
    """Return the same predicate over sets of values and IS NULL only; adds to `conditions`.

    It takes the form that `to_monotone` gives: AND and OR over atoms, of which only TRUE matters.
    """
    if isinstance(predicate, And):
        return conjunction(replace_conditions(part, conditions) for part in predicate.parts)
    if isinstance(predicate, Or):
        return disjunction(replace_conditions(part, conditions) for part in predicate.parts)
    assert isinstance(predicate, Atom)
    if isinstance(predicate, Matches):
        return _replace_pattern(predicate, conditions)
    return (
        _replace_comparison(predicate, conditions) if isinstance(predicate, Compare) else predicate
    )


def _replace_pattern(atom: Matches, conditions: Conditions) -> Within:
    texts, is_all = prefix_range(atom.pattern)
    if is_all:
        return Within(atom.column, texts.complement() if atom.negated else texts)
    # Named by what it stands for, so that equal patterns share a column.
    column = Column(repr((atom.column.key, atom.pattern)), BOOLEAN, PATTERN)
    conditions[column] = replace(atom, negated=False)
    return Within(column, ValueSet.points(BOOLEAN, [int(not atom.negated)]))


def _replace_comparison(atom: Compare, conditions: Conditions) -> Within:
    left, operator, right = atom.left, atom.operator, atom.right
    # `a < b` and `b > a` must become the same column.
    if right.key < left.key:
        left, operator, right = right, MIRROR[operator], left
    column = Column(repr((left.key, right.key)), INT, ORDER)
    conditions[column] = Compare(left, "=", right)
    return Within(column, values_where(INT, operator, 0))


def restore_condition(column: Column, values: ValueSet, conditions: Conditions) -> Predicate:
    """Return the condition that holds where the column standing for it has these values."""
    condition = conditions[column]
    if isinstance(condition, Matches):
        return disjunction(
            replace(condition, negated=not truth) for truth in (False, True) if int(truth) in values
        )
    return disjunction(
        replace(condition, operator=operator) for sign, operator in SIGNS if sign in values
    )
