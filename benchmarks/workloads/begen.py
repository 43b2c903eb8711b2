"""The workload of the BE-Tree paper (sections 8.1 and 8.2.1): few of many attributes each.

Base expressions say `a = v` for some attributes. A query is derived from a base expression: it
keeps some of these predicates, and turns part of those into ranges or sets that still hold the
value (Table II, with its slips corrected: `a < v1` needs v1 > v). An event is a base expression
itself, so it satisfies every query that was derived from it.

Matching probability: with B base expressions, each with as many queries and as many events as any
other, an event satisfies 1/B of the queries by descent, and a few of the others by chance. The
paper takes B = 1/p. For uniform attributes chance is negligible and so is the difference; where it
is not (few dimensions, Zipf, wide predicates), we estimate the probability c of a match by chance
from a sample and take B = (1 − c)/(p − c), rounded. A c above p/2 is refused: most of it comes from
few queries with one or two predicates, and no sample tells that well. `fewest=3` makes c small.

Where we deviate, or the paper leaves it open:
- Every base expression has the same number of attributes, where the paper says "on average".
- The number of predicates in a query is binomial, and at least one.
- BETWEEN: the width is uniform from 1 up to twice its mean; IN and NOT IN: one to six values.
- Zipf: the k-th attribute is drawn with a weight of 1/k^s, without putting it back.
- `ranges` is a set of operators of our own: those of Table IV's *medium* without IN.
- A probability of 1 % means only a hundred different events. With `extra` attributes, an event
  is a smaller base expression and so many attributes more, drawn anew: then hardly two are the
  same, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.conjunctions import Conjunctions, Listed
from benchmarks.workloads.derivation import (
    Bases,
    Derived,
    Rules,
    Space,
    base_expressions,
    concatenate,
    derive,
    events_of,
)
from benchmarks.workloads.integer_events import (
    ABOVE,
    ABSENT,
    AT_LEAST,
    AT_MOST,
    BELOW,
    BETWEEN,
    IN,
    NOT_IN,
    UNEQUAL,
    IntegerEvents,
    Numbers,
    integer_stream,
    refuses,
)
from benchmarks.workloads.q_grams import PAIRS, Indices, make_gram_events, make_gram_stream
from examples.city_names.find import LETTERS
from headgate.errors import UsageError

Level = Literal["ranges", "minimum", "low", "medium", "high"]
Random = np.random.Generator

RANGES = (BELOW, AT_MOST, AT_LEAST, ABOVE, BETWEEN)
EXPRESSIVENESS: dict[Level, tuple[int, ...]] = {  # what may stand beside `=`
    "ranges": RANGES,
    "minimum": (),
    "low": (IN,),
    "medium": (*RANGES, IN),
    "high": (*RANGES, IN, UNEQUAL, NOT_IN),
}
MAX_MATCHING = 0.5  # the greatest matching probability, as in Table III
CHUNK = 1 << 18  # queries that are derived at a time, so that memory goes to the result
SAMPLED_QUERIES, SAMPLED_EVENTS = 4_000, 1_000  # a chance of 1 in 10,000 shows 400 times


@dataclass(frozen=True)
class Shape:
    """The sizes of queries and events; `extra` attributes of an event are its own."""

    predicates: float
    fewest: int
    attributes: int
    extra: int

    @property
    def base(self) -> int:
        """The attributes of a base expression."""
        return self.attributes - self.extra


@dataclass(frozen=True, slots=True)
class BegenSpec:
    """What queries and their events are like, with the paper's defaults.

    `predicates` is their average number in a query and `fewest` the least, `attributes` the number
    that an event has and `extra` how many of those are its own. `equality` is the share of
    predicates that stay `=`, and `range_size` the average part of the domain that BETWEEN accepts.
    Attributes are uniform, or by Zipf's law with the exponent `zipf`. An event satisfies a query
    with probability `matching`.
    """

    dimensions: int = 400
    cardinality: int = 48
    predicates: float = 7
    fewest: int = 1
    attributes: int = 15
    operators: Level = "ranges"
    equality: float = 0.3
    range_size: float = 0.12
    zipf: float = 0.0
    matching: float = 0.01
    extra: int = 0

    @property
    def parts(self) -> tuple[Shape, Space, Rules]:
        """The specification as the parts of a generator take it."""
        rules = EXPRESSIVENESS[self.operators]
        return (
            Shape(self.predicates, self.fewest, self.attributes, self.extra),
            Space(self.dimensions, self.cardinality, self.zipf),
            Rules(self.cardinality, self.equality, self.range_size, rules),
        )


PAPER = BegenSpec()
OF_NAMES = BegenSpec(
    dimensions=PAIRS,
    cardinality=len(LETTERS),
    predicates=6,
    fewest=3,
    attributes=10,
    operators="medium",
)


def generate_begen(count: int, spec: BegenSpec = PAPER, *, seed: int) -> Conjunctions:
    """Return `count` queries, with the events that they match as often as specified.

    >>> queries = generate_begen(1_000, BegenSpec(predicates=3, attributes=9), seed=1)
    >>> next(queries.where_clauses())
    'a112 BETWEEN 16 AND 18 AND a229 BETWEEN 17 AND 25 AND a276 > 0 AND a355 < 33'
    >>> queries.events(2, seed=1).value.shape
    (18,)
    """
    shape, space, rules = spec.parts
    check(shape, space, spec.matching)
    random = np.random.default_rng([seed, 0])
    return Generator(shape, space, rules, random).run(count, spec.matching)


def check(shape: Shape, space: Space, matching: float) -> None:
    """Refuse what cannot be."""
    if not 0 < matching <= MAX_MATCHING:
        raise UsageError(
            f"a matching probability of {matching}; it must be above 0, up to {MAX_MATCHING}"
        )
    if not 1 <= shape.fewest <= shape.predicates <= shape.base:
        raise UsageError(
            f"{shape.fewest} to {shape.predicates} predicates of {shape.base} attributes; the "
            "numbers must ascend from 1"
        )
    if shape.attributes > space.dimensions:
        raise UsageError(f"{shape.attributes} attributes of {space.dimensions} dimensions")
    if space.cardinality < 2:
        raise UsageError("an attribute needs two values at least")


@dataclass(frozen=True)
class Generator:
    """Draws base expressions, and derives queries from them."""

    shape: Shape
    space: Space
    rules: Rules
    random: Random

    def run(self, count: int, matching: float) -> Conjunctions:
        chance = self.chance()
        if chance > matching / 2:
            raise UsageError(
                f"{chance:.1g} of the queries match by chance alone, which is too much to control "
                f"the {matching:.2g} asked for; take more dimensions or predicates, or raise "
                "`fewest`"
            )
        bases = max(1, round((1 - chance) / (matching - chance)))
        return self.conjunctions(count, self.bases(bases))

    def chance(self) -> float:
        """Return how often an event satisfies a query derived from another base expression."""
        draw = events_of(self.bases(SAMPLED_EVENTS), self.shape.extra, self.space)
        columns = np.ascontiguousarray(draw(SAMPLED_EVENTS, self.random).dense().T)
        queries = self.conjunctions(SAMPLED_QUERIES, self.bases(SAMPLED_QUERIES))
        hits = sum(_hits(queries.part(i, i + 1), columns) for i in range(SAMPLED_QUERIES))
        return hits / (SAMPLED_QUERIES * SAMPLED_EVENTS)

    def bases(self, count: int) -> Bases:
        return base_expressions(count, self.shape.base, self.space, self.random)

    def conjunctions(self, count: int, bases: Bases) -> Conjunctions:
        """Return queries in random order, as many from each base expression as from any other."""
        origin = self.random.permutation(count) % len(bases)
        chunks = (origin[start : start + CHUNK] for start in range(0, max(count, 1), CHUNK))
        derived = concatenate([self.derive_queries(bases, chunk) for chunk in chunks])
        events = events_of(bases, self.shape.extra, self.space)
        listed = np.flatnonzero(derived.counts)
        return Conjunctions(
            stream=integer_stream(self.space.dimensions),
            cardinality=self.space.cardinality,
            offsets=_offsets(derived.sizes),
            attribute=derived.attribute,
            operator=derived.operator,
            low=derived.low,
            high=derived.high,
            listed=Listed(listed, _offsets(derived.counts[listed]), derived.values),
            draw_events=events,
        )

    def derive_queries(self, bases: Bases, origin: npt.NDArray[np.int64]) -> Derived:
        """Return a query from each of these base expressions."""
        keep = self.draw_kept(len(origin))
        attribute, value = bases.attribute[origin][keep], bases.value[origin][keep]
        return derive(keep.sum(axis=1), attribute, value, self.rules, self.random)

    def draw_kept(self, count: int) -> npt.NDArray[np.bool_]:
        """Return which predicates of its base expression each query keeps."""
        chance = self.random.random((count, self.shape.base), np.float32)
        is_kept = chance < self.shape.predicates / self.shape.base
        few = np.flatnonzero(is_kept.sum(axis=1) < self.shape.fewest)
        likeliest = np.argsort(chance[few], axis=1)[:, : self.shape.fewest]
        is_kept[few[:, None], likeliest] = True
        return is_kept


def _hits(query: Conjunctions, columns: Numbers) -> int:
    """Return how many events satisfy one query."""
    values = columns[query.attribute]
    named = (values >= query.low[:, None]) & (values <= query.high[:, None])
    for place, predicate in enumerate(query.listed.predicate.tolist()):
        start, stop = query.listed.offsets[place : place + 2]
        named[predicate] = np.isin(values[predicate], query.listed.values[start:stop])
    matches = (named ^ refuses(query.operator)[:, None]) & (values != ABSENT)
    return int(matches.all(axis=0).sum())


def _offsets(sizes: npt.NDArray[np.int64] | npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


# Events that are expressions themselves (section 8.6.11 of the BE-Tree paper).


def derive_event_expressions(
    queries: Conjunctions,
    count: int,
    *,
    equality: float = 0.3,
    range_size: float = 0.12,
    seed: int,
) -> Conjunctions:
    """Return events that are less certain: `=` stays as it is, or turns into BETWEEN.

    Every range holds the value that the event had, so that it meets every query that the event
    satisfied; and it meets more than those.

    >>> from benchmarks.workloads import generate_begen
    >>> queries = generate_begen(10, BegenSpec(attributes=3, predicates=2), seed=1)
    >>> next(derive_event_expressions(queries, 1, seed=1).where_clauses())
    'a13 BETWEEN 43 AND 47 AND a193 BETWEEN 1 AND 1 AND a309 BETWEEN 20 AND 24'
    """
    events = queries.events(count, seed=seed)
    rules = Rules(queries.cardinality, equality, range_size, (BETWEEN,))
    random = np.random.default_rng([seed, 2])
    derived = derive(np.diff(events.offsets), events.attribute, events.value, rules, random)
    nothing = np.empty(0, np.int64)
    return Conjunctions(
        stream=queries.stream,
        cardinality=queries.cardinality,
        offsets=events.offsets,
        attribute=derived.attribute,
        operator=derived.operator,
        low=derived.low,
        high=derived.high,
        listed=Listed(nothing, np.zeros(1, np.int64), derived.values),
        draw_events=queries.draw_events,
    )


# BEGen on real names: queries derived from the q-grams of names (section 8.2.2, Table V).
#
# A base expression is a name: `pair = letter` for some of its pairs of letters. All else is as in
# `generate_begen`: queries keep some of these predicates and turn part of those into ranges or
# sets, events are base expressions themselves, and their number makes the matching probability.
#
# Base expressions have as many attributes as each other, so only names with so many are taken,
# and of these as many pairs, at random.


def generate_begen_of_names(
    names: Sequence[str], count: int, spec: BegenSpec = OF_NAMES, *, seed: int
) -> Conjunctions:
    """Return `count` queries that are derived from names, with events that are names.

    >>> names = "Ouagadougou", "Tegucigalpa"
    >>> spec = replace(OF_NAMES, predicates=4, attributes=7, matching=0.5)
    >>> next(generate_begen_of_names(names, 10, spec, seed=1).where_clauses())
    'g_ig > -1 AND g_lp <= 6 AND g_te < 8'
    """
    shape, space, rules = spec.parts
    check(shape, space, spec.matching)
    events = make_gram_events(names)
    enough = np.flatnonzero(np.diff(events.offsets) >= spec.attributes)
    if len(enough) == 0:
        raise UsageError(f"no name has {spec.attributes} different pairs of letters; ask for fewer")
    random = np.random.default_rng([seed, 0])
    queries = _OfNames(shape, space, rules, random, events, enough).run(count, spec.matching)

    def draw(count: int, random: Random) -> IntegerEvents:
        return replace(queries.draw_events(count, random), stream=make_gram_stream())

    return replace(queries, stream=make_gram_stream(), draw_events=draw)


@dataclass(frozen=True)
class _OfNames(Generator):
    """Base expressions are of these events, each of which has enough attributes."""

    names: IntegerEvents
    enough: Indices

    def bases(self, count: int) -> Bases:
        """Return different names, as long as there are enough of them."""
        rounds = -(-count // len(self.enough))
        chosen = self.random.permuted(np.tile(self.enough, rounds))[:count]
        attribute = np.empty((count, self.shape.base), np.int32)
        value = np.empty_like(attribute)
        for row, name in enumerate(chosen.tolist()):
            first, last = self.names.offsets[name : name + 2].tolist()
            drawn = np.sort(self.random.permutation(last - first)[: self.shape.base]) + first
            attribute[row], value[row] = self.names.attribute[drawn], self.names.value[drawn]
        return Bases(attribute, value)
