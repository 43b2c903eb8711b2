"""Small random conjunctive queries, that are bounded about as often as not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from headgate.stateful.analysis.theory.conjunctive import (
    Bound,
    BoundComparator,
    Comparator,
    Comparison,
    Conjunctive,
    Line,
    Variable,
)
from headgate.stateful.analysis.theory.definition import estimate_orders


@dataclass(frozen=True)
class Family:
    """What may occur in the queries of a family."""

    operators: tuple[Comparator, ...] = ("<", "<", "<=", "=")
    whole: bool = True
    dense: float = 0.0
    finite: float = 0.0
    windows: float = 0.0
    self_joins: bool = False
    lines: int = 1
    one_gap: bool = False
    orders: int = 2_000


FAMILIES = {
    "integers": Family(("<", "<", "<", "=")),
    "at most": Family(("<", "<=", "<=", "=")),
    "dense": Family(whole=False, dense=1.0),
    "mixed": Family(whole=False, dense=0.6, finite=0.15),
    "pinned": Family(whole=False, dense=0.9, one_gap=True),
    "finite": Family(finite=0.3),
    "windows": Family(windows=0.4, whole=False, dense=0.4),
    "two lines": Family(lines=2),
}


def queries(family: Family, seed: int, count: int) -> Iterator[Conjunctive]:
    """So many queries of a family, each of which can be ordered in few ways only."""
    numbers = random.Random(seed)
    result = 0
    while result < count:
        query = random_query(numbers, family)
        if estimate_orders(query) <= family.orders:
            yield query
            result += 1


def random_query(numbers: random.Random, family: Family) -> Conjunctive:
    """1 to 3 streams of 1 to 3 variables, 0 to 3 constants, 0 to 2 outputs.

    Nearly all comparisons hold of one hidden assignment, so that few queries are contradictory.
    Half of the queries are built around two joins of the first stream, which conflict, or just do
    not.
    """
    focused = numbers.random() < 0.5
    attributes = _around_two_joins(numbers) if focused else _any_attributes(numbers)
    streams = attributes[-1][0] + 1
    names = tuple(numbers.choice("st") for _ in range(streams)) if family.self_joins else "stu"
    variables = tuple(_variable(numbers, family, *attribute) for attribute in attributes)
    constants, values = _points(numbers, family)
    hidden = [numbers.choice(values) for _ in variables]
    likely = 1.0 if family.one_gap else numbers.choice((0.2, 0.4, 0.8))
    bounds = tuple(_bounds(numbers, variables, hidden, constants, likely))
    pairs = _focused_pairs(numbers, variables) if focused else _any_pairs(numbers, variables)
    return Conjunctive(
        tuple(names[:streams]),
        variables,
        tuple(_comparisons(numbers, family, pairs, hidden)),
        bounds,
        tuple(_outputs(numbers, variables, bounds)),
        distinct=numbers.random() < (0.9 if focused else 0.5),
        windowed=frozenset(s for s in range(streams) if numbers.random() < family.windows),
        lines=tuple(Line(family.whole) for _ in range(family.lines)),
    )


def _any_attributes(numbers: random.Random) -> list[tuple[int, str]]:
    streams = numbers.choices((1, 2, 3), (1, 6, 5))[0]
    count = [numbers.choices((1, 2, 3), (3, 4, 3))[0] for _ in range(streams)]
    return [(source, name) for source in range(streams) for name in "abc"[: count[source]]]


def _around_two_joins(numbers: random.Random) -> list[tuple[int, str]]:
    """Two variables of the first stream, two of others, and perhaps one more of any."""
    other = numbers.choice((1, 2))
    result = [(0, "a"), (0, "b"), (1, "c"), (other, "d")]
    if numbers.random() < 0.5:
        result.append((numbers.randrange(other + 1), "p"))
    return sorted(result)


def _any_pairs(
    numbers: random.Random, variables: tuple[Variable, ...]
) -> Iterator[tuple[int, int]]:
    for _ in range(numbers.randrange(8)):
        left, right = numbers.randrange(len(variables)), numbers.randrange(len(variables))
        if left != right and variables[left].line == variables[right].line:
            yield left, right


def _focused_pairs(
    numbers: random.Random, variables: tuple[Variable, ...]
) -> Iterator[tuple[int, int]]:
    """a with c and b with d; and now and then any of the others."""
    for left, right in combinations(range(len(variables)), 2):
        joined = {variables[left].name, variables[right].name} in ({"a", "c"}, {"b", "d"})
        if variables[left].line == variables[right].line and (joined or numbers.random() < 0.35):
            yield left, right


def _points(numbers: random.Random, family: Family) -> tuple[list[int], list[int]]:
    """The constants, and the values of the hidden assignment, some of them constants."""
    if family.one_gap:
        return [0, 30], numbers.sample(range(1, 30), 7)
    constants = numbers.sample(range(0, 24, numbers.choice((1, 2, 8))), 3)
    constants = constants[: numbers.choices(range(4), (2, 4, 3, 2))[0]]
    if family.finite and not constants:
        constants = [8]
    return constants, [*constants, *(numbers.randrange(-9, 33) for _ in range(4))]


def _variable(numbers: random.Random, family: Family, source: int, name: str) -> Variable:
    return Variable(
        source,
        name,
        numbers.randrange(family.lines),
        dense=name != "p" and numbers.random() < family.dense,
        finite=numbers.random() < family.finite,
    )


def _comparisons(
    numbers: random.Random, family: Family, pairs: Iterator[tuple[int, int]], hidden: list[int]
) -> Iterator[Comparison]:
    for one, other in pairs:
        left, right = (one, other) if hidden[one] <= hidden[other] else (other, one)
        yield Comparison(left, _operator(numbers, family, hidden[right] - hidden[left]), right)


def _operator(numbers: random.Random, family: Family, distance: int) -> Comparator:
    """Mostly one that holds of values so far apart."""
    operator = numbers.choice(family.operators)
    if not distance and operator == "<" and numbers.random() < 0.7:
        return numbers.choice([o for o in family.operators if o != "<"])
    return "<" if distance and operator == "=" and numbers.random() < 0.9 else operator


def _bounds(
    numbers: random.Random,
    variables: tuple[Variable, ...],
    hidden: list[int],
    constants: list[int],
    likely: float,
) -> Iterator[Bound]:
    """Comparisons with constants; finite variables always lie between two of them."""
    for number, variable in enumerate(variables):
        if variable.finite:
            low, high = sorted(numbers.choices(constants, k=2))
            hidden[number] = max(low, min(hidden[number], high))
            yield Bound(number, ">=", low)
            yield Bound(number, "<=", high)
        for constant in constants:
            if numbers.random() < likely:
                operator = _comparator(numbers, hidden[number], constant)
                yield Bound(number, operator, constant)


def _comparator(numbers: random.Random, value: int, constant: int) -> BoundComparator:
    if numbers.random() < 0.03:
        return numbers.choice(("<", "<=", "=", ">=", ">"))
    if value == constant:
        return numbers.choice(("<=", "=", "=", ">="))
    return numbers.choice(("<", "<=") if value < constant else (">", ">="))


def _outputs(
    numbers: random.Random, variables: tuple[Variable, ...], bounds: tuple[Bound, ...]
) -> Iterator[int]:
    """Mostly variables that constants hold, since any other decides the verdict by itself."""
    held = {bound.variable for bound in bounds if bound.operator == "="}
    for variable in numbers.sample(range(len(variables)), min(2, len(variables))):
        if numbers.random() < (0.8 if variable in held else 0.08):
            yield variable
