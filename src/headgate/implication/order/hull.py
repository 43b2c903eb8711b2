"""The hull of a predicate: for each column the values that it can have in a row of the predicate.

A hull is a product of sets. Most queries are their own hull: a conjunction of conditions on single
columns, where patterns and comparisons of columns are columns, too (see `conditions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.predicate import And, Column, Constant, IsNull, Or, Predicate, Within
from headgate.schema import EVERYTHING, NOTHING, Attribute, ValueSet


@dataclass(frozen=True, slots=True)
class Side:
    """What a column may be: these values, and NULL or not."""

    values: ValueSet
    null: bool

    @property
    def is_empty(self) -> bool:
        return not self.null and self.values.is_empty

    def intersection(self, other: Side) -> Side:
        """Return what both allow."""
        return Side(self.values.intersection(other.values), self.null and other.null)

    def union(self, other: Side) -> Side:
        """Return what either allows."""
        return Side(self.values.union(other.values), self.null or other.null)

    def covers(self, other: Side) -> bool:
        """Return whether every value of `other` is in this one, and NULL if it has that."""
        return self.null >= other.null and self.values.covers(other.values)


Sides = Mapping[Column, Side]


@dataclass(frozen=True, slots=True)
class Hull:
    """Sides by column; a column without a side may be whatever its stream allows.

    `is_exact`: the predicate holds for every row of its hull.
    """

    sides: Sides
    is_exact: bool = True


ALL_ROWS = Hull({})


def compute_hull(monotone: Predicate, attributes: Mapping[Column, Attribute]) -> Hull | None:
    """Return the hull of a predicate in monotone form; None where it is never TRUE.

    >>> from headgate.predicate import to_monotone
    >>> from headgate.schema import INT, Stream
    >>> from headgate.sql import parse_where
    >>> stream = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    >>> where = parse_where("a = 1 AND b = 2 OR a = 5 AND b = 2 OR a IS NULL", stream)
    >>> monotone = to_monotone(where)
    >>> known = {column: stream[column.name] for column in (Column("a", INT), Column("b", INT))}
    >>> hull = compute_hull(monotone, known)
    >>> {column.name: (side.values.cuts, side.null) for column, side in hull.sides.items()}
    {'a': ((1, 2, 5, 6), True)}
    >>> hull.is_exact
    False
    """
    if isinstance(monotone, And):
        return _hull_of_and([compute_hull(part, attributes) for part in monotone.parts])
    if isinstance(monotone, Or):
        return _hull_of_or([compute_hull(part, attributes) for part in monotone.parts], attributes)
    if isinstance(monotone, Constant):
        return ALL_ROWS if monotone.value is True else None
    if isinstance(monotone, Within):
        return _hull_of_side(monotone.column, Side(monotone.values, False), attributes)
    # IS NOT NULL is every value without NULL, IS NULL is NULL without any value.
    assert isinstance(monotone, IsNull)
    side = Side(EVERYTHING, False) if monotone.negated else Side(NOTHING, True)
    return _hull_of_side(monotone.column, side, attributes)


def _hull_of_side(
    column: Column, side: Side, attributes: Mapping[Column, Attribute]
) -> Hull | None:
    allowed = full_side(attributes[column])
    common = allowed.intersection(side)
    if common.is_empty:
        return None
    # A side that excludes nothing is left out, so that equal hulls have equal sides.
    return ALL_ROWS if common == allowed else Hull({column: common})


def full_side(attribute: Attribute) -> Side:
    """Return all that a column may be, by its CHECK and NOT NULL."""
    return Side(attribute.domain, attribute.nullable)


def _hull_of_and(parts: list[Hull | None]) -> Hull | None:
    """Return the hull of an AND: sides intersect."""
    sides: dict[Column, Side] = {}
    is_all = True
    for part in parts:
        if part is None:
            return None
        is_all &= part.is_exact
        for column, side in part.sides.items():
            # A column without a side is free, so the other side is taken as it is.
            known = sides.get(column)
            common = side if known is None else known.intersection(side)
            if common.is_empty:
                return None
            sides[column] = common
    return Hull(sides, is_all)


def _hull_of_or(parts: list[Hull | None], attributes: Mapping[Column, Attribute]) -> Hull | None:
    """Return the hull of an OR: sides unite, and a column that one part leaves free is free."""
    hulls = [part for part in parts if part is not None]
    if len(hulls) < 2:
        return hulls[0] if hulls else None
    shared = set.intersection(*(set(part.sides) for part in hulls))
    sides = {}
    for column in shared:
        union = hulls[0].sides[column]
        for part in hulls[1:]:
            union = union.union(part.sides[column])
        if union != full_side(attributes[column]):
            sides[column] = union
    return Hull(sides, all(part.is_exact for part in hulls) and _is_product(hulls))


def _is_product(parts: list[Hull]) -> bool:
    """Return whether the parts differ in one column at most, so that their union is a product."""
    sided = {column for part in parts for column in part.sides}
    return sum(len({part.sides.get(column) for part in parts}) > 1 for column in sided) <= 1
