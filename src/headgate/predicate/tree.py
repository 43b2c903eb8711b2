"""A predicate is a tree of AND, OR, NOT and truth tests over atoms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from headgate._slots import set_slots_directly
from headgate.predicate.atoms import Atom, Column, Compare, Constant

Accepted = frozenset[bool | None]


@set_slots_directly
@dataclass(frozen=True, slots=True)
class And:
    """TRUE where all parts are, FALSE where one is, else NULL."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """TRUE where a part is, FALSE where all are, else NULL."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a part; NULL where that is NULL."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class Truth:
    """TRUE where `part` takes one of the accepted truth values, else FALSE; never NULL.

    `p IS TRUE` accepts {TRUE}, `p IS NULL` accepts {NULL}, and `COALESCE(p, TRUE)` accepts
    {TRUE, NULL}.
    """

    part: Predicate
    accepted: Accepted


Predicate = Atom | And | Or | Not | Truth

TRUE = Constant(True)
FALSE = Constant(False)
UNKNOWN = Constant(None)
_INNER = (And, Or, Not, Truth)  # a tuple: `And | Or` would be made anew in every call
ALL_TRUTHS: Accepted = frozenset({True, False, None})


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    """Return the AND of all parts, flat: `a AND (b AND c)` has three parts; of none it is TRUE."""
    flat = tuple(parts)
    # most are atoms; `in map` looks at a million of them sooner than a loop would
    if And in map(type, flat):
        flat = tuple(p for part in flat for p in (part.parts if isinstance(part, And) else (part,)))
    return flat[0] if len(flat) == 1 else And(flat) if flat else TRUE


def disjunction(parts: Iterable[Predicate]) -> Predicate:
    """Return the OR of all parts, flat; of none it is FALSE."""
    flat = tuple(parts)
    if Or in map(type, flat):
        flat = tuple(p for part in flat for p in (part.parts if isinstance(part, Or) else (part,)))
    return flat[0] if len(flat) == 1 else Or(flat) if flat else FALSE


def children(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the direct parts; none for an atom."""
    if isinstance(predicate, And | Or):
        return predicate.parts
    if isinstance(predicate, Not | Truth):
        return (predicate.part,)
    return ()


def iter_atoms(predicate: Predicate) -> Iterator[Atom]:
    """Yield every atom, from left to right, as often as it occurs."""
    if isinstance(predicate, _INNER):
        for child in children(predicate):
            yield from iter_atoms(child)
    else:
        yield predicate


def columns_of(atom: Atom) -> tuple[Column, ...]:
    """Return the columns that an atom mentions."""
    if isinstance(atom, Compare):
        return (atom.left, atom.right)
    return () if isinstance(atom, Constant) else (atom.column,)


def collect_columns(predicate: Predicate) -> tuple[Column, ...]:
    """Return the distinct columns of a predicate, in the order of their first mention."""
    return tuple(dict.fromkeys(c for atom in iter_atoms(predicate) for c in columns_of(atom)))


def order_free_key(predicate: Predicate) -> Hashable:
    """Return a key that is equal for `a AND b` and `b AND a`."""
    if isinstance(predicate, And | Or):
        kind = "AND" if isinstance(predicate, And) else "OR"
        return (kind, frozenset(order_free_key(part) for part in predicate.parts))
    return predicate
