"""Small random conjunctive queries, that are bounded about as often as not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.bounded.conjunctive import (
    Bound,
    BoundComparator,
    Comparator,
    Comparison,
    Conjunctive,
    Line,
    Variable,
)
from headgate.bounded.orders import maximum_orders


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
    "pinned": Family(whole=False, dense=0.7, one_gap=True),
    "finite": Family(finite=0.3),
    "windows": Family(windows=0.4, whole=False, dense=0.4),
    "two lines": Family(lines=2),
}


def queries(family: Family, seed: int, count: int) -> Iterator[Conjunctive]:
    """So many queries of a family, each of which can be ordered in few ways only."""
    numbers = random.Random(seed)
    found = 0
    while found < count:
        query = random_query(numbers, family)
        if maximum_orders(query) <= family.orders:
            yield query
            found += 1


def random_query(numbers: random.Random, family: Family) -> Conjunctive:
    """1 to 3 streams of 1 to 3 variables, 0 to 3 constants, 0 to 2 outputs.

    Nearly all comparisons hold of one hidden assignment, so that few queries are contradictory.
    """
    streams = numbers.choices((1, 2, 3), (1, 6, 5))[0]
    names = tuple(numbers.choice("st") for _ in range(streams)) if family.self_joins else "stu"
    variables = tuple(
        _variable(numbers, family, source, name)
        for source in range(streams)
        for name in "abc"[: numbers.choices((1, 2, 3), (3, 4, 3))[0]]
    )
    constants = numbers.sample(range(0, 24, numbers.choice((1, 2, 8))), 3)
    constants = constants[: numbers.choices(range(4), (2, 4, 3, 2))[0]]
    if not constants and any(variable.finite for variable in variables):
        constants = [8]
    values = (*constants, *(numbers.randrange(-9, 33) for _ in range(4)))
    if family.one_gap:
        constants, values = [0, 30], tuple(numbers.sample(range(1, 30), 7))
    hidden = [numbers.choice(values) for _ in variables]
    bounds = tuple(_bounds(numbers, variables, hidden, constants))
    return Conjunctive(
        tuple(names[:streams]),
        variables,
        tuple(_comparisons(numbers, family, variables, hidden)),
        bounds,
        tuple(_outputs(numbers, variables, bounds)),
        distinct=numbers.random() < 0.65,
        windowed=frozenset(s for s in range(streams) if numbers.random() < family.windows),
        lines=tuple(Line(family.whole) for _ in range(family.lines)),
    )


def _variable(numbers: random.Random, family: Family, source: int, name: str) -> Variable:
    return Variable(
        source,
        name,
        numbers.randrange(family.lines),
        dense=numbers.random() < family.dense,
        finite=numbers.random() < family.finite,
    )


def _comparisons(
    numbers: random.Random, family: Family, variables: tuple[Variable, ...], hidden: list[int]
) -> Iterator[Comparison]:
    for _ in range(numbers.choices(range(8), (1, 3, 4, 5, 5, 4, 3, 2))[0]):
        left, right = numbers.randrange(len(variables)), numbers.randrange(len(variables))
        if left == right or variables[left].line != variables[right].line:
            continue
        if hidden[left] > hidden[right]:
            left, right = right, left
        operator = numbers.choice(family.operators)
        if hidden[left] == hidden[right] and operator == "<" and numbers.random() < 0.9:
            operator = numbers.choice([o for o in family.operators if o != "<"])
        if operator == "=" and hidden[left] != hidden[right] and numbers.random() < 0.8:
            operator = "<"
        yield Comparison(left, operator, right)


def _bounds(
    numbers: random.Random,
    variables: tuple[Variable, ...],
    hidden: list[int],
    constants: list[int],
) -> Iterator[Bound]:
    """Comparisons with constants; finite variables always lie between two of them."""
    likely = 1.3 if len(constants) == 2 and constants[1] == 30 else numbers.choice((0.25, 0.5, 0.9))
    for number, variable in enumerate(variables):
        if variable.finite:
            low, high = sorted(numbers.choices(constants, k=2))
            hidden[number] = max(low, min(hidden[number], high))
            yield Bound(number, ">=", low)
            yield Bound(number, "<=", high)
        for constant in constants:
            if numbers.random() < likely / len(constants) ** 0.5:
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
