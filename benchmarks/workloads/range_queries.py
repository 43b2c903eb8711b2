"""Range queries on twenty attributes that every event has: the setting of the ASC paper.

Its section 6 has events of 20 integers from 0 to 99, uniform (D1) or not (D2), and sets of about
fifty queries with four predicates each; here there may be thousands. `skew` 1 is uniform, and with
`skew` s a value is ⌊100·u^s⌋ for a uniform u, so that small ones are frequent. Ranges are laid out
in u, so a query matches with the product of its widths whatever the skew. That product is the same
for every query but for rounding to whole values, and is what was asked for; up to `skew` 2 rounding
adds less than a quarter.

The paper does not say what its ranges look like: here a third is open below, a third above.
"""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.conjunctions import Conjunctions, Listed
from benchmarks.workloads.integer_events import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    IntegerEvents,
    Numbers,
    integer_stream,
)

EVENNESS = 4.0  # of the widths in a query; the larger, the more alike

Random = np.random.Generator


def generate_range_queries(
    count: int,
    *,
    attributes: int = 20,
    cardinality: int = 100,
    constrained: int = 4,
    matching: float = 0.01,
    skew: float = 1.0,
    seed: int,
) -> Conjunctions:
    """Return queries that one of their events satisfies with the probability `matching`.

    >>> next(generate_range_queries(1, seed=2).where_clauses())
    'a6 >= 64 AND a7 <= 21 AND a10 <= 31 AND a18 BETWEEN 20 AND 57'
    """
    random = np.random.default_rng([seed, 0])
    numbers = np.tile(np.arange(attributes, dtype=np.int32), (count, 1))
    attribute = np.sort(random.permuted(numbers, axis=1)[:, :constrained], axis=1)
    operator = random.choice(np.array([AT_MOST, AT_LEAST, BETWEEN], np.uint8), attribute.shape)
    width = matching ** random.dirichlet([EVENNESS] * constrained, count)
    place = np.select(
        [operator == AT_MOST, operator == AT_LEAST], [0, 1], random.random(width.shape)
    )
    start = place * (1 - width)
    low = np.rint(cardinality * start**skew).astype(np.int32)
    high = np.rint(cardinality * np.minimum(1, start + width) ** skew).astype(np.int32) - 1
    low = np.minimum(low, cardinality - 1)
    nothing = np.empty(0, np.int64)
    return Conjunctions(
        stream=integer_stream(attributes),
        cardinality=cardinality,
        offsets=np.arange(count + 1) * constrained,
        attribute=attribute.ravel(),
        operator=operator.ravel(),
        low=low.ravel(),
        high=np.maximum(low, high).ravel(),
        listed=Listed(nothing, np.zeros(1, np.int64), nothing.astype(np.int32)),
        draw_events=lambda n, draw: _events(n, attributes, cardinality, skew, draw),
    )


def _events(
    count: int, attributes: int, cardinality: int, skew: float, random: Random
) -> IntegerEvents:
    """Return events with a value in every attribute, independent of each other."""
    dense: Numbers = (cardinality * random.random((count, attributes)) ** skew).astype(np.int32)
    return IntegerEvents.from_dense(dense)
