"""Semantics other than SQL's: events that are expressions, and weak `<>` and NOT IN.

"Analysis and optimization for Boolean expression indexing", section 3.2, knows six ways in which a
query and an event that is an expression may meet. With P a predicate of the query and P′ one of the
event on the same attribute:

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

With OR, a query or an event has more than one conjunction. Stabbing and symmetric matching ask for
one pair of them. Containment asks for every conjunction of the query, and enclosure for every one
of the event; the other side must be a single one, as a union may cover what none of its parts does.
An OR of sets of one attribute is a set: `a = 1 OR a = 2` is one predicate. Equal conjunctions are
one.

Conjunctions count as they are written: none is absorbed by another, although `(a <= 5 AND b = 0) OR
a <= 5` is `a <= 5` by SQL. So a wider event (a set of more values, another part of an OR) keeps its
matches by the first four semantics, unless it is refused; by enclosure a narrower one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from headgate.errors import ExpansionTooLarge, HeadgateError, UsageError, did_you_mean
from headgate.matching.be_tree.kernels.expressions import (
    AROUND,
    INSIDE,
    MEETS,
    SAME,
    EventSets,
    match_expression,
    set_relation_bits,
)
from headgate.matching.be_tree.predicates import find_hull, to_closed_intervals
from headgate.matching.be_tree.tree import BeTree
from headgate.matching.be_tree.values import fits_in_64_bits, to_key
from headgate.predicate import IsNull, Predicate, Within, push_negations
from headgate.predicate.normal_form import to_conjunctions
from headgate.predicate.tree import And, Or, conjunction, disjunction
from headgate.schema import Stream, ValueSet
from headgate.sql import parse_where

Semantics = Literal[
    "stabbing_subscription", "stabbing_event", "symmetric", "containment", "enclosure", "exact"
]
SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)
RELATION = dict(zip(SEMANTICS, (MEETS, MEETS, MEETS, INSIDE, AROUND, SAME), strict=True))
# Semantics by which every P must have a partner, and those by which every P′ must.
ALL_QUERY_PREDICATES = ("stabbing_subscription", "symmetric", "containment", "exact")
ALL_EVENT_PREDICATES = ("stabbing_event", "symmetric", "enclosure", "exact")

Numbers = npt.NDArray[np.int64]
Sets = dict[int, ValueSet]  # by the number of an attribute; those the tree has not seen are below 0
Alternatives = list[tuple[Within, ...]]  # an event as an OR of conjunctions of sets


def check_semantics(name: str) -> Semantics:
    """Return the name of semantics as it is written here; raise an error with a hint if unknown."""
    for known in SEMANTICS:
        if name.replace("-", "_") == known:
            return known
    raise UsageError(f"no semantics `{name}`; {did_you_mean(name, SEMANTICS)}")


def read_event(event: Predicate | str, stream: Stream, semantics: Semantics) -> Alternatives:
    """Return the event as conjunctions of sets; refuse by name what else there is in it."""
    predicate = parse_where(event, stream) if isinstance(event, str) else event
    try:
        alternatives = to_conjunctions(predicate, absorb=False)
    except ExpansionTooLarge as error:
        raise UsageError(f"{error}; as an event it must be small") from None
    if not alternatives:
        raise UsageError("no row can satisfy this expression, so it meets nothing")
    if len(alternatives) > 1 and semantics in ("containment", "exact"):
        raise UsageError(f"{semantics} of an event with OR would need the union of its parts")
    parts = []
    for atoms in alternatives:
        sets = tuple(atom for atom in atoms if isinstance(atom, Within))
        if len(sets) != len(atoms):
            raise UsageError("only comparisons of an attribute with constants have these semantics")
        parts.append(sets)
    return parts


def read_events(
    events: Sequence[Predicate | str], stream: Stream, semantics: Semantics
) -> Iterator[Alternatives | str]:
    """Yield each event, or why it has no meaning here."""
    for event in events:
        try:
            yield read_event(event, stream, semantics)
        except HeadgateError as error:
            yield str(error)


def match_event(be_tree: BeTree, event: Alternatives, semantics: Semantics) -> Numbers:
    """Return the positions of the queries that an event meets, ascending."""
    hits: list[Numbers] = []
    for part in event:
        matches = be_tree.expressions.arrays.position[_match_conjunction(be_tree, part, semantics)]
        # a query may be met by more than one of its conjunctions; containment needs all
        positions, counts = np.unique(matches.astype(np.int64), return_counts=True)
        if semantics == "containment":
            positions = positions[counts == be_tree.expressions.count_by_query(positions)]
        hits.append(positions)
    # enclosure needs every conjunction of the event, the others any
    positions, counts = np.unique(np.concatenate(hits), return_counts=True)
    return positions[counts == len(hits)] if semantics == "enclosure" else positions


def _match_conjunction(be_tree: BeTree, part: tuple[Within, ...], semantics: Semantics) -> Numbers:
    """Return the expressions that one conjunction of an event meets."""
    pool, kind = be_tree.predicates, RELATION[semantics]
    sets = {pool.column_number(atom.column): atom.values for atom in part}
    known = {c: values for c, values in sets.items() if c >= 0}
    if len(known) < len(part) and semantics in ALL_EVENT_PREDICATES:
        return np.empty(0, np.int64)  # an attribute that no query has has no partner
    # A bit for each predicate of the tree that is related to the event's set as it should be: by a
    # kernel where ordinals fit into 64 bits, and one by one where not.
    bits = np.zeros(len(pool) // 64 + 1, np.uint64)
    order, bounds = be_tree.group_by_column()
    exact = {
        c: to_closed_intervals(values)
        for c, values in known.items()
        if fits_in_64_bits(pool.columns[c].type)
    }
    ends = [end for intervals in exact.values() for end in intervals]
    low, high = np.array(ends, np.int64).reshape(-1, 2).T.copy()
    sizes = np.cumsum([0, *map(len, exact.values())])
    set_relation_bits(
        pool.arrays, order, bounds, np.array(list(exact), np.int64), sizes, low, high, kind, bits
    )
    for c in known.keys() - exact.keys():
        for number in order[bounds[c] : bounds[c + 1]].tolist():
            atom = pool.atoms[number]
            if isinstance(atom, Within) and are_related_sets(atom.values, known[c], kind):
                bits[number >> 6] |= np.uint64(1) << np.uint64(number & 63)
    matches: Numbers = match_expression(
        be_tree.arrays,
        be_tree.expressions.arrays,
        _build_event_sets(known, exact, len(pool.columns)),
        bits,
        len(part),
        semantics in ALL_QUERY_PREDICATES,
        semantics in ALL_EVENT_PREDICATES,
        np.empty(be_tree.live, np.int64),
    )
    return matches


def _build_event_sets(
    sets: Sets, exact: dict[int, list[tuple[int, int]]], columns: int
) -> EventSets:
    """Return the ends of the event's sets, by attribute, as the directories tell values apart."""
    least, most, key = np.zeros((3, columns), np.int64)
    has, single = np.zeros((2, columns), np.bool_)
    for c, values in sets.items():
        has[c] = True
        if c in exact:
            least[c], most[c] = exact[c][0][0], exact[c][-1][1]
            # one value, which a directory looks up by its key
            single[c], key[c] = least[c] == most[c], least[c]
            continue
        least[c], most[c] = find_hull(values)
        intervals = values.intervals
        if len(intervals) == 1 and intervals[0].is_point:
            single[c], key[c] = True, to_key(intervals[0].low)
    return EventSets(has, single, least, most, key)


