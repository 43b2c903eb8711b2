"""BEGen on real names: queries derived from the q-grams of names (section 8.2.2, Table V).

A base expression is a name: `pair = letter` for some of its pairs of letters. All else is as in
`begen`: queries keep some of these predicates and turn part of those into ranges or sets, events
are base expressions themselves, and their number makes the matching probability.

Base expressions have as many attributes as each other, so only names with so many are taken, and of
these as many pairs, at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.workloads.base_expressions import Bases, Space
from benchmarks.workloads.begen import EXPRESSIVENESS, Generator, Level, Shape, check
from benchmarks.workloads.conjunctions import Conjunctions
from benchmarks.workloads.derivation import Rules
from benchmarks.workloads.integer_events import IntegerEvents
from benchmarks.workloads.letters import LETTERS
from benchmarks.workloads.q_grams import PAIRS, Indices, gram_events, gram_stream
from headgate.errors import UsageError

Random = np.random.Generator


def begen_of_names(
    names: Sequence[str],
    count: int,
    *,
    predicates: float = 6,
    fewest: int = 3,
    attributes: int = 10,
    operators: Level = "medium",
    equality: float = 0.3,
    range_size: float = 0.12,
    matching: float = 0.01,
    seed: int,
) -> Conjunctions:
    """`count` queries, each of which one of their events satisfies with probability `matching`.

    >>> names = "Ouagadougou", "Tegucigalpa"
    >>> queries = begen_of_names(names, 10, predicates=4, attributes=7, matching=0.5, seed=1)
    >>> next(queries.where_clauses())
    'g_ig > -1 AND g_lp <= 6 AND g_te < 8'
    """
    shape = Shape(predicates, fewest, attributes, extra=0)
    space = Space(PAIRS, len(LETTERS), zipf=0.0)
    rules = Rules(len(LETTERS), equality, range_size, EXPRESSIVENESS[operators])
    check(shape, space, matching)
    events = gram_events(names)
    enough = np.flatnonzero(np.diff(events.offsets) >= attributes)
    if len(enough) == 0:
        raise UsageError(f"no name has {attributes} different pairs of letters; ask for fewer")
    random = np.random.default_rng([seed, 0])
    found = _OfNames(shape, space, rules, random, events, enough).run(count, matching)

    def draw(count: int, random: Random) -> IntegerEvents:
        return replace(found.draw_events(count, random), stream=gram_stream())

    return replace(found, stream=gram_stream(), draw_events=draw)


@dataclass(frozen=True)
class _OfNames(Generator):
    """Base expressions are of these events, each of which has enough attributes."""

    names: IntegerEvents
    enough: Indices

    def bases(self, count: int) -> Bases:
        """Different names, as long as there are enough of them."""
        several = -(-count // len(self.enough))
        chosen = self.random.permuted(np.tile(self.enough, several))[:count]
        attribute = np.empty((count, self.shape.base), np.int32)
        value = np.empty_like(attribute)
        for row, name in enumerate(chosen.tolist()):
            first, last = self.names.offsets[name : name + 2].tolist()
            kept = np.sort(self.random.permutation(last - first)[: self.shape.base]) + first
            attribute[row], value[row] = self.names.attribute[kept], self.names.value[kept]
        return Bases(attribute, value)
