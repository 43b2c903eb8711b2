"""The predicate without the order of its parts: equal for predicates that differ in no more."""

from __future__ import annotations

from collections.abc import Hashable

from headgate.predicate import And, Or, Predicate


def order_free_key(predicate: Predicate) -> Hashable:
    """Equal for `a AND b` and `b AND a`."""
    if isinstance(predicate, And | Or):
        kind = "AND" if isinstance(predicate, And) else "OR"
        return (kind, frozenset(order_free_key(part) for part in predicate.parts))
    return predicate
