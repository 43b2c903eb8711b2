"""The synthetic tuples of the ASC paper (section 6): 20 integers from 0 to 99.

D1 is uniform. Of D2 the paper says only that it is not. Here each attribute has a place of its own
around which its values gather: the chance of a value falls off with its distance from there as a
normal distribution does, narrow for one attribute (a deviation of 8) and broad for another (40).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.integer_events import Numbers, integer_stream
from headgate.schema import INT

ATTRIBUTES, CARDINALITY = 20, 100
NARROWEST, BROADEST = 0.08, 0.4  # deviations, as a part of the domain

Chances = npt.NDArray[np.float64]


def uniform_tuples(
    count: int, *, attributes: int = ATTRIBUTES, cardinality: int = CARDINALITY, seed: int
) -> pa.Table:
    """D1: every value is as likely as any other."""
    random = np.random.default_rng([seed, 1])
    return _table(random.integers(0, cardinality, (attributes, count), np.int32))


def skewed_tuples(
    count: int,
    *,
    attributes: int = ATTRIBUTES,
    cardinality: int = CARDINALITY,
    places: int = 0,
    seed: int,
) -> pa.Table:
    """D2: the values of each attribute gather around a place.

    Law: tuples with the same `places` have the same distribution, whatever their seed.
    """
    random = np.random.default_rng([seed, 2])
    columns = np.empty((attributes, count), np.int32)
    for column, chances in zip(columns, _chances(attributes, cardinality, places), strict=True):
        column[:] = np.searchsorted(np.cumsum(chances)[:-1], random.random(count), side="right")
    return _table(columns)


def _chances(attributes: int, cardinality: int, places: int) -> Chances:
    """How likely each value is, a row for each attribute."""
    random = np.random.default_rng(places)
    centre = random.random((attributes, 1)) * cardinality
    share = random.permutation(np.geomspace(NARROWEST, BROADEST, attributes))
    distance = (np.arange(cardinality) + 0.5 - centre) / (share[:, None] * cardinality)
    weights = np.exp(-(distance**2) / 2)
    chances: Chances = weights / weights.sum(axis=1, keepdims=True)
    return chances


def _table(columns: Numbers) -> pa.Table:
    names = list(integer_stream(len(columns)).names)
    return pa.Table.from_arrays([pa.array(column, INT.arrow) for column in columns], names=names)
