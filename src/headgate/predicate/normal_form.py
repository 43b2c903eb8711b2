"""A predicate as an OR of ANDs, where that stays small.

`to_dnf` gives boxes, in which a column has one interval: `a IN (1, 5) AND b <> 3` is four of them.
`to_conjunctions` keeps the values of a column as one set: the same predicate is one conjunction.
Both forms can be exponential in the size of the predicate, so their size is estimated first,
without expanding anything, and declined past a cap. Matching never needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeVar

from headgate.errors import ExpansionTooLarge
from headgate.predicate.atoms import Atom, Column, Compare, Constant, IsNull, Matches, Within
from headgate.predicate.box import NULL, Box, Side
from headgate.predicate.monotone import to_monotone
from headgate.predicate.tree import And, Or, Predicate

MAX_CONJUNCTS = 10_000
MAX_CONJUNCTIONS = 64

Conjunction = tuple[Atom, ...]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A box, and conditions that no box can express: patterns and comparisons of attributes."""

    box: Box
    conditions: frozenset[Compare | Matches] = frozenset()

    def intersection(self, other: Conjunct) -> Conjunct | None:
        """Return the rows of both, or None where the boxes do not meet."""
        box = self.box.intersection(other.box)
        return None if box is None else Conjunct(box, self.conditions | other.conditions)


EVERY_ROW = Conjunct(Box({}))


def to_dnf(predicate: Predicate, cap: int = MAX_CONJUNCTS) -> tuple[Conjunct, ...]:
    """Return conjuncts whose union is the set of rows for which the predicate is TRUE.

    Empty boxes are left out, and so are conjuncts that occur twice. `a <> 3` and `a IN (1, 5)`
    split into two boxes each. Raises ExpansionTooLarge when `estimate_dnf_size` is over the cap.
    """
    return expand_monotone(to_monotone(predicate), cap)


def expand_monotone(monotone: Predicate, cap: int = MAX_CONJUNCTS) -> tuple[Conjunct, ...]:
    """Return the conjuncts of a predicate that is in monotone form already."""
    size = estimate_dnf_size(monotone)
    if size > cap:
        raise _refuse_expansion(size, cap)
    return tuple(dict.fromkeys(_expand(monotone, _conjuncts_of_atom, _intersect_conjuncts)))


def _refuse_expansion(size: int, cap: int) -> ExpansionTooLarge:
    return ExpansionTooLarge(
        f"as an OR of ANDs the condition has {size:,} alternatives, over the cap of {cap:,}"
    )


def estimate_dnf_size(monotone: Predicate) -> int:
    """Return an upper bound on the number of conjuncts, in time linear in the predicate's size."""
    return _estimate(
        monotone, lambda atom: len(atom.values.intervals) if isinstance(atom, Within) else 1
    )


def read_plain_boxes(predicate: Predicate) -> list[Box] | None:
    """Return the boxes of an OR that is written as boxes, as programs write it; else None."""
    boxes: list[Box] = []
    for part in predicate.parts if isinstance(predicate, Or) else (predicate,):
        atoms = part.parts if isinstance(part, And) else (part,)
        sides: dict[Column, Side] = {}
        for atom in atoms:
            if not isinstance(atom, Within | IsNull):
                return None
            side = _side_of_atom(atom)
            if side is None:
                return None
            sides[atom.column] = side
        # A column that occurs twice would need an intersection.
        if len(sides) != len(atoms):
            return None
        boxes.append(Box(sides))
    return boxes


def to_conjunctions(
    predicate: Predicate, cap: int = MAX_CONJUNCTIONS, *, absorb: bool = True
) -> tuple[Conjunction, ...]:
    """Return conjunctions of atoms: the predicate is TRUE exactly where all atoms of one are.

    Each has at most one set of values of each column. Raises ExpansionTooLarge where there could be
    more than `cap` of them. Without `absorb` those that another one covers stay, too.

    (a > 3 AND a < 9) OR b = 1  ->  a in [4, 8];  b in {1}
    a > 3 AND a IS NULL         ->  nothing
    a > 3 OR (a > 5 AND b = 1)  ->  a in [4, …];  without `absorb` also a in [6, …], b in {1}
    """
    # Most queries are one conjunction as written; they skip the monotone form.
    plain = _read_plain_conjunction(predicate.parts if isinstance(predicate, And) else (predicate,))
    if plain is not None:
        return (plain,)
    monotone = to_monotone(predicate, absorb=absorb)
    size = estimate_conjunctions(monotone)
    if size > cap:
        raise _refuse_expansion(size, cap)
    # each once, in whatever order its atoms stand
    parts: dict[frozenset[Atom], Conjunction] = {}
    for part in _expand(monotone, lambda atom: [(atom,)], _merge_conjunctions):
        parts.setdefault(frozenset(part), part)
    return tuple(parts.values())


