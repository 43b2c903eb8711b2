"""What holds between the variables and constants of a query, as rows of bits.

Beside `closure` this is the obvious version, and shares nothing with it: rows grow with every
comparison that is put in, and are always closed under transitivity.

Under DISTINCT, an occurrence of a stream may be superfluous ("Characterizing Memory Requirements
…", Definition 8.2): if every comparison of it holds of another occurrence of the same stream too,
then a row that stands for the other may stand for both. What is left has the same closure,
restricted to its elements. Of conditions that the conjunctive query does not show, it says where
they keep one occurrence from covering another.
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
        # of_line: the numbers of a line's constants, ascending. of_source: masks of variables.
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
            # Strict if the new comparison is, or one before it; else only where one after it is.
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
        _add_comparison(order, comparison.left, comparison.operator, comparison.right)
    for bound in query.bounds:
        line = query.variables[bound.variable].line
        chain = elements.of_line[line]
        constant = chain[query.constants(line).index(bound.constant)]
        _add_comparison(order, bound.variable, bound.operator, constant)
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


def _add_comparison(order: Order, left: int, operator: str, right: int) -> None:
    if operator in ("<", "<=", "="):
        order.put(left, right, strict=operator == "<")
    if operator in (">", ">=", "="):
        order.put(right, left, strict=operator == ">")


@dataclass(frozen=True, slots=True)
class Occurrences:
    """What is left of a query: its occurrences, and its outputs in terms of them.

    `covered_by` has those that are left out, in that order, each with the one that covers it.
    """

    sources: frozenset[int]
    outputs: tuple[int, ...]
    covered_by: tuple[tuple[int, int], ...] = ()

    def elements(self, order: Order) -> int:
        """Return the constants, and the variables of the occurrences that are left."""
        constants = union(1 << c for chain in order.elements.of_line for c in chain)
        return constants | union(order.elements.of_source[source] for source in self.sources)


def keep_all(query: Conjunctive) -> Occurrences:
    """Return all occurrences of a query, none left out."""
    return Occurrences(frozenset(range(len(query.streams))), query.outputs)


def remove_covered(order: Order, occurrences: Occurrences) -> Occurrences:
    """Leave out one covered occurrence after another, until none is."""
    for covered in sorted(occurrences.sources):
        # After a removal start again: comparisons with what was left out no longer count, so that
        # more may be covered.
        for other in sorted(occurrences.sources - {covered}):
            pairs = find_twins(order.elements.query, covered, other)
            if pairs is not None and _covers(order, occurrences, covered, pairs):
                outputs = tuple(pairs.get(output, output) for output in occurrences.outputs)
                covered_by = (*occurrences.covered_by, (covered, other))
                fewer = Occurrences(occurrences.sources - {covered}, outputs, covered_by)
                return remove_covered(order, fewer)
    return occurrences


def find_twins(query: Conjunctive, covered: int, other: int) -> dict[int, int] | None:
    """Pair the variables of an occurrence with those of the same name in another one.

    None where it cannot cover it. A window holds other rows than the stream, and than another
    window: neither covers the other.
    """
    if query.streams[covered] != query.streams[other] or {covered, other} & query.windowed:
        return None
    if (covered, other) in query.extra_filters:
        return None
    named = {query.variables[v].name: v for v in query.variables_of(other)}
    own = {v: query.variables[v].name for v in query.variables_of(covered)}
    return {v: named[name] for v, name in own.items() if name in named}


def _covers(order: Order, occurrences: Occurrences, covered: int, pairs: dict[int, int]) -> bool:
    """Return whether all that holds of an occurrence's variables holds of their twins as well."""
    own = order.elements.of_source[covered]
    elements = occurrences.elements(order)
    # Each holds one row of bits per element: <=, >=, < and >.
    relations = (order.at_most, order.at_least, order.below, _reverse_rows(order.below))
    for variable in bits(own):
        itself = 1 << variable
        related = (order.at_most[variable] | order.at_least[variable]) & elements
        twin = pairs.get(variable)
        # A variable without a twin must not matter: related to itself alone, and no output.
        if twin is None:
            if related != itself or variable in occurrences.outputs:
                return False
            continue
        for rows in relations:
            # What holds towards others must hold of the twin as it is; what holds among the
            # occurrence's own variables must hold among their twins.
            outer = rows[variable] & elements & ~own
            inner = union(1 << pairs[v] for v in bits(rows[variable] & own) if v in pairs)
            if (outer | inner) & ~rows[twin]:
                return False
        # The output must not change when the twin's row stands for both.
        if variable in occurrences.outputs and not order.same(variable) >> twin & 1:
            return False
    return True


def _reverse_rows(below: list[int]) -> list[int]:
    return [
        union(1 << low for low, row in enumerate(below) if row >> element & 1)
        for element in range(len(below))
    ]
