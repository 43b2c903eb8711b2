"""The set of values that a CHECK leaves to an attribute."""

from __future__ import annotations

from headgate.predicate import (
    FALSE,
    TRUE,
    Constant,
    IsNull,
    Predicate,
    Within,
    conjunction,
    disjunction,
    simplify,
    to_monotone,
)
from headgate.predicate.tree import And, Or
from headgate.schema import EVERYTHING, NOTHING, ValueSet


def domain_of(check: Predicate) -> ValueSet | None:
    """The non-NULL values for which a condition on one attribute is TRUE; None if no set says it.

    NULL passes every CHECK, so only values count: `a > 0 OR a IS NULL` allows what `a > 0` does.
    """
    held = simplify(_without_null(to_monotone(check)), only_true=True)
    if isinstance(held, Within):
        return held.values
    if isinstance(held, Constant):
        return EVERYTHING if held.value else NOTHING
    return None


def _without_null(held: Predicate) -> Predicate:
    if isinstance(held, And):
        return conjunction(_without_null(part) for part in held.parts)
    if isinstance(held, Or):
        return disjunction(_without_null(part) for part in held.parts)
    if isinstance(held, IsNull):
        return TRUE if held.negated else FALSE
    return held
