"""Which query of a set has a predicate on which attribute, with exact totals.

Attributes are not equally popular: the most popular one is so many times as likely to be used as
the least. So some few cover most queries, which is what makes their order matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.errors import UsageError

Usage = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SelectionSpec:
    """A row of Table 1 of the ASC paper: how many queries, predicates and p-attributes.

    `deviation` is how much the regions of an attribute differ; None leaves it to chance. The rest
    the paper does not say: a query has at least `fewest` predicates, and accepts the share
    `matching` of uniform tuples on average; and the attributes differ in `popularity`.
    """

    queries: int
    predicates: int
    attributes: int
    deviation: float | None = None
    fewest: int = 1
    matching: float = 0.003
    popularity: float = 6.0


def selection_usage(spec: SelectionSpec, random: np.random.Generator) -> Usage:
    """A row for each query and a column for each attribute; both are used at least once.

    >>> used = selection_usage(SelectionSpec(30, 78, 6), np.random.default_rng(1))
    >>> used.shape, int(used.sum()), bool(used.any(axis=0).all()), bool(used.any(axis=1).all())
    ((30, 6), 78, True, True)
    """
    _check(spec)
    shape = (spec.queries, spec.attributes)
    weights = random.permutation(np.geomspace(1, spec.popularity, spec.attributes))
    keys = random.gumbel(size=shape) + np.log(weights)
    covering = np.arange(spec.attributes)
    keys[random.permutation(spec.queries)[covering % spec.queries], covering] = np.inf
    likeliest = np.argpartition(-keys, spec.fewest - 1, axis=1)[:, : spec.fewest]
    np.put_along_axis(keys, likeliest, np.inf, axis=1)
    if np.isinf(keys).sum() > spec.predicates:
        raise UsageError(_too_few(spec))
    used = np.zeros(keys.size, np.bool_)
    used[np.argpartition(-keys, spec.predicates - 1, axis=None)[: spec.predicates]] = True
    return used.reshape(shape)


def _check(spec: SelectionSpec) -> None:
    """Refuses what cannot be."""
    if spec.queries < 1 or spec.attributes < 1:
        raise UsageError("a set of selections needs a query and an attribute at least")
    if not 1 <= spec.fewest <= spec.attributes:
        raise UsageError(f"at least {spec.fewest} predicates of {spec.attributes} attributes")
    if spec.predicates > spec.queries * spec.attributes:
        raise UsageError(
            f"{spec.predicates} predicates; {spec.queries} queries on {spec.attributes} attributes "
            f"have at most {spec.queries * spec.attributes}"
        )
    if spec.predicates < max(spec.queries * spec.fewest, spec.attributes):
        raise UsageError(_too_few(spec))


def _too_few(spec: SelectionSpec) -> str:
    return (
        f"{spec.predicates} predicates are too few for {spec.queries} queries with at least "
        f"{spec.fewest} each that use all of {spec.attributes} attributes"
    )
