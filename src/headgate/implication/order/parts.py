"""A query as a union of products, as far as that goes.

Of each conjunction two hulls are kept. The outer one contains its rows: what it contains of columns
and patterns may be used against it. The inner one, where there is one, contains nothing else. So a
query lies inside another if each of its outer hulls lies inside an inner one of the other. Patterns
and comparisons of columns are columns of their own (`headgate.implication.conditions`), and every
inner hull speaks of them instead of the columns that they mention.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge
from headgate.implication.conditions import Conditions, with_columns
from headgate.implication.order.hull import Hull, hull
from headgate.predicate import Column, Predicate, conjunction
from headgate.predicate.conjunctions import conjunctions
from headgate.schema import Attribute

MOST_PARTS = 32


@dataclass(frozen=True, slots=True)
class Part:
    """The hull of a conjunction in the columns of the stream, and its outer and inner hull."""

    plain: Hull
    outer: Hull
    inner: Hull | None


def parts(held: Predicate, attributes: dict[Column, Attribute]) -> list[Part]:
    """Conjunctions whose union is the predicate; one, which is all of it, where they are too many.

    Adds to `attributes` the columns that stand for conditions.
    """
    try:
        found = [conjunction(atoms) for atoms in conjunctions(held, MOST_PARTS)]
    except ExpansionTooLarge:
        found = [held]
    return [part for one in found if (part := _part(one, attributes)) is not None]


def _part(held: Predicate, attributes: dict[Column, Attribute]) -> Part | None:
    plain = hull(held, attributes)
    conditions: Conditions = {}
    replaced = with_columns(held, conditions)
    for column in conditions:
        attributes.setdefault(column, Attribute(column.name, column.type))
    inner = hull(replaced, attributes)
    if plain is None or inner is None:
        return None
    outer = Hull({**plain.sides, **inner.sides})
    return Part(plain, outer, inner if inner.is_all else None)
