"""Events that are expressions themselves (section 8.6.11 of the BE-Tree paper)."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.conjunctions import Conjunctions, Listed
from benchmarks.workloads.derivation import Rules, derive
from benchmarks.workloads.operators import BETWEEN


def event_expressions(
    queries: Conjunctions,
    count: int,
    *,
    equality: float = 0.3,
    range_size: float = 0.12,
    seed: int,
) -> Conjunctions:
    """Events of these queries that are less certain: `=` stays as it is, or turns into BETWEEN.

    Every range holds the value that the event had, so that it meets every query that the event
    satisfied; and it meets more than those.

    >>> from benchmarks.workloads import begen
    >>> queries = begen(10, attributes=3, predicates=2, seed=1)
    >>> next(event_expressions(queries, 1, seed=1).where_clauses())
    'a13 BETWEEN 43 AND 47 AND a193 BETWEEN 1 AND 1 AND a309 BETWEEN 20 AND 24'
    """
    events = queries.events(count, seed=seed)
    rules = Rules(queries.cardinality, equality, range_size, (BETWEEN,))
    random = np.random.default_rng([seed, 2])
    found = derive(np.diff(events.offsets), events.attribute, events.value, rules, random)
    nothing = np.empty(0, np.int64)
    return Conjunctions(
        stream=queries.stream,
        cardinality=queries.cardinality,
        offsets=events.offsets,
        attribute=found.attribute,
        operator=found.operator,
        low=found.low,
        high=found.high,
        listed=Listed(nothing, np.zeros(1, np.int64), found.values),
        draw_events=queries.draw_events,
    )
