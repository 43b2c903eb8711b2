"""A disjunctive normal form is a union of boxes, where that stays small.

Its size can be exponential in the size of the predicate, so it is computed without expanding
anything first, and declined past a cap. Matching never needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from headgate.errors import ExpansionTooLarge
from headgate.predicate.atoms import Column, Compare, Constant, IsNull, Matches, Within
from headgate.predicate.box import NULL, Box, Side
from headgate.predicate.holding import to_monotone
from headgate.predicate.tree import And, Or, Predicate

MAX_CONJUNCTS = 10_000


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A box, and conditions that no box can express: patterns and comparisons of attributes."""

    box: Box
    conditions: frozenset[Compare | Matches] = frozenset()

    def intersection(self, other: Conjunct) -> Conjunct | None:
        """The rows of both, or None where the boxes do not meet."""
        box = self.box.intersection(other.box)
        return None if box is None else Conjunct(box, self.conditions | other.conditions)


EVERY_ROW = Conjunct(Box({}))


def to_dnf(predicate: Predicate, cap: int = MAX_CONJUNCTS) -> tuple[Conjunct, ...]:
    """Conjuncts whose union is the set of rows for which the predicate is TRUE.

    Empty boxes are left out, and so are conjuncts that occur twice. `a <> 3` and `a IN (1, 5)`
    split into two boxes each. Raises ExpansionTooLarge when `estimate_dnf_size` is over the cap.
    """
    return expand_monotone(to_monotone(predicate), cap)


def expand_monotone(held: Predicate, cap: int = MAX_CONJUNCTS) -> tuple[Conjunct, ...]:
    """The same of a predicate that `to_monotone` gave."""
    size = estimate_dnf_size(held)
    if size > cap:
        raise ExpansionTooLarge(
            f"the disjunctive normal form would have {size:,} conjuncts, over the cap of {cap:,}"
        )
    return tuple(dict.fromkeys(_expand(held)))


def read_plain_boxes(predicate: Predicate) -> list[Box] | None:
    """The boxes of an OR that is written as boxes, as machines write it; None for all others."""
    boxes: list[Box] = []
    for part in predicate.parts if isinstance(predicate, Or) else (predicate,):
        atoms = part.parts if isinstance(part, And) else (part,)
        sides: dict[Column, Side] = {}
        for atom in atoms:
            if not isinstance(atom, Within | IsNull):
                return None
            side = _side(atom)
            if side is None:
                return None
            sides[atom.column] = side
        if len(sides) != len(atoms):
            return None
        boxes.append(Box(sides))
    return boxes


def _side(atom: Within | IsNull) -> Side | None:
    """What an atom says of its column, where that is one side of a box."""
    if isinstance(atom, Within):
        return atom.values.only_interval
    return None if atom.negated else NULL


def estimate_dnf_size(held: Predicate) -> int:
    """An upper bound on the number of conjuncts, in time linear in the predicate's size."""
    if isinstance(held, And):
        return prod(estimate_dnf_size(part) for part in held.parts)
    if isinstance(held, Or):
        return sum(estimate_dnf_size(part) for part in held.parts)
    if isinstance(held, Within):
        return len(held.values.intervals)
    return 0 if held == Constant(False) else 1


def _expand(held: Predicate) -> Iterator[Conjunct]:
    if isinstance(held, Or):
        for part in held.parts:
            yield from _expand(part)
    elif isinstance(held, And):
        for choice in product(*(tuple(_expand(part)) for part in held.parts)):
            meeting = _meet(choice)
            if meeting is not None:
                yield meeting
    elif isinstance(held, Within):
        for interval in held.values.intervals:
            yield Conjunct(Box({held.column: interval}))
    elif isinstance(held, IsNull):
        yield Conjunct(Box({held.column: NULL}))
    elif isinstance(held, Compare | Matches):
        yield Conjunct(Box({}), frozenset({held}))
    elif held == Constant(True):
        yield EVERY_ROW


def _meet(conjuncts: tuple[Conjunct, ...]) -> Conjunct | None:
    result: Conjunct | None = EVERY_ROW
    for conjunct in conjuncts:
        if result is None:
            return None
        result = result.intersection(conjunct)
    return result
