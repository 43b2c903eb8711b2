"""A value set is a union of half-open ranges of ordinals.

It is written as the sorted ordinals at which membership changes, the *cuts*, and whether the values
below the first cut are inside. Complement flips one flag; union and intersection merge two lists of
cuts. The form is canonical: equal sets are equal objects.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Any

from headgate._slots import set_slots_directly
from headgate.schema.types import Ordinal, Type, successor


@dataclass(frozen=True, slots=True)
class Interval:
    """The ordinals from `low` up to but not including `high`; None is an infinite end.

    Open and closed ends are one thing in ordinals: `(3, 5]` on INT is `[4, 6)`.
    """

    low: Ordinal | None
    high: Ordinal | None

    @staticmethod
    def between(
        type_: Type,
        low: Any = None,
        high: Any = None,
        *,
        low_open: bool = False,
        high_open: bool = False,
    ) -> Interval:
        """Return the interval with these ends; a missing end is infinite.

        >>> from headgate.schema.types import INT
        >>> Interval.between(INT, 3, 5, low_open=True)
        Interval(low=4, high=6)
        """
        first = None if low is None else type_.ordinal(low)
        last = None if high is None else type_.ordinal(high)
        if first is not None and low_open:
            first = successor(first)
        if last is not None and not high_open:
            last = successor(last)
        return Interval(first, last).clip(type_)

    def clip(self, type_: Type) -> Interval:
        """Return the part inside the type; an end that reaches the type's limit is infinite."""
        low, high, first, last = self.low, self.high, type_.minimum, type_.maximum
        # Entirely outside the type: an empty interval.
        below = high is not None and not precedes(first, high)
        above = low is not None and last is not None and precedes(last, low)
        if below or above:
            return Interval(first, first)
        # An end at the limit is written as none, so that equal sets are equal objects.
        if low is not None and not precedes(first, low):
            low = None
        if high is not None and last is not None and precedes(last, high):
            high = None
        return Interval(low, high)

    @property
    def is_empty(self) -> bool:
        return self.low is not None and self.high is not None and not precedes(self.low, self.high)

    @property
    def is_point(self) -> bool:
        return self.low is not None and self.high == successor(self.low)

    @property
    def infinite_ends(self) -> int:
        return (self.low is None) + (self.high is None)

    def __contains__(self, ordinal: Ordinal) -> bool:
        return (self.low is None or not precedes(ordinal, self.low)) and (
            self.high is None or precedes(ordinal, self.high)
        )

    def intersection(self, other: Interval) -> Interval:
        """Return the ordinals in both; it may be empty."""
        return Interval(_highest(self.low, other.low), _lowest(self.high, other.high))

    def overlaps(self, other: Interval) -> bool:
        return not self.intersection(other).is_empty

    def covers(self, other: Interval) -> bool:
        """Return whether every ordinal of `other` is in this interval."""
        return other.is_empty or self.intersection(other) == other


def precedes(left: Ordinal, right: Ordinal) -> bool:
    """Return `left < right` for two ordinals of one type."""
    return left < right  # type: ignore[operator]


def _highest(left: Ordinal | None, right: Ordinal | None) -> Ordinal | None:
    # None is minus infinity for a lower end.
    if left is None or right is None:
        return right if left is None else left
    return right if precedes(left, right) else left


def _lowest(left: Ordinal | None, right: Ordinal | None) -> Ordinal | None:
    # None is plus infinity for an upper end.
    if left is None or right is None:
        return right if left is None else left
    return left if precedes(left, right) else right


