"""Queries grouped into classes, each a union of products of sets of values.

A product has only one way to be written as a hull, so that equal ones are one class already. Unions
that are written differently may turn out to be the same later. A condition with patterns or
comparisons of attributes, or of too many products, is *opaque*: a class by how it is written.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge
from headgate.implication.conditions import replace_conditions
from headgate.implication.order.hull import Hull, Side, compute_hull
from headgate.predicate import (
    Column,
    Compare,
    Matches,
    Predicate,
    collect_columns,
    conjunction,
    iter_atoms,
)
from headgate.predicate.atoms import Atom
from headgate.predicate.narrowing import prefix_range
from headgate.predicate.normal_form import to_conjunctions
from headgate.predicate.tree import order_free_key
from headgate.schema import BIGINT, Attribute, Stream, ValueSet

MAX_PARTS = 64  # a bit each in a word, see `cover`


OPAQUE = Column("class", BIGINT, "\0opaque")  # no stream is called so


@dataclass(frozen=True, slots=True)
class QueryClass:
    """Queries that hold for the same rows: their places, and the condition of the first.

    Its rows are those of all `parts`. The only part of an opaque class has nothing in
    common with other parts.
    """

    places: list[int]
    condition: Predicate
    parts: list[Hull]
    is_opaque: bool = False


@dataclass(frozen=True, slots=True)
class QueryClasses:
    """All classes, and what is declared of the columns of their parts."""

    classes: list[QueryClass]
    attributes: dict[Column, Attribute]


def group_into_classes(monotone: Sequence[Predicate], stream: Stream) -> QueryClasses:
    """Group conditions in monotone form into classes; those that never hold have none."""
    attributes: dict[Column, Attribute] = {}
    classes: dict[Hashable, QueryClass] = {}
    for place, condition in enumerate(monotone):
        parts = _list_plain_parts(condition, attributes, stream)
        if parts == []:
            continue
        # Products are keyed by their sides, all others by how they are written, up to order.
        if parts is not None and len(parts) == 1:
            key: Hashable = (True, frozenset(parts[0].sides.items()))
        else:
            key = (False, order_free_key(condition))
        known = classes.get(key)
        if known is None:
            is_opaque = parts is None
            if parts is None:
                parts = [_make_opaque_part(len(classes), attributes)]
            known = classes[key] = QueryClass([], condition, parts, is_opaque)
        known.places.append(place)
    return QueryClasses(list(classes.values()), attributes)


def _list_plain_parts(
    condition: Predicate, attributes: dict[Column, Attribute], stream: Stream
) -> list[Hull] | None:
    """Return the products of which a condition is the union; None if it is opaque."""
    if any(map(_is_opaque, iter_atoms(condition))):
        return None
    replaced = replace_conditions(condition, {})
    for column in collect_columns(replaced):
        if column not in attributes:
            attributes[column] = stream[column.name]
    try:
        return _list_parts(replaced, attributes)
    except ExpansionTooLarge:
        return None


def _is_opaque(atom: Atom) -> bool:
    """Return whether no set of values is the same: for a comparison, and for most patterns."""
    return isinstance(atom, Compare) or (
        isinstance(atom, Matches) and not prefix_range(atom.pattern)[1]
    )


def _make_opaque_part(number: int, attributes: dict[Column, Attribute]) -> Hull:
    """Return a product that lies in no other, nor any in it: a point of a column of their own."""
    attributes[OPAQUE] = Attribute(OPAQUE.name, BIGINT)
    return Hull({OPAQUE: Side(ValueSet.points(BIGINT, [number]), False)})


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
