"""Conditions as predicates: what both parsers build, typed and normalised.

Raises ConditionError without a position; the parser that read the text knows where it was.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    Atom,
    Column,
    Compare,
    Constant,
    Matches,
    Not,
    Operator,
    Pattern,
    Predicate,
    Truth,
    Within,
    are_comparable,
    conjunction,
    disjunction,
    values_where,
)
from headgate.predicate.atoms import MIRROR, PatternKind
from headgate.predicate.comparison import interval_where, ordinals_equal
from headgate.predicate.simplification import negate_atom
from headgate.predicate.tree import ALL_TRUTHS
from headgate.schema import EVERYTHING, NOTHING, String, ValueSet
from headgate.sql.literals import Literal, article, constant

_REFLEXIVE: frozenset[Operator] = frozenset(("=", "<=", ">="))


class ConditionError(ValueError):
    """Two things that cannot be compared."""


def compare(column: Column, operator: Operator, literal: Literal, zone: str) -> Predicate:
    """`column operator literal`; a comparison with NULL is NULL."""
    value = constant(literal, column.type, zone)
    if value is None:
        return UNKNOWN
    return Within(column, values_where(column.type, operator, value))


def compare_columns(left: Column, operator: Operator, right: Column) -> Predicate:
    """`left operator right`, the lesser name first, so that `a < b` and `b > a` are one atom."""
    if not are_comparable(left.type, right.type):
        first, second = article(left.type.sql), article(right.type.sql)
        raise ConditionError(
            f"`{left.key}` is {first} and `{right.key}` {second}; they cannot be compared"
        )
    if left == right:
        return Within(left, EVERYTHING if operator in _REFLEXIVE else NOTHING)
    if right.key < left.key:
        return Compare(right, MIRROR[operator], left)
    return Compare(left, operator, right)


def within(column: Column, literals: Iterable[Literal], zone: str) -> Predicate:
    """`column IN (…)`; a NULL in the list turns every FALSE into NULL."""
    values = [constant(literal, column.type, zone) for literal in literals]
    known = [value for value in values if value is not None]
    points = (o for value in known for o in ordinals_equal(column.type, value))
    atom = Within(column, ValueSet.points(column.type, points))
    return disjunction((atom, UNKNOWN)) if None in values else atom


def between(column: Column, low: Literal, high: Literal, zone: str) -> Predicate:
    """`column BETWEEN low AND high`, both ends included."""
    first, last = constant(low, column.type, zone), constant(high, column.type, zone)
    if first is None or last is None:
        return conjunction((compare(column, ">=", low, zone), compare(column, "<=", high, zone)))
    above = interval_where(column.type, ">=", first)
    below = interval_where(column.type, "<=", last)
    return Within(column, ValueSet.of(above.intersection(below)))


def matches(column: Column, kind: PatternKind, text: str, escape: str = "\\") -> Predicate:
    """`column LIKE text`; a pattern without a meaning is refused now, not at the first event."""
    if not isinstance(column.type, String):
        raise ConditionError(f"{kind} needs a STRING; `{column.key}` is {article(column.type.sql)}")
    pattern = Pattern(kind, text, escape)
    _ = pattern.matcher
    return Matches(column, pattern)


def is_true(column: Column) -> Predicate:
    """A BOOLEAN column that stands as a condition."""
    return Within(column, values_where(column.type, "=", True))


def negation(predicate: Predicate) -> Predicate:
    """NOT, which an atom takes into itself: `NOT a IN (1, 2)` stays one atom."""
    if isinstance(predicate, Not):
        return predicate.part
    if isinstance(predicate, Truth):
        return Truth(predicate.part, ALL_TRUTHS - predicate.accepted)
    return negate_atom(predicate) if isinstance(predicate, Atom) else Not(predicate)


def truth(value: bool | None) -> Constant:
    """TRUE, FALSE or NULL as a predicate."""
    return UNKNOWN if value is None else TRUE if value else FALSE