def estimate_conjunctions(monotone: Predicate) -> int:
    """Return an upper bound on the number of conjunctions, in linear time."""
    return _estimate(monotone, lambda _: 1)


def _estimate(monotone: Predicate, size_of_atom: Callable[[Atom], int]) -> int:
    """Return how many parts `_expand` gives at most, without expanding anything."""
    # An AND has a part for every combination, so sizes multiply; an OR has the parts of all.
    if isinstance(monotone, And):
        return prod(_estimate(part, size_of_atom) for part in monotone.parts)
    if isinstance(monotone, Or):
        return sum(_estimate(part, size_of_atom) for part in monotone.parts)
    assert isinstance(monotone, Atom)
    return 0 if monotone == Constant(False) else size_of_atom(monotone)


def _expand(
    monotone: Predicate,
    parts_of_atom: Callable[[Atom], Iterable[_T]],
    merge: Callable[[tuple[_T, ...]], _T | None],
) -> Iterator[_T]:
    """Yield the parts whose union the predicate is.

    An OR has the parts of all its operands. An AND has one for each choice of a part from every
    operand, unless `merge` says that the chosen parts contradict each other.
    """
    if isinstance(monotone, Or):
        for operand in monotone.parts:
            yield from _expand(operand, parts_of_atom, merge)
    elif isinstance(monotone, And):
        operands = (tuple(_expand(part, parts_of_atom, merge)) for part in monotone.parts)
        for choice in product(*operands):
            merged = merge(choice)
            if merged is not None:
                yield merged
    elif isinstance(monotone, Constant):
        if monotone.value is True:
            # TRUE is the merge of nothing; FALSE and NULL have no parts at all.
            everything = merge(())
            assert everything is not None
            yield everything
    else:
        assert isinstance(monotone, Atom)
        yield from parts_of_atom(monotone)


def _conjuncts_of_atom(atom: Atom) -> Iterator[Conjunct]:
    if isinstance(atom, Within):
        for interval in atom.values.intervals:
            yield Conjunct(Box({atom.column: interval}))
    elif isinstance(atom, IsNull):
        yield Conjunct(Box({atom.column: NULL}))
    else:
        assert isinstance(atom, Compare | Matches)
        yield Conjunct(Box({}), frozenset({atom}))


def _intersect_conjuncts(conjuncts: tuple[Conjunct, ...]) -> Conjunct | None:
    result: Conjunct | None = EVERY_ROW
    for conjunct in conjuncts:
        if result is None:
            return None
        result = result.intersection(conjunct)
    return result


def _merge_conjunctions(choice: tuple[Conjunction, ...]) -> Conjunction | None:
    """Return all atoms of all of them, or None where they contradict each other on a column."""
    # By column: its values so far. `others` is an ordered set of all other atoms.
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
    # A column that is NULL is in no set of values.
    if any(isinstance(atom, IsNull) and atom.column in sets for atom in others):
        return None
    return (*sets.values(), *others)


def _read_plain_conjunction(parts: tuple[Predicate, ...]) -> Conjunction | None:
    """Return the parts if they are sets of values of different columns, as in most queries."""
    sets: dict[str, Within] = {}
    for part in parts:
        if not isinstance(part, Within) or part.values.is_empty:
            return None
        sets[part.column.key] = part
    return tuple(sets.values()) if len(sets) == len(parts) else None


def _side_of_atom(atom: Within | IsNull) -> Side | None:
    """Return what an atom says of its column, where that is one side of a box."""
    if isinstance(atom, Within):
        return atom.values.only_interval
    return None if atom.negated else NULL
