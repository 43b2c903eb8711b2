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
        return Side(self.values.intersection(other.values), self.null and other.null)

    def union(self, other: Side) -> Side:
        return Side(self.values.union(other.values), self.null or other.null)

    def covers(self, other: Side) -> bool:
        """Is every value of `other` in this one, and NULL if it has that?"""
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


def compute_hull(held: Predicate, attributes: Mapping[Column, Attribute]) -> Hull | None:
    """The hull of a predicate in the form that `to_monotone` gives; None where it is never TRUE.

    >>> from headgate.predicate import to_monotone
    >>> from headgate.schema import INT, Stream
    >>> from headgate.sql import parse_where
    >>> stream = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    >>> held = to_monotone(parse_where("a = 1 AND b = 2 OR a = 5 AND b = 2 OR a IS NULL", stream))
    >>> known = {column: stream[column.name] for column in (Column("a", INT), Column("b", INT))}
    >>> found = compute_hull(held, known)
    >>> {column.name: (side.values.cuts, side.null) for column, side in found.sides.items()}
    {'a': ((1, 2, 5, 6), True)}
    >>> found.is_exact
    False
    """
    if isinstance(held, And):
        return _of_all([compute_hull(part, attributes) for part in held.parts])
    if isinstance(held, Or):
        return _of_any([compute_hull(part, attributes) for part in held.parts], attributes)
    if isinstance(held, Constant):
        return ALL_ROWS if held.value is True else None
    if isinstance(held, Within):
        return _of_side(held.column, Side(held.values, False), attributes)
    assert isinstance(held, IsNull)
    side = Side(EVERYTHING, False) if held.negated else Side(NOTHING, True)
    return _of_side(held.column, side, attributes)


def _of_side(column: Column, side: Side, attributes: Mapping[Column, Attribute]) -> Hull | None:
    allowed = full_side(attributes[column])
    found = allowed.intersection(side)
    if found.is_empty:
        return None
    return ALL_ROWS if found == allowed else Hull({column: found})


def full_side(attribute: Attribute) -> Side:
    """All that a column may be, by its CHECK and NOT NULL."""
    return Side(attribute.domain, attribute.nullable)


def _of_all(parts: list[Hull | None]) -> Hull | None:
    """The rows of all parts; their sides meet."""
    sides: dict[Column, Side] = {}
    is_all = True
    for part in parts:
        if part is None:
            return None
        is_all &= part.is_exact
        for column, side in part.sides.items():
            known = sides.get(column)
            common = side if known is None else known.intersection(side)
            if common.is_empty:
                return None
            sides[column] = common
    return Hull(sides, is_all)


def _of_any(parts: list[Hull | None], attributes: Mapping[Column, Attribute]) -> Hull | None:
    """The rows of any part; their sides unite. A column that one part leaves free is free."""
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    shared = set.intersection(*(set(part.sides) for part in found))
    sides = {}
    for column in shared:
        union = found[0].sides[column]
        for part in found[1:]:
            union = union.union(part.sides[column])
        if union != full_side(attributes[column]):
            sides[column] = union
    return Hull(sides, all(part.is_exact for part in found) and _is_product(found))


def _is_product(parts: list[Hull]) -> bool:
    """Do the parts differ in the side of one column at most, so that their union has no corners?"""
    sided = {column for part in parts for column in part.sides}
    return sum(len({part.sides.get(column) for part in parts}) > 1 for column in sided) <= 1
