"""A predicate as an OR of conjunctions, where that stays small: each has one set for each column.

As `dnf`, but a column's values stay one set: `a IN (1, 5) AND b <> 3` is one conjunction here, and
four boxes there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from headgate.errors import ExpansionTooLarge
from headgate.predicate.atoms import Atom, Column, Constant, IsNull, Within
from headgate.predicate.holding import to_monotone
from headgate.predicate.tree import And, Or, Predicate

MAX_CONJUNCTIONS = 64

Conjunction = tuple[Atom, ...]


def to_conjunctions(predicate: Predicate, cap: int = MAX_CONJUNCTIONS) -> tuple[Conjunction, ...]:
    """The predicate is TRUE exactly where all atoms of one of these are.

    Of each column there is at most one set of values in each. Raises ExpansionTooLarge where there
    could be more than `cap` of them.

    (a > 3 AND a < 9) OR b = 1  ->  a in [4, 8];  b in {1}
    a > 3 AND a IS NULL         ->  nothing
    """
    plain = _as_one(predicate.parts if isinstance(predicate, And) else (predicate,))
    if plain is not None:
        return (plain,)
    held = to_monotone(predicate)
    size = estimate_conjunctions(held)
    if size > cap:
        raise ExpansionTooLarge(f"an OR of {size:,} conjunctions, over the cap of {cap:,}")
    return tuple(dict.fromkeys(_expand(held)))


def estimate_conjunctions(held: Predicate) -> int:
    """An upper bound on their number, in time linear in the predicate's size."""
    if isinstance(held, And):
        return prod(estimate_conjunctions(part) for part in held.parts)
    if isinstance(held, Or):
        return sum(estimate_conjunctions(part) for part in held.parts)
    return 0 if held == Constant(False) else 1


def _as_one(parts: tuple[Predicate, ...]) -> Conjunction | None:
    """The parts, if they are sets of values of different columns, as in most queries."""
    sets: dict[str, Within] = {}
    for part in parts:
        if not isinstance(part, Within) or part.values.is_empty:
            return None
        sets[part.column.key] = part
    return tuple(sets.values()) if len(sets) == len(parts) else None


def _expand(held: Predicate) -> Iterator[Conjunction]:
    if isinstance(held, Or):
        for part in held.parts:
            yield from _expand(part)
    elif isinstance(held, And):
        for choice in product(*(tuple(_expand(part)) for part in held.parts)):
            meeting = _meet(choice)
            if meeting is not None:
                yield meeting
    elif isinstance(held, Constant):
        if held.value is True:
            yield ()
    else:
        assert isinstance(held, Atom)
        yield (held,)


def _meet(choice: tuple[Conjunction, ...]) -> Conjunction | None:
    """All atoms of all of them, or None where they contradict each other on a column."""
    sets: dict[Column, Within] = {}
    others: dict[Atom, None] = {}
    for conjunction in choice:
        for atom in conjunction:
            if not isinstance(atom, Within):
                others[atom] = None
                continue
            known = sets.get(atom.column, atom)
            common = known.values.intersection(atom.values)
            if common.is_empty:
                return None
            sets[atom.column] = known if common == known.values else Within(atom.column, common)
    if any(isinstance(atom, IsNull) and atom.column in sets for atom in others):
        return None
    return (*sets.values(), *others)
