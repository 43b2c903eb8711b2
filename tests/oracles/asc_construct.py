"""An attribute selection construct (ASC) knows, for each region of one attribute, who is satisfied.

"Adaptive two-level optimization for selection predicates of multiple continuous queries",
Definition 1 and section 4.1, straight from the definitions and in plain Python: it stays as the
oracle of the fast version. The constants of an attribute divide its values into regions: below the
first, the first itself, between the first and the second, and so on. Bitmaps are ints; bit j is
query j, counted from 0, and a query here is one conjunction.

| name  | is                     | its bit j is 1 if                                            |
|-------|------------------------|--------------------------------------------------------------|
| `qub` | query-usage bitmap     | query j has a condition on the attribute                     |
| `qrb` | query-result bitmap    | a value in the region leaves query j satisfiable             |
| `cab` | candidate-arrow bitmap | construct j can still fail a query of the region's `qrb`     |

Deviations: the paper knows no NULL, which is region 0 here, so that 1 … 2m + 1 are numbered as
printed. Constants are cuts of sets of values, not those that were written: `a > 20` on INT is
`a >= 21`, with the constant 21, and `a = 20` has the two constants 20 and 21.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import UsageError
from headgate.predicate import IsNull, Within
from headgate.predicate.normal_form import Conjunction
from headgate.schema import Attribute, Ordinal, Stream, Type, Value, successor
from headgate.sql import render_predicate

Conditions = dict[str, list[Within | IsNull]]  # of one query, by the name of the attribute


@dataclass(frozen=True, slots=True)
class Region:
    """Values that no constant tells apart; `constant` is the ordinal of its only one, or None."""

    constant: Ordinal | None
    qrb: int
    cab: int


@dataclass(frozen=True, slots=True)
class Construct:
    """The regions of one attribute: NULL, then open, constant, open, …, constant, open."""

    attribute: str
    qub: int
    regions: tuple[Region, ...]
    type: Type

    @property
    def constants(self) -> tuple[Any, ...]:
        """The ordinals that divide the attribute, ascending."""
        return tuple(region.constant for region in self.regions[2::2])

    def region_of(self, value: Value | None) -> int:
        """The number of the region that holds a value; 0 for NULL."""
        if value is None:
            return 0
        ordinal = self.type.ordinal(value)
        below = len([constant for constant in self.constants if constant < ordinal])
        return 2 * below + 1 + (ordinal in self.constants)


def constructs(conjunctions: Sequence[Conjunction], stream: Stream) -> tuple[Construct, ...]:
    """One construct for each attribute that is mentioned, in the order of the stream.

    Raises UsageError at a condition that is neither a set of values nor IS NULL.

    >>> from headgate.predicate.normal_form import to_conjunctions
    >>> from headgate.schema import INT
    >>> from headgate.sql import parse_where
    >>> s = Stream("s", (Attribute("a", INT), Attribute("b", INT)))
    >>> wheres = ("a >= 20", "a < 20 AND b IS NULL")
    >>> queries = [to_conjunctions(parse_where(w, s))[0] for w in wheres]
    >>> a, b = constructs(queries, s)
    >>> shown(a.qub, 2), shown(b.qub, 2)
    ('11', '01')
    >>> [(region.constant, shown(region.qrb, 2)) for region in a.regions]
    [(None, '00'), (None, '01'), (20, '10'), (None, '10')]
    >>> a.region_of(7), a.region_of(20), a.region_of(None)
    (1, 2, 0)
    """
    queries = [_by_attribute(conjunction) for conjunction in conjunctions]
    mentioned = {stream[name].name for conditions in queries for name in conditions}
    attributes = [one for one in stream if one.name in mentioned]
    qubs = [_bitmap(one.name in conditions for conditions in queries) for one in attributes]
    return tuple(
        Construct(one.name, qubs[at], tuple(_regions(one, queries, qubs, at)), one.type)
        for at, one in enumerate(attributes)
    )


def shown(bitmap: int, size: int) -> str:
    """The bits as the paper prints them: the leftmost is the first query's.

    >>> shown(0b0011, 4)
    '1100'
    """
    return "".join(str(bitmap >> j & 1) for j in range(size))


def _by_attribute(conjunction: Conjunction) -> Conditions:
    conditions: Conditions = {}
    for atom in conjunction:
        if not isinstance(atom, Within | IsNull):
            raise UsageError(
                f"`{render_predicate(atom)}` has no regions; "
                "only comparisons with constants and IS NULL have"
            )
        conditions.setdefault(atom.column.name, []).append(atom)
    return conditions


def _regions(
    attribute: Attribute, queries: Sequence[Conditions], qubs: Sequence[int], at: int
) -> Iterator[Region]:
    conditions = [query.get(attribute.name, []) for query in queries]
    for constant, member in _places(attribute.type, _constants(conditions)):
        qrb = _bitmap(all(_holds(atom, member) for atom in atoms) for atoms in conditions)
        cab = _bitmap(j != at and qrb & qub != 0 for j, qub in enumerate(qubs))
        yield Region(constant, qrb, cab)


def _constants(conditions: Iterable[Iterable[Within | IsNull]]) -> list[Any]:
    sets = (atom.values for atoms in conditions for atom in atoms if isinstance(atom, Within))
    return sorted({cut for values in sets for cut in values.cuts})


def _places(type_: Type, constants: Iterable[Any]) -> Iterator[tuple[Any, Ordinal | None]]:
    """Each region's constant and a member that stands for all: NULL, or an ordinal.

    An open region may be empty, as between 3 and 4 of INT; whatever stands for it, nothing comes.
    """
    yield None, None
    yield None, type_.minimum
    for constant in constants:
        yield constant, constant
        yield None, successor(constant)


def _holds(atom: Within | IsNull, ordinal: Ordinal | None) -> bool:
    """Is the condition TRUE for this ordinal, None being NULL?"""
    if isinstance(atom, IsNull):
        return (ordinal is None) != atom.negated
    return ordinal is not None and ordinal in atom.values


def _bitmap(bits: Iterable[bool]) -> int:
    return sum(bit << j for j, bit in enumerate(bits))
