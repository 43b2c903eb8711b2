"""A few rows of a query: whatever contains the query matches all of them.

They are taken from the corners of its parts, where queries differ first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from headgate.implication.order.classes import Class
from headgate.implication.order.hull import Hull, Side, whole
from headgate.implication.pair import Declared
from headgate.predicate import (
    Column,
    Compare,
    Matches,
    Predicate,
    atoms,
    columns,
    columns_of,
    evaluate,
    satisfiable,
)
from headgate.schema import Attribute, Double, Interval, Ordinal, Stream, Type, Value
from headgate.schema.values import precedes

ENDS = ((0, None), (-1, 0), (0, 0), (0, -1), (-1, -1))  # of sides, and of free columns
TRIES = 40
ENOUGH = 8
MOST_INTERVALS = 4
FAR = 1e300  # a double far out that is neither infinite nor NaN

Row = dict[str, Value | None]
Choices = tuple[Value | None, ...]


class Rows:
    """Rows of queries on one stream, reproducible.

    `free` are columns that get a value in most rows though the query does not mention them.
    """

    def __init__(
        self, stream: Stream, attributes: Mapping[Column, Attribute], free: Sequence[Column]
    ) -> None:
        self._stream = stream
        self._last: tuple[Class, list[Row]] | None = None
        self._dice = Random(20)
        self._known: dict[tuple[Column, Side], Choices] = {}
        required = [attribute for attribute in stream if not attribute.nullable]
        base = {one.name: next(_values(whole(one), one.type)) for one in required}
        values = {
            column.key: tuple(_values(Side(attributes[column].domain, False), column.type))
            for column in free
        }
        self._free: dict[int | None, Row] = {None: base}
        for end in (0, -1):
            self._free[end] = base | {key: one[end] for key, one in values.items()}

    def of(self, one: Class) -> list[Row]:
        """Rows of the queries of a class; those of the last class that was asked for are kept."""
        if self._last is None or self._last[0] is not one:
            found = self._of_product(one.hull) if one.is_product else self._of_union(one)
            self._last = one, found
        return self._last[1]

    def outside(self, column: Column, larger: Side | None, smaller: Side) -> list[Value | None]:
        """A few values of a side, or of the whole column, that another side does not have."""
        allowed = whole(self._stream[column.name]) if larger is None else larger
        values = allowed.values.intersection(smaller.values.complement())
        rest = Side(values, allowed.null and not smaller.null)
        return [] if rest.is_empty else list(self._values_of(column, rest))[:MOST_INTERVALS]

    def _of_product(self, found: Hull) -> list[Row]:
        """Some corners of a product, and a row between them."""
        choices = self._choices(found)
        return [self._row(choices, number) for number in range(len(ENDS) + 1)]

    def _of_union(self, one: Class) -> list[Row]:
        """Rows of a union, found in the hulls of its parts; each has been verified."""
        held, hulls = one.held, [part.plain for part in one.parts]
        mentioned = dict.fromkeys((column.key for column in columns(held)), None)
        choices = [self._choices(part) for part in hulls]
        found = self._witness(held)
        tied = {key: found[0][key] for key in _tied(held)} if found else {}
        for number in range(TRIES):
            row = self._row(choices[number % len(hulls)], number // len(hulls))
            for changed in ({}, tied) if tied else ({},):
                if evaluate(held, {**mentioned, **row, **changed}) is True:
                    found.append({**row, **changed})
                    break
            if len(found) > ENOUGH:
                break
        return found[1:] + found[:1]

    def _witness(self, held: Predicate) -> list[Row]:
        declared = Declared.of(self._stream, (held,))
        found = satisfiable(held, declared.domains, declared.required)
        return [] if found.witness is None else [{**self._free[None], **found.witness}]

    def _row(self, choices: list[tuple[str, Choices]], number: int) -> Row:
        """One corner after the other, and then any."""
        if number < len(ENDS):
            end, free = ENDS[number]
            return self._free[free] | {key: values[end] for key, values in choices}
        pick = self._dice.random
        return self._free[(None, 0, -1)[number % 3]] | {
            key: values[int(pick() * len(values))] for key, values in choices
        }

    def _choices(self, found: Hull) -> list[tuple[str, Choices]]:
        return [(column.key, self._values_of(column, side)) for column, side in found.sides.items()]

    def _values_of(self, column: Column, side: Side) -> Choices:
        known = self._known.get((column, side))
        if known is None:
            known = self._known[column, side] = tuple(_values(side, column.type))
        return known


def _values(side: Side, type_: Type) -> Iterator[Value | None]:
    """NULL if it is there, and the ends of some intervals, ascending."""
    if side.null:
        yield None
    intervals = side.values.intervals
    for interval in (*intervals[:MOST_INTERVALS], *intervals[MOST_INTERVALS:][-1:]):
        for ordinal in _ends(interval, type_):
            yield type_.value(ordinal)


def _tied(held: Predicate) -> set[str]:
    """The columns that occur in a pattern or a comparison of columns."""
    conditions = (atom for atom in atoms(held) if isinstance(atom, Compare | Matches))
    return {column.key for atom in conditions for column in columns_of(atom)}


def _ends(interval: Interval, type_: Type) -> Iterator[Ordinal]:
    """The first and the last two, or few texts from the first on."""
    low, high = interval.low, interval.high
    least, most = type_.minimum, type_.maximum
    if isinstance(least, str):
        text = low if isinstance(low, str) else ""
        yield text
        if high is None or f"{text}z" < str(high):
            yield f"{text}z"
        return
    if isinstance(type_, Double):
        least, most = type_.ordinal(-FAR), type_.ordinal(FAR)
        if low is not None and type_.ordinal(FAR) < low:  # type: ignore[operator]
            yield low
            return
    first, last = _number(low, least), _number(high, most, after=1)
    inside = interval.intersection(Interval(type_.minimum, None))
    near = (at for at in (first, first + 1, last - 1, last) if at in inside)
    yield from sorted({at for at in near if most is None or not precedes(most, at)})


def _number(end: Ordinal | None, otherwise: Ordinal | None, after: int = 0) -> int:
    found = otherwise if end is None else end
    assert isinstance(found, int)
    return found if end is None else found - after