@set_slots_directly
@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of one type; NULL is never one of them.

    >>> low = ValueSet.of(Interval(None, 3))
    >>> low.union(ValueSet.of(Interval(2, 9)))
    ValueSet(cuts=(9,), starts_inside=True)
    >>> low.complement().intersection(ValueSet.of(Interval(None, 9))).cuts
    (3, 9)
    """

    cuts: tuple[Any, ...]
    starts_inside: bool

    @staticmethod
    def of(*intervals: Interval) -> ValueSet:
        """Return the union of intervals, in any order, overlapping or not."""
        sets = [ValueSet._single(interval) for interval in intervals]
        return sets[0] if len(sets) == 1 else union(sets)

    @staticmethod
    def _single(interval: Interval) -> ValueSet:
        if interval.is_empty:
            return NOTHING
        cuts = tuple(end for end in (interval.low, interval.high) if end is not None)
        return ValueSet(cuts, interval.low is None)

    @staticmethod
    def points(type_: Type, ordinals: Iterable[Ordinal]) -> ValueSet:
        """Return the set of exactly these ordinals; those outside the type do not count.

        >>> from headgate.schema.types import INT
        >>> ValueSet.points(INT, [5, 3, 4, 9]).cuts
        (3, 6, 9, 10)
        """
        low, high = type_.minimum, type_.maximum
        inside: list[Any] = [
            o
            for o in set(ordinals)
            if not precedes(o, low) and (high is None or not precedes(high, o))
        ]
        inside.sort()
        # Neighbouring points share a cut, which then is none.
        cuts: list[Ordinal] = []
        for ordinal in inside:
            if cuts and cuts[-1] == ordinal:
                cuts.pop()
            else:
                cuts.append(ordinal)
            cuts.append(successor(ordinal))
        # Cuts at the limits of the type are infinite ends.
        starts_inside = bool(cuts) and cuts[0] == low
        if starts_inside:
            cuts = cuts[1:]
        if high is not None and cuts and precedes(high, cuts[-1]):
            cuts.pop()
        return ValueSet(tuple(cuts), starts_inside)

    @property
    def is_empty(self) -> bool:
        return not self.cuts and not self.starts_inside

    @property
    def is_everything(self) -> bool:
        return not self.cuts and self.starts_inside

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The disjoint intervals, ascending, no two of which touch."""
        return tuple(self._intervals())

    @property
    def only_interval(self) -> Interval | None:
        """The interval that the set is; None where it is none or several."""
        # One interval has at most one cut where it starts inside, else one or two.
        cuts = self.cuts
        if self.starts_inside:
            return Interval(None, cuts[0] if cuts else None) if len(cuts) <= 1 else None
        return (
            Interval(cuts[0], cuts[1] if len(cuts) == 2 else None) if len(cuts) in (1, 2) else None
        )

    def _intervals(self) -> Iterator[Interval]:
        ends: list[Ordinal | None] = [None] if self.starts_inside else []
        ends += self.cuts
        # An odd number of ends: the last interval has no upper end.
        if len(ends) % 2:
            ends.append(None)
        return (Interval(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True))

    def __contains__(self, ordinal: Ordinal) -> bool:
        # Membership changes at every cut that is not above the ordinal.
        return (bisect_right(self.cuts, ordinal) + self.starts_inside) % 2 == 1

    def complement(self) -> ValueSet:
        """Return all other values of the type."""
        return ValueSet(self.cuts, not self.starts_inside)

    def union(self, other: ValueSet) -> ValueSet:
        return union((self, other))

    def intersection(self, other: ValueSet) -> ValueSet:
        # Common, and cheaper than a sweep.
        if self.is_everything or other.is_everything:
            return other if self.is_everything else self
        return intersection((self, other))

    def covers(self, other: ValueSet) -> bool:
        """Return whether every value of `other` is in this set."""
        return other.intersection(self.complement()).is_empty

    def finite_ordinals(self, limit: int) -> list[Ordinal] | None:
        """Return the members in order when they are at most `limit`, else None.

        A string range such as `['a', 'b')` holds infinitely many.
        """
        ordinals: list[Ordinal] = []
        for interval in self._intervals():
            at, high = interval.low, interval.high
            if at is None or high is None:
                return None
            if isinstance(at, int) and isinstance(high, int):
                if len(ordinals) + high - at > limit:
                    return None
                ordinals.extend(range(at, high))
                continue
            # Texts between two are finitely many only where one continues the other by NULs.
            while at != high:
                if len(ordinals) == limit or not str(high).startswith(str(at)):
                    return None
                ordinals.append(at)
                at = successor(at)
        return ordinals


def union(sets: Iterable[ValueSet]) -> ValueSet:
    """Return all values that are in at least one of the sets."""
    return _combine(tuple(sets), lambda inside, _: inside > 0)


def intersection(sets: Iterable[ValueSet]) -> ValueSet:
    """Return all values that are in every one of the sets."""
    return _combine(tuple(sets), lambda inside, count: inside == count)


def _combine(sets: tuple[ValueSet, ...], accepted: Callable[[int, int], bool]) -> ValueSet:
    """Sweep over all cuts in order, counting the sets that we are inside of."""
    count = len(sets)
    # `inside` counts the sets that hold the current value, and `state` says whether that is
    # accepted.
    inside = sum(s.starts_inside for s in sets)
    starts_inside = state = accepted(inside, count)
    cuts: list[Ordinal] = []
    for cut, change in merge(*(_changes(s) for s in sets)):
        inside += change
        if accepted(inside, count) != state:
            state = not state
            # Membership changed and changed back at the same place.
            if cuts and cuts[-1] == cut:
                cuts.pop()
            else:
                cuts.append(cut)
    return ValueSet(tuple(cuts), starts_inside)


def _changes(values: ValueSet) -> Iterator[tuple[Any, int]]:
    step = -1 if values.starts_inside else 1
    for cut in values.cuts:
        yield cut, step
        step = -step


NOTHING = ValueSet((), False)
EVERYTHING = ValueSet((), True)
