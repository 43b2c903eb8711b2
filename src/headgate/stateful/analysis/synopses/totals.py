"""Aggregates from sums and counts, or from values and how often each occurs.

Sums are exact: the order in which doubles arrive does not matter. Infinities and NaN, once seen,
decide the sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from headgate.predicate import Column
from headgate.queries import Aggregate


@dataclass(slots=True)
class Total:
    """The exact sum of the values that are not NULL, and their number."""

    finite: Fraction = Fraction()
    special: float | None = None
    count: int = 0

    def add(self, value: Any, times: int = 1) -> None:
        if value is None:
            return
        self.count += times
        if isinstance(value, float) and not isfinite(value):
            self.special = value if self.special is None else self.special + value
        elif hasattr(value, "as_integer_ratio"):
            self.finite += Fraction(value) * times

    def merge(self, other: Total, times: int) -> None:
        self.finite += other.finite * times
        self.count += other.count * times
        if other.special is not None:
            self.special = (self.special or 0.0) + other.special


def aggregate_total(aggregate: Aggregate, total: Total) -> Hashable:
    """Return COUNT, SUM or AVG from a total; NaN as a text, since it is not equal to itself."""
    if aggregate.function == "COUNT":
        return total.count
    if not total.count:
        return None
    if total.special is not None:
        return "NaN" if total.special != total.special else total.special
    return total.finite / total.count if aggregate.function == "AVG" else total.finite


def aggregate_values(aggregate: Aggregate, column: Column, values: Counter[Any]) -> Hashable:
    """Return an aggregate from values, by ordinal, and how often each occurs."""
    if aggregate.function == "COUNT":
        return len(values) if aggregate.distinct else sum(values.values())
    if not values:
        return None
    if aggregate.function in ("MIN", "MAX"):
        least: Hashable = min(values) if aggregate.function == "MIN" else max(values)
        return least
    total = Total()
    if aggregate.function == "MEDIAN":
        count = len(values) if aggregate.distinct else sum(values.values())
        ordered = sorted(values)
        # The two middle places, which are one where the count is odd.
        for place in ((count - 1) // 2, count // 2):
            total.add(column.type.value(_at(ordered, values, place, each=aggregate.distinct)))
        return aggregate_total(Aggregate("AVG"), total)
    for ordinal, times in values.items():
        total.add(column.type.value(ordinal), 1 if aggregate.distinct else times)
    return aggregate_total(aggregate, total)


def _at(ordered: list[Any], values: Counter[Any], place: int, *, each: bool) -> Any:
    """Return the value at a place of the sorted bag, or set, of values."""
    for ordinal in ordered:
        place -= 1 if each else values[ordinal]
        if place < 0:
            return ordinal
    raise IndexError(place)
