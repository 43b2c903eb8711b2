"""Queries sorted into classes: products by what they hold, and unions by how they are written.

A product has only one way to be written as a hull, so that equal ones are found here already. Of
unions that are written differently it is found later whether they are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from headgate.implication.order.hull import Hull, hull
from headgate.implication.order.parts import Part, parts
from headgate.implication.order.products import products
from headgate.implication.order.signature import signature
from headgate.predicate import Column, Predicate, columns
from headgate.schema import Attribute, Stream


@dataclass(frozen=True, slots=True)
class Class:
    """Queries that hold for the same rows: their places, and the hull and parts of the first."""

    places: list[int]
    held: Predicate
    hull: Hull
    parts: list[Part]

    @property
    def is_product(self) -> bool:
        return self.hull.is_all


@dataclass(frozen=True, slots=True)
class Classes:
    """Products, then unions, each from the smallest hull to the largest."""

    products: list[Class]
    unions: list[Class]
    attributes: dict[Column, Attribute]

    @property
    def all(self) -> list[Class]:
        return self.products + self.unions


def classes(held: Sequence[Predicate], stream: Stream) -> Classes:
    """The classes of conditions, each in the form that `holding` gives; not of what never holds."""
    attributes: dict[Column, Attribute] = {}
    found: dict[Hashable, Class] = {}
    for place, condition in enumerate(held):
        for column in columns(condition):
            if column not in attributes:
                attributes[column] = stream[column.name]
        outline = hull(condition, attributes)
        if outline is None:
            continue
        is_product = outline.is_all
        key = frozenset(outline.sides.items()) if is_product else signature(condition)
        known = found.get((is_product, key))
        if known is not None:
            known.places.append(place)
            continue
        split = [] if is_product else parts(condition, attributes)
        if not is_product and not split:
            continue
        found[is_product, key] = Class([place], condition, outline, split)
    sized = products([one.hull for one in found.values()], attributes).excluded.tolist()
    ascending = [one for _, one in sorted(zip(sized, found.values(), strict=True), key=_by_size)]
    return Classes(
        [one for one in ascending if one.is_product],
        [one for one in ascending if not one.is_product],
        attributes,
    )


def _by_size(sized: tuple[int, Class]) -> int:
    return -sized[0]
