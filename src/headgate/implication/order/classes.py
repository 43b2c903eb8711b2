"""Queries grouped into classes, each a union of products of sets of values.

A product has only one way to be written as a hull, so that equal ones are one class already. Unions
that are written differently may turn out to be the same later.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge
from headgate.implication.conditions import Conditions, replace_conditions
from headgate.implication.order.hull import Hull, compute_hull
from headgate.predicate import Column, Predicate, collect_columns, columns_of, conjunction
from headgate.predicate.normal_form import to_conjunctions
from headgate.predicate.tree import order_free_key
from headgate.schema import Attribute, Stream

MAX_PARTS = 64  # a bit each in a word, see `cover`


@dataclass(frozen=True, slots=True)
class QueryClass:
    """Queries that hold for the same rows: their places, and the condition of the first.

    Its rows are those of all `parts`, whose columns are the stream's and those that stand for
    conditions.
    """

    places: list[int]
    condition: Predicate
    parts: list[Hull]


@dataclass(frozen=True, slots=True)
class QueryClasses:
    """`too_large` are the places of queries that would be too many parts."""

    classes: list[QueryClass]
    attributes: dict[Column, Attribute]
    conditions: Conditions
    too_large: list[int]


def group_into_classes(monotone: Sequence[Predicate], stream: Stream) -> QueryClasses:
    """Group conditions in monotone form into classes; those that never hold have none."""
    attributes: dict[Column, Attribute] = {}
    conditions: Conditions = {}
    classes: dict[Hashable, QueryClass] = {}
    too_large = []
    for place, condition in enumerate(monotone):
        replaced = replace_conditions(condition, conditions)
        _declare(replaced, attributes, conditions, stream)
        try:
            parts = _list_parts(replaced, attributes)
        except ExpansionTooLarge:
            too_large.append(place)
            continue
        if parts:
            # Products are keyed by their sides, unions by how they are written, up to order.
            is_product = len(parts) == 1
            key = frozenset(parts[0].sides.items()) if is_product else order_free_key(condition)
            key = (is_product, key)
            classes.setdefault(key, QueryClass([], condition, parts)).places.append(place)
    return QueryClasses(list(classes.values()), attributes, conditions, too_large)


def _declare(
    replaced: Predicate,
    attributes: dict[Column, Attribute],
    conditions: Conditions,
    stream: Stream,
) -> None:
    """Add what the stream declares of columns that were not met before."""
    for column in collect_columns(replaced):
        if column in attributes:
            continue
        condition = conditions.get(column)
        if condition is None:
            attributes[column] = stream[column.name]
        else:
            nullable = any(stream[mentioned.name].nullable for mentioned in columns_of(condition))
            attributes[column] = Attribute(column.name, column.type, nullable=nullable)


def _list_parts(replaced: Predicate, attributes: dict[Column, Attribute]) -> list[Hull]:
    """Return the products whose union is the predicate."""
    outline = compute_hull(replaced, attributes)
    if outline is None or outline.is_exact:
        return [] if outline is None else [outline]
    # By their sides, so that equal parts occur once.
    parts: dict[Hashable, Hull] = {}
    for atoms in to_conjunctions(replaced, MAX_PARTS):
        part = compute_hull(conjunction(atoms), attributes)
        if part is not None:
            parts.setdefault(frozenset(part.sides.items()), part)
    return list(parts.values())
