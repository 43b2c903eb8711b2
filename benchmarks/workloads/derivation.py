"""From `a = v` to predicates that it implies: Table II of the BE-Tree paper, for whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.integer_events import (
    ABSENT,
    BETWEEN,
    EQUAL,
    IN,
    UNEQUAL,
    Codes,
    IntegerEvents,
    Numbers,
    Offsets,
    from_below,
    has_list,
    to_above,
)

# Base expressions: `a = v` for some attributes, drawn uniformly or by Zipf's law.

ROWS = 4_096  # for which noise is drawn at a time


@dataclass(frozen=True)
class Space:
    """Attributes from 0, each with as many values, and how their popularity falls."""

    dimensions: int
    cardinality: int
    zipf: float


@dataclass(frozen=True, eq=False)
class Bases:
    """Base expression i says `attribute number attribute[i, k] = value[i, k]`, for every k."""

    attribute: Numbers
    value: Numbers

    def __len__(self) -> int:
        return len(self.attribute)


def base_expressions(count: int, size: int, space: Space, random: Random) -> Bases:
    """Draw expressions over `size` attributes each."""
    free = np.full((count, space.dimensions), ABSENT, np.int32)
    attribute = _free_attributes(free, size, space, random)
    return Bases(attribute, random.integers(0, space.cardinality, attribute.shape, np.int32))


def events_of(bases: Bases, extra: int, space: Space) -> Callable[[int, Random], IntegerEvents]:
    """Draw events: any of the base expressions, and `extra` attributes more."""

    def draw(count: int, random: Random) -> IntegerEvents:
        chosen = random.integers(0, len(bases), count)
        dense = np.full((count, space.dimensions), ABSENT, np.int32)
        np.put_along_axis(dense, bases.attribute[chosen], bases.value[chosen], axis=1)
        if extra:
            more = _free_attributes(dense, extra, space, random)
            values = random.integers(0, space.cardinality, more.shape, np.int32)
            np.put_along_axis(dense, more, values, axis=1)
        return IntegerEvents.from_dense(dense)

    return draw


def _free_attributes(dense: Numbers, size: int, space: Space, random: Random) -> Numbers:
    """Return for each row `size` attributes of those that are absent, ascending.

    The greatest of logarithms of weights with Gumbel noise are a draw without putting back.
    """
    weights = -space.zipf * np.log(np.arange(1, space.dimensions + 1))
    attributes = np.empty((len(dense), size), np.int32)
    for start in range(0, len(dense), ROWS):
        rows = dense[start : start + ROWS]
        noise: npt.NDArray[np.float64] = random.gumbel(size=rows.shape) + weights
        noise[rows != ABSENT] = -np.inf
        attributes[start : start + ROWS] = np.argpartition(noise, -size, axis=1)[:, -size:]
    return np.sort(attributes, axis=1)


LONGEST_LIST = 6

Random = np.random.Generator


@dataclass(frozen=True, eq=False)
class Derived:
    """Predicates of several queries, one behind the other; query i has `sizes[i]` of them.

    Predicate k has `counts[k]` values in a list, and `values` has all lists one behind the other.
    The rest is as in `Conjunctions`.
    """

    sizes: Offsets
    attribute: Numbers
    operator: Codes
    low: Numbers
    high: Numbers
    counts: Codes
    values: Numbers


@dataclass(frozen=True)
class Rules:
    """How predicates are derived: how many stay `=`, and what becomes of the others."""

    cardinality: int
    equality: float
    range_size: float
    operators: tuple[int, ...]


def derive(
    sizes: Offsets, attribute: Numbers, value: Numbers, rules: Rules, random: Random
) -> Derived:
    """Derive predicates that each accept their value.

    >>> rules = Rules(48, equality=0.0, range_size=0.12, operators=(BETWEEN,))
    >>> value = np.full(1_000, 40, np.int32)
    >>> found = derive(np.array([1_000]), value, value, rules, np.random.default_rng(1))
    >>> bool(np.all((found.low <= value) & (value <= found.high) & (found.high < 48)))
    True
    >>> round(float(np.mean(found.high - found.low + 1)))
    6
    """
    operator = _operators(len(value), rules, random)
    low, high = value.copy(), value.copy()
    last = rules.cardinality - 1
    for chosen, ends in ((from_below(operator), high), (to_above(operator), low)):
        other = low if ends is high else high
        limit = last if ends is high else 0
        ends[chosen] = _between(value[chosen], limit, random)
        other[chosen] = last - limit
    chosen = operator == BETWEEN
    low[chosen], high[chosen] = _ranges(value[chosen], rules, random)
    chosen = operator == UNEQUAL
    low[chosen] = high[chosen] = _others(value[chosen], rules, random)
    chosen = has_list(operator)
    lists = _lists(value[chosen], operator[chosen] == IN, rules, random)
    listed = lists < rules.cardinality
    low[chosen], high[chosen] = lists[:, 0], np.where(listed, lists, -1).max(axis=1, initial=-1)
    counts = np.zeros(len(value), np.uint8)
    counts[chosen] = listed.sum(axis=1)
    return Derived(sizes, attribute, operator, low, high, counts, lists[listed])


def concatenate(parts: Sequence[Derived]) -> Derived:
    """Return all parts one behind the other."""
    names = [field.name for field in fields(Derived)]
    return Derived(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _operators(count: int, rules: Rules, random: Random) -> Codes:
    """Draw `=` with the probability that it stays, else any of the others."""
    operator = np.full(count, EQUAL, np.uint8)
    if rules.operators:
        chosen = random.random(count, np.float32) >= rules.equality
        others = np.array(rules.operators, np.uint8)
        operator[chosen] = others[random.integers(0, len(others), int(chosen.sum()))]
    return operator


def _between(value: Numbers, limit: int, random: Random) -> Numbers:
    """Draw from each value to the limit, both included, evenly."""
    steps = np.abs(limit - value) + 1
    drawn = (random.random(len(value)) * steps).astype(np.int32)
    ends: Numbers = value + np.sign(limit - value) * drawn
    return ends


def _ranges(value: Numbers, rules: Rules, random: Random) -> tuple[Numbers, Numbers]:
    """Return ranges that hold the value and lie in the domain; all widths up to twice the mean."""
    widest = max(1, min(rules.cardinality, round(2 * rules.range_size * rules.cardinality) - 1))
    width = random.integers(1, widest, len(value), np.int32, endpoint=True)
    first = np.maximum(0, value - width + 1)
    last = np.minimum(value, rules.cardinality - width)
    low = first + (random.random(len(value)) * (last - first + 1)).astype(np.int32)
    return low, low + width - 1


def _others(value: Numbers, rules: Rules, random: Random) -> Numbers:
    """Return for each value one that is not it."""
    steps = random.integers(1, rules.cardinality, value.shape, np.int32)
    others: Numbers = (value + steps) % rules.cardinality
    return others


def _lists(
    value: Numbers, includes: npt.NDArray[np.bool_], rules: Rules, random: Random
) -> Numbers:
    """Draw up to six distinct values a row, ascending, with the value itself or without.

    What a row does not need comes last and is out of the domain.
    """
    repeated = np.repeat(value[:, None], LONGEST_LIST, axis=1)
    lists = _others(repeated, rules, random)
    lists[includes, 0] = value[includes]
    length = random.integers(1, LONGEST_LIST, (len(value), 1), endpoint=True)
    lists[np.arange(LONGEST_LIST) >= length] = rules.cardinality
    lists.sort(axis=1)
    lists[:, 1:][lists[:, 1:] == lists[:, :-1]] = rules.cardinality
    lists.sort(axis=1)
    return lists
