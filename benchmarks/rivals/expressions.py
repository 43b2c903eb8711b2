"""Events that are expressions: a set of values for an attribute, where a row has one value.

Under the stabbing subscription of the BE-Tree paper (section 3), an expression matches a query when
every predicate of the query shares a value with the event's predicate on the same attribute.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import numpy as np

from benchmarks.rivals.static import Events
from headgate.errors import UsageError
from headgate.matching.encoding.code_book import CodeBook, Regions
from headgate.predicate import Predicate, Within
from headgate.predicate.normal_form import Conjunction, to_conjunctions
from headgate.schema import ValueSet


def expression_events(predicates: Iterable[Predicate], book: CodeBook) -> Events:
    """The codes of which each expression has a value, column by column."""
    numbers = {regions.column: number for number, regions in enumerate(book.regions)}
    start = [0]
    found: list[tuple[int, int, int]] = []
    for event, predicate in enumerate(predicates):
        for atom in _single(event, predicate):
            assert isinstance(atom, Within)
            number = numbers.get(atom.column)
            if number is not None:
                codes = _codes(atom.values, book.regions[number])
                found.extend((number, low, high) for low, high in codes)
        start.append(len(found))
    column, low, high = np.array(found, np.int32).reshape(-1, 3).T.copy()
    return Events(np.array(start, np.int64), column, low, high)


def _single(event: int, predicate: Predicate) -> Conjunction:
    found = to_conjunctions(predicate)
    if len(found) != 1 or not all(isinstance(atom, Within) for atom in found[0]):
        raise UsageError(
            f"event {event} is not one conjunction of comparisons with constants; split an OR"
        )
    return found[0]


def _codes(values: ValueSet, regions: Regions) -> Iterator[tuple[int, int]]:
    """The intervals of codes that a set of values reaches into, ascending and apart."""
    first, last = 0, -1
    for interval in values.intervals:
        low = 1 if interval.low is None else bisect_right(regions.cuts, interval.low) + 1
        high = (
            regions.greatest
            if interval.high is None
            else bisect_left(regions.cuts, interval.high) + 1
        )
        if low > last + 1:
            if first:
                yield first, last
            first = low
        last = high
    yield first, last
