"""Events that are expressions themselves: six ways in which a query and an event may meet.

"Analysis and optimization for Boolean expression indexing", section 3.2. With P a predicate of the
query and P′ one of the event on the same attribute:

| semantics               | Eq. | every …          | has a partner such that  |
|-------------------------|-----|------------------|--------------------------|
| `stabbing_subscription` | 2   | P of the query   | P and P′ have a value in common |
| `stabbing_event`        | 3   | P′ of the event  | P and P′ have a value in common |
| `symmetric`             | 4   | P and P′         | P and P′ have a value in common |
| `containment`           | 5   | P of the query   | P′ accepts all that P does |
| `enclosure`             | 6   | P′ of the event  | P accepts all that P′ does |
| `exact`                 | 7   | P and P′         | P and P′ accept the same |

The paper's answers to `stabbing_event` and `enclosure` are approximate, as it follows only the
event's attributes; here all six are exact, as those two look at every partition. Containment is not
implication: `a = 1` is in the containment of `a < 5 AND b = 2`, though it does not imply it.

With OR, a query or an event has several conjunctions. Stabbing and symmetric matching ask for one
pair of them. Containment asks for every conjunction of the query, and enclosure for every one of
the event; the other side must be a single one, as a union may cover what none of its parts does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from headgate.errors import ExpansionTooLarge, HeadgateError, UsageError, did_you_mean
from headgate.matching.be_tree.domain import is_exact, key_of
from headgate.matching.be_tree.kernels.expressions import Event, leads_to, relation_bits
from headgate.matching.be_tree.kernels.pools import LIVE
from headgate.matching.be_tree.predicates import closed, hull
from headgate.predicate import Predicate, Within
from headgate.predicate.conjunctions import to_conjunctions
from headgate.schema import Stream, ValueSet
from headgate.sql import parse_where

if TYPE_CHECKING:
    from headgate.matching.be_tree.growing import GrowingTree

Semantics = Literal[
    "stabbing_subscription", "stabbing_event", "symmetric", "containment", "enclosure", "exact"
]
SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)
MEETS, INSIDE, AROUND, SAME = range(4)  # what a query's predicate is to the event's
RELATION = dict(zip(SEMANTICS, (MEETS, MEETS, MEETS, INSIDE, AROUND, SAME), strict=True))
OF_QUERY = ("stabbing_subscription", "symmetric", "containment", "exact")  # every P has a partner
OF_EVENT = ("stabbing_event", "symmetric", "enclosure", "exact")  # every P′ has one

Numbers = npt.NDArray[np.int64]
Sets = dict[int, ValueSet]  # by the number of an attribute; those the tree has not seen are below 0


def check_semantics(name: str) -> Semantics:
    """The name, or an error with a hint."""
    for known in SEMANTICS:
        if name.replace("-", "_") == known:
            return known
    raise UsageError(f"no semantics `{name}`; {did_you_mean(name, SEMANTICS)}")


@dataclass(frozen=True, slots=True)
class Alternatives:
    """An event as an OR of conjunctions, each with a set for each attribute."""

    parts: tuple[tuple[Within, ...], ...]


def alternatives(event: Predicate | str, stream: Stream, semantics: Semantics) -> Alternatives:
    """The event as conjunctions of sets; what else there is in it is refused by name."""
    predicate = parse_where(event, stream) if isinstance(event, str) else event
    try:
        found = to_conjunctions(predicate)
    except ExpansionTooLarge as error:
        raise UsageError(f"{error}; as an event it must be small") from None
    if not found:
        raise UsageError("no row can satisfy this expression, so it meets nothing")
    if len(found) > 1 and semantics in ("containment", "exact"):
        raise UsageError(f"{semantics} of an event with OR would need the union of its parts")
    parts = []
    for one in found:
        sets = tuple(atom for atom in one if isinstance(atom, Within))
        if len(sets) != len(one):
            raise UsageError("only comparisons of an attribute with constants have these semantics")
        parts.append(sets)
    return Alternatives(tuple(parts))


def readable(
    events: Sequence[Predicate | str], stream: Stream, semantics: Semantics
) -> Iterator[Alternatives | str]:
    """Each event, or why it has no meaning here."""
    for event in events:
        try:
            yield alternatives(event, stream, semantics)
        except HeadgateError as error:
            yield str(error)


def matched(growing: GrowingTree, event: Alternatives, semantics: Semantics) -> Numbers:
    """The positions of the queries that an event meets, ascending."""
    hits: list[Numbers] = []
    for part in event.parts:
        found = growing.expressions.position[_expressions(growing, part, semantics)]
        positions, counts = np.unique(found.astype(np.int64), return_counts=True)
        if semantics == "containment":
            positions = positions[counts == growing.sizes(positions)]
        hits.append(positions)
    positions, counts = np.unique(np.concatenate(hits), return_counts=True)
    return positions[counts == len(hits)] if semantics == "enclosure" else positions


def _expressions(growing: GrowingTree, part: tuple[Within, ...], semantics: Semantics) -> Numbers:
    """The expressions that one conjunction meets."""
    pool, kind = growing.pool, RELATION[semantics]
    sets = {pool.column_number(one.column): one.values for one in part}
    known = {c: values for c, values in sets.items() if c >= 0}
    if len(known) < len(part) and semantics in OF_EVENT:
        return np.empty(0, np.int64)  # an attribute that no query has finds no partner
    bits = np.zeros(len(pool) // 64 + 1, np.uint64)
    order, bounds = growing.by_column()
    exact = {c: closed(values) for c, values in known.items() if is_exact(pool.columns[c].type)}
    ends = [end for intervals in exact.values() for end in intervals]
    low, high = np.array(ends, np.int64).reshape(-1, 2).T.copy()
    sizes = np.cumsum([0, *map(len, exact.values())])
    relation_bits(
        pool.arrays, order, bounds, np.array(list(exact), np.int64), sizes, low, high, kind, bits
    )
    for c in known.keys() - exact.keys():
        for number in order[bounds[c] : bounds[c + 1]].tolist():
            atom = pool.atoms[number]
            if isinstance(atom, Within) and related_sets(atom.values, known[c], kind):
                bits[number >> 6] |= np.uint64(1) << np.uint64(number & 63)
    found: Numbers = leads_to(
        growing.tree,
        growing.expressions,
        _event(known, exact, len(pool.columns)),
        bits,
        len(part),
        semantics in OF_QUERY,
        semantics in OF_EVENT,
        np.empty(int(growing.tree.state[LIVE]), np.int64),
    )
    return found


def _event(sets: Sets, exact: dict[int, list[tuple[int, int]]], columns: int) -> Event:
    """The ends of the event's sets, by attribute, as the directories tell values apart."""
    least, most, key = np.zeros((3, columns), np.int64)
    has, single = np.zeros((2, columns), np.bool_)
    for c, values in sets.items():
        has[c] = True
        if c in exact:
            least[c], most[c] = exact[c][0][0], exact[c][-1][1]
            single[c], key[c] = least[c] == most[c], least[c]
            continue
        least[c], most[c] = hull(values)
        intervals = values.intervals
        if len(intervals) == 1 and intervals[0].is_point:
            single[c], key[c] = True, key_of(intervals[0].low)
    return Event(has, single, least, most, key)


def related_sets(query: ValueSet, event: ValueSet, kind: int) -> bool:
    """Is a query's set to an event's what the kind says? As `related`, for sets of any type."""
    if kind == MEETS:
        return not query.intersection(event).is_empty
    if kind == INSIDE:
        return event.covers(query)
    return query.covers(event) if kind == AROUND else query == event
