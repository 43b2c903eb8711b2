"""The query sets of the ASC paper (section 6, Table 1): conjunctions on some of 20 integers.

What the table says is met exactly, and the standard deviation to 0.005
(`measure_region_deviation` says of what). The paper says nothing of the ranges themselves;
`selection_ranges` says how they are made.
One that reaches an end of the domain is a <, <=, > or >=, a single value a =, all others a BETWEEN.

The share of tuples that match no query is ruled by `matching`, roughly as (1 − matching)^queries:
with the default of 0.003, fifty queries leave about 85 % of uniform tuples without a match. Where
there are 5,000, as in `LARGE_SELECTIONS`, it must be smaller, and queries need three predicates
each, since a query with one accepts a hundredth of the tuples at least. There a few attributes are
in nearly all queries, as protocol and port are in rules of a network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.conjunctions import Conjunctions, Listed
from benchmarks.workloads.integer_events import IntegerEvents, Numbers, integer_stream
from benchmarks.workloads.selection_ranges import (
    Ranges,
    SelectionSpec,
    measure_region_deviation,
    spread_ranges,
)
from headgate.errors import UsageError
from headgate.schema import INT

# The synthetic tuples of the ASC paper (section 6): 20 integers from 0 to 99.
#
# D1 is uniform. Of D2 the paper says only that it is not. Here each attribute has a place of its
# own around which its values gather: the chance of a value falls off with its distance from there
# as a normal distribution does, narrow for one attribute (a deviation of 8) and broad for another
# (40).

ATTRIBUTES, CARDINALITY = 20, 100
NARROWEST, BROADEST = 0.08, 0.4  # deviations, as a part of the domain

Chances = npt.NDArray[np.float64]


def draw_uniform_tuples(
    count: int, *, attributes: int = ATTRIBUTES, cardinality: int = CARDINALITY, seed: int
) -> pa.Table:
    """Draw D1: every value is as likely as any other."""
    random = np.random.default_rng([seed, 1])
    return _table(random.integers(0, cardinality, (attributes, count), np.int32))


def draw_skewed_tuples(
    count: int,
    *,
    attributes: int = ATTRIBUTES,
    cardinality: int = CARDINALITY,
    places: int = 0,
    seed: int,
) -> pa.Table:
    """Draw D2: the values of each attribute gather around a place.

    Law: tuples with the same `places` have the same distribution, whatever their seed.
    """
    random = np.random.default_rng([seed, 2])
    columns = np.empty((attributes, count), np.int32)
    for column, chances in zip(columns, _chances(attributes, cardinality, places), strict=True):
        column[:] = np.searchsorted(np.cumsum(chances)[:-1], random.random(count), side="right")
    return _table(columns)


def _chances(attributes: int, cardinality: int, places: int) -> Chances:
    """Return how likely each value is, a row for each attribute."""
    random = np.random.default_rng(places)
    # Bell curves: each attribute has a centre, and a breadth from narrow to broad.
    centre = random.random((attributes, 1)) * cardinality
    share = random.permutation(np.geomspace(NARROWEST, BROADEST, attributes))
    distance = (np.arange(cardinality) + 0.5 - centre) / (share[:, None] * cardinality)
    weights = np.exp(-(distance**2) / 2)
    chances: Chances = weights / weights.sum(axis=1, keepdims=True)
    return chances


def _table(columns: Numbers) -> pa.Table:
    names = list(integer_stream(len(columns)).names)
    return pa.Table.from_arrays([pa.array(column, INT.arrow) for column in columns], names=names)


SELECTION_SETS = {  # Q3 has several columns, told apart by the number of p-attributes
    "Q1": SelectionSpec(50, 204, 10, 0.08),
    "Q2": SelectionSpec(50, 173, 15, 0.2),
    "Q3-6": SelectionSpec(30, 78, 6, 0.06),
    "Q3-7": SelectionSpec(30, 81, 7, 0.06),
    "Q3-8": SelectionSpec(35, 98, 8, 0.15),
    "Q3-10": SelectionSpec(40, 138, 10, 0.1),
    "Q3-15": SelectionSpec(50, 173, 15, 0.25),
    "Q4": SelectionSpec(50, 362, 10),
}
LARGE_SELECTIONS = SelectionSpec(5_000, 20_000, 20, fewest=3, matching=3e-5, popularity=1_000)
TOLERANCE = 0.005
LAYOUTS = 32  # that are tried for each attribute, so that a small deviation is within reach
ATTEMPTS = 20
HALVINGS = 24

Random = np.random.Generator


def generate_selections(
    spec: SelectionSpec, *, attributes: int = ATTRIBUTES, cardinality: int = CARDINALITY, seed: int
) -> Conjunctions:
    """Return queries as specified, on some of the attributes a0, a1, … below `cardinality`.

    Where no deviation is asked for, the ranges lie evenly. Their own `events` are uniform.

    >>> queries = generate_selections(SELECTION_SETS["Q1"], seed=1)
    >>> len(queries), len(queries.attribute), len(set(queries.attribute.tolist()))
    (50, 204, 10)
    >>> next(queries.where_clauses())
    'a10 <= 93 AND a18 = 84'
    """
    _check(spec, attributes, cardinality)
    random = np.random.default_rng([seed, 0])
    numbers = np.sort(random.permutation(attributes)[: spec.attributes]).astype(np.int32)
    space = _Space(attributes, cardinality, numbers)
    if spec.deviation is None:
        return space.conjunctions(spread_ranges(spec, cardinality, 1, random), 0)
    return _find_deviating(spec, spec.deviation, space, random)


@dataclass(frozen=True)
class _Space:
    """How many attributes and values there are, and the numbers of the attributes to use."""

    attributes: int
    cardinality: int
    numbers: Numbers

    def conjunctions(self, ranges: Ranges, gathered: float) -> Conjunctions:
        operator, low, high = ranges.intervals(gathered, self.cardinality)
        nothing = np.empty(0, np.int64)
        return Conjunctions(
            stream=integer_stream(self.attributes),
            cardinality=self.cardinality,
            offsets=ranges.offsets,
            attribute=self.numbers[ranges.attribute],
            operator=operator,
            low=low,
            high=high,
            listed=Listed(nothing, np.zeros(1, np.int64), nothing.astype(np.int32)),
            draw_events=self.events,
        )

    def events(self, count: int, random: Random) -> IntegerEvents:
        shape = (count, self.attributes)
        return IntegerEvents.from_dense(random.integers(0, self.cardinality, shape, np.int32))


def _find_deviating(
    spec: SelectionSpec, target: float, space: _Space, random: Random
) -> Conjunctions:
    """Return the first attempt that comes near enough to the deviation asked for."""
    reached = []
    for _ in range(ATTEMPTS):
        ranges = spread_ranges(spec, space.cardinality, LAYOUTS, random)
        queries = space.conjunctions(ranges, _find_gathering(target, ranges, space))
        reached.append(measure_region_deviation(queries))
        if abs(reached[-1] - target) <= TOLERANCE:
            return queries
    nearest = min(reached, key=lambda deviation: abs(deviation - target))
    raise UsageError(
        f"a standard deviation of {target} is out of reach for {spec.predicates} predicates on "
        f"{spec.attributes} attributes; the nearest found was {nearest:.3f}"
    )


def _find_gathering(target: float, ranges: Ranges, space: _Space) -> float:
    """Return how far the ranges must move for the deviation wanted, by halving."""

    def deviation(gathered: float) -> float:
        return measure_region_deviation(space.conjunctions(ranges, gathered))

    # At 0 the ranges lie evenly, at 2 all lie around one place and are equally wide.
    low, high = 0.0, 2.0
    deviations = {end: deviation(end) for end in (low, high)}
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        deviations[middle] = deviation(middle)
        # The deviation grows as ranges gather, on the whole; the best of all tries is taken.
        low, high = (middle, high) if deviations[middle] < target else (low, middle)
    return min(deviations, key=lambda gathered: abs(deviations[gathered] - target))


def _check(spec: SelectionSpec, attributes: int, cardinality: int) -> None:
    """Refuse what cannot be."""
    if spec.attributes > attributes:
        raise UsageError(f"{spec.attributes} p-attributes, where there are {attributes} attributes")
    if not 0 < spec.matching < 1:
        raise UsageError(f"a share of {spec.matching} that matches; it must be above 0, below 1")
    if cardinality < 3:
        raise UsageError("an attribute needs three values at least")
