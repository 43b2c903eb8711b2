"""Conditions as predicates, typed and normalised: what the binder and the fast path build.

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
from headgate.predicate.atoms import MIRROR, PatternKind, SetForm
from headgate.predicate.comparison import interval_where, ordinals_equal
from headgate.predicate.simplification import negate_atom
from headgate.predicate.tree import ALL_TRUTHS
from headgate.schema import EVERYTHING, NOTHING, String, ValueSet
from headgate.sql.literals import Literal, add_article, evaluate_literal

OPERATORS: dict[str, Operator] = {
    "<": "<",
    "<=": "<=",
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    ">=": ">=",
    ">": ">",
}
FORMS: dict[str, SetForm] = {"=": "list", "IN": "list", "<>": "exclusion"}
_REFLEXIVE: frozenset[Operator] = frozenset(("=", "<=", ">="))


class ConditionError(ValueError):
    """Two things that cannot be compared."""


def build_comparison(column: Column, operator: Operator, literal: Literal, zone: str) -> Predicate:
    """Build `column operator literal`; a comparison with NULL is NULL."""
    value = evaluate_literal(literal, column.type, zone)
    if value is None:
        return UNKNOWN
    return Within(column, values_where(column.type, operator, value), FORMS.get(operator, "range"))


def build_column_comparison(left: Column, operator: Operator, right: Column) -> Predicate:
    """Build `left operator right`, the lesser name first: `a < b` and `b > a` are one atom."""
    if not are_comparable(left.type, right.type):
        first, second = add_article(left.type.sql), add_article(right.type.sql)
        raise ConditionError(
            f"`{left.key}` is {first} and `{right.key}` {second}; they cannot be compared"
        )
    if left == right:
        return Within(left, EVERYTHING if operator in _REFLEXIVE else NOTHING)
    if right.key < left.key:
        return Compare(right, MIRROR[operator], left)
    return Compare(left, operator, right)


def build_membership(column: Column, literals: Iterable[Literal], zone: str) -> Predicate:
    """Build `column IN (…)`; a NULL in the list turns every FALSE into NULL."""
    values = [evaluate_literal(literal, column.type, zone) for literal in literals]
    known = [value for value in values if value is not None]
    points = (o for value in known for o in ordinals_equal(column.type, value))
    atom = Within(column, ValueSet.points(column.type, points), "list")
    return disjunction((atom, UNKNOWN)) if None in values else atom


def build_between(column: Column, low: Literal, high: Literal, zone: str) -> Predicate:
    """Build `column BETWEEN low AND high`, both ends included."""
    first, last = (evaluate_literal(end, column.type, zone) for end in (low, high))
    # With NULL at one end the test can still be FALSE by the other, so both comparisons are kept.
    if first is None or last is None:
        return conjunction(
            (build_comparison(column, ">=", low, zone), build_comparison(column, "<=", high, zone))
        )
    above = interval_where(column.type, ">=", first)
    below = interval_where(column.type, "<=", last)
    return Within(column, ValueSet.of(above.intersection(below)))


def build_match(column: Column, kind: PatternKind, text: str, escape: str = "\\") -> Predicate:
    """Build `column LIKE text`; refuse a pattern without a meaning now, not at the first event."""
    if not isinstance(column.type, String):
        raise ConditionError(
            f"{kind} needs a STRING; `{column.key}` is {add_article(column.type.sql)}"
        )
    pattern = Pattern(kind, text, escape)
    # Compiled here for its errors only; the pattern keeps the matcher.
    _ = pattern.matcher
    return Matches(column, pattern)


def build_flag(column: Column) -> Predicate:
    """Build the condition that a BOOLEAN column is TRUE."""
    return Within(column, values_where(column.type, "=", True))


def negate(predicate: Predicate) -> Predicate:
    """Negate a predicate; an atom takes the NOT into itself: `NOT a IN (1, 2)` stays one atom."""
    if isinstance(predicate, Not):
        return predicate.part
    if isinstance(predicate, Truth):
        return Truth(predicate.part, ALL_TRUTHS - predicate.accepted)
    return negate_atom(predicate) if isinstance(predicate, Atom) else Not(predicate)


def build_constant(value: bool | None) -> Constant:
    """Build TRUE, FALSE or NULL."""
    return UNKNOWN if value is None else TRUE if value else FALSE