def are_related_sets(query: ValueSet, event: ValueSet, kind: int) -> bool:
    """Return whether a query's set is to an event's what the kind says, for sets of any type."""
    if kind == MEETS:
        return not query.intersection(event).is_empty
    if kind == INSIDE:
        return event.covers(query)
    return query.covers(event) if kind == AROUND else query == event


def weaken(predicate: Predicate) -> Predicate:
    """Return the predicate that holds by SQL where this one does by the weak semantics.

    Section 8.3 lets `<>` and NOT IN hold for an absent attribute:

        a <> 3                   ->  a <> 3 OR a IS NULL
        a <> 3 AND a IS NOT NULL ->  (a <> 3 OR a IS NULL) AND a IS NOT NULL, which is a <> 3
        a NOT LIKE 'x%'          ->  as it is, like ranges, comparisons of attributes and IS TRUE

    What counts is how a condition is written, not which values it accepts: `a NOT IN (3, 4)` holds
    for an absent attribute, and `a NOT BETWEEN 3 AND 4` does not. NOT before `=` or IN is `<>` or
    NOT IN.
    """
    return _weaken(push_negations(predicate))


def _weaken(predicate: Predicate) -> Predicate:
    if isinstance(predicate, And):
        return conjunction(_weaken(part) for part in predicate.parts)
    if isinstance(predicate, Or):
        return disjunction(_weaken(part) for part in predicate.parts)
    if isinstance(predicate, Within) and predicate.form == "exclusion":
        return disjunction((predicate, IsNull(predicate.column)))
    return predicate
