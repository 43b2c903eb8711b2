"""What holds between the variables and constants of a query, as rows of bits.

Beside `closure` this is the obvious version, and shares nothing with it: rows grow with every
comparison that is put in, and are always closed under transitivity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

from headgate.stateful.analysis.theory.conjunctive import Conjunctive

Chain = tuple[int, ...]  # elements of one stream and line in strictly ascending order


@dataclass(frozen=True, slots=True)
class Elements:
    """The variables of a query by their numbers, and after them the constants of every line.

    A line without constants has a dummy one, of value None, so that both of its ends exist.
    """

    query: Conjunctive
    constants: tuple[tuple[int, int | None], ...]
    of_line: tuple[Chain, ...]
    of_source: tuple[int, ...]

    @staticmethod
    def of(query: Conjunctive) -> Elements:
        constants: list[tuple[int, int | None]] = []
        of_line: list[Chain] = []
        # of_line: the numbers of a line's constants, ascending. of_source: a stream's variables as
        # a mask.
        for line in range(len(query.lines)):
            first = len(query.variables) + len(constants)
            values: list[int | None] = [*query.constants(line)] or [None]
            constants += [(line, value) for value in values]
            of_line.append(tuple(range(first, len(query.variables) + len(constants))))
        sources = range(len(query.streams))
        of_source = tuple(union(1 << v for v in query.variables_of(s)) for s in sources)
        return Elements(query, tuple(constants), tuple(of_line), of_source)

    def value(self, constant: int) -> int | None:
        return self.constants[constant - len(self.query.variables)][1]

    @property
    def count(self) -> int:
        return len(self.query.variables) + len(self.constants)


@dataclass(slots=True)
class Order:
    """Everything that is known to hold between elements, closed under transitivity.

    Bit f of `at_most[e]`, `at_least[e]` and `below[e]` says that e <= f, e >= f and e < f.
    """

    elements: Elements
    at_most: list[int]
    at_least: list[int]
    below: list[int]

    def copy(self) -> Order:
        return Order(self.elements, self.at_most[:], self.at_least[:], self.below[:])

    def same(self, element: int) -> int:
        """Return the equivalence class of an element (Definition 4.4)."""
        return self.at_most[element] & self.at_least[element]

    def put(self, low: int, high: int, *, strict: bool) -> None:
        """Add `low <= high`, or `low < high`, and all that follows from it."""
        known = self.below[low] if strict else self.at_most[low]
        if known >> high & 1:
            return
        # Whatever is at most `low` is now at most whatever is at least `high`.
        over, under = self.at_most[high], self.at_least[low]
        for element in bits(under):
            # The step is strict if the new comparison is, or one before it; else only one after it
            # can be.
            certain = strict or self.below[element] >> low & 1
            self.below[element] |= over if certain else self.below[high]
            self.at_most[element] |= over
        for element in bits(over):
            self.at_least[element] |= under

    @property
    def contradictory(self) -> bool:
        return any(row >> element & 1 for element, row in enumerate(self.below))


def compute_order(query: Conjunctive) -> Order:
    """Return P⁺ of a query as it was written, by transitivity alone."""
    elements = Elements.of(query)
    identity = [1 << element for element in range(elements.count)]
    order = Order(elements, identity, identity[:], [0] * elements.count)
    # Constants are ordered by their values, whatever is written.
    for chain in elements.of_line:
        for low, high in pairwise(chain):
            order.put(low, high, strict=True)
    for comparison in query.comparisons:
        _write(order, comparison.left, comparison.operator, comparison.right)
    for bound in query.bounds:
        line = query.variables[bound.variable].line
        chain = elements.of_line[line]
        constant = chain[query.constants(line).index(bound.constant)]
        _write(order, bound.variable, bound.operator, constant)
    return order


def union(masks: Iterable[int]) -> int:
    """Return the bits that are set in any of the masks."""
    return reduce(or_, masks, 0)


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set.

    >>> list(bits(0b1011))
    [0, 1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _write(order: Order, left: int, operator: str, right: int) -> None:
    if operator in ("<", "<=", "="):
        order.put(left, right, strict=operator == "<")
    if operator in (">", ">=", "="):
        order.put(right, left, strict=operator == ">")
