"""The conditions for bounded memory, asked of every local total order of a query.

"Characterizing Memory Requirements …", Definitions 4.1, 4.5 and 5.4 and Theorems 5.3, 5.6 and 5.10,
word for word as far as they are right: slow, obvious, and the judge of `checker`. Deviations:

- `<=` counts as `<` does; what lies between two sides must lie outside the classes of both.
- A variable is bounded when its values are finitely many (section 9). Such values count as
  constants: they bound whatever is not dense between them, and a join with them is redundant. On
  whole lines an ordered query has a constant in between anyway.
- Nothing is asked of windowed occurrences, but they take part in the joins of the others.
- In DISTINCT queries with self-joins, occurrences that others cover are left out before and after
  ordering (Definition 8.2). The conditions are then sufficient, not necessary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from headgate.stateful.analysis.theory.checker import Join, Pattern, Violation
from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from headgate.stateful.analysis.theory.orders import iter_total_orders
from headgate.stateful.analysis.theory.redundant import Occurrences, keep_all, remove_covered
from headgate.stateful.analysis.theory.relations import Order, bits, compute_order, union


def is_bounded(query: Conjunctive) -> bool:
    """Tell whether a query can be computed in bounded memory, by the definition.

    Of DISTINCT queries with self-joins, False says no more than that this is not proven.
    """
    return next(find_violations(query), None) is None


def find_violations(query: Conjunctive) -> Iterator[Violation]:
    """Yield the first reason of every ordered query that needs unbounded memory."""
    if len(query.streams) == 1 and not query.distinct:
        return
    whole = compute_order(query)
    if whole.contradictory:
        return
    # Section 8.1: only DISTINCT self-joins can have redundant occurrences. They are removed before
    # ordering, which saves orders, and again after it, as an order may cover more.
    eliminates = query.distinct and query.has_self_joins
    kept = remove_covered(whole, keep_all(query)) if eliminates else keep_all(query)
    for order in iter_total_orders(query, kept.sources):
        left = remove_covered(order, kept) if eliminates else kept
        yield from islice(find_order_violations(order, left), 1)


def extremum_is_bounded(
    query: Conjunctive, variable: int, pattern: Literal["maximum", "minimum"]
) -> bool:
    """Tell whether MAX or MIN needs no more than one value: Theorem 8.6, C3, corrected.

    In every ordered query where the variable is unbounded, MAX needs an empty MinRef, and a MaxRef
    within the variable's class: `MAX(s.a)` with `s.b < t.d` must remember all rows, although MaxRef
    is empty. MIN is the mirror image.
    """
    source = query.variables[variable].source
    if len(query.streams) == 1 or source in query.windowed:
        return True
    for order in iter_total_orders(query):
        references = find_references(order, keep_all(query))
        lows, highs = references.min_ref(source), references.max_ref(source)
        # What must be empty, and what must lie within the class of the variable.
        empty, own = (lows, highs) if pattern == "maximum" else (highs, lows)
        if references.unbounded >> variable & 1 and (empty or own & ~order.same(variable)):
            return False
    return True


@dataclass(frozen=True, slots=True)
class References:
    """The unbounded variables of an order, and its nonredundant inequality joins between them."""

    order: Order
    unbounded: int
    joins: tuple[tuple[int, int], ...]

    def max_ref(self, source: int) -> int:
        """Return the unbounded variables of a stream above a nonredundant join (Definition 5.4)."""
        return self.order.elements.of_source[source] & union(1 << high for _, high in self.joins)

    def min_ref(self, source: int) -> int:
        """Return the unbounded variables of a stream below a nonredundant join (Definition 5.4)."""
        return self.order.elements.of_source[source] & union(1 << low for low, _ in self.joins)


def find_references(order: Order, kept: Occurrences) -> References:
    """Return which variables are unbounded, and which joins between them are nonredundant."""
    elements = kept.elements(order)
    unbounded = elements & ~is_element_bounded(order)
    joins = []
    for low in bits(unbounded):
        source = order.elements.query.variables[low].source
        # All that is at least `low` and outside its class.
        higher = order.at_most[low] & ~order.at_least[low] & elements
        for high in bits(higher & unbounded & ~order.elements.of_source[source]):
            # Nonredundant (Definition 4.1): no element lies between the two, outside both classes.
            if not higher & order.at_least[high] & ~order.at_most[high]:
                joins.append((low, high))
    return References(order, unbounded, tuple(joins))


def is_element_bounded(order: Order) -> int:
    """Return the variables with finitely many values, and the constants (Definition 4.5)."""
    query = order.elements.query
    constants = union(1 << c for chain in order.elements.of_line for c in chain)
    finite = union(1 << v for v, variable in enumerate(query.variables) if variable.finite)
    # What lies between two of these is finite unless it is dense (Definition 4.5, section 9).
    ends = list(bits(constants | finite))
    between = union(order.at_most[e] for e in ends) & union(order.at_least[e] for e in ends)
    sparse = union(1 << v for v, variable in enumerate(query.variables) if not variable.dense)
    return union(order.same(e) for e in bits(constants | finite | between & sparse))


def gap(order: Order, variable: int) -> int:
    """Return the gap of a variable: how many constants lie below it; 0 on a line without any."""
    query = order.elements.query
    line = query.variables[variable].line
    chain = order.elements.of_line[line] if query.constants(line) else ()
    return sum(order.below[constant] >> variable & 1 for constant in chain)


def find_order_violations(order: Order, kept: Occurrences) -> Iterator[Violation]:
    """Yield all that one ordered query violates of the conditions C1, C2 and C3, in this order."""
    query = order.elements.query
    references = find_references(order, kept)
    remembering = [source for source in sorted(kept.sources) if source not in query.windowed]
    for output in kept.outputs:
        source = query.variables[output].source
        if references.unbounded >> output & 1 and source in remembering:
            yield Violation("C1", "output", source, variable=output, gap=gap(order, output))
    # C2 asks the closure, not the written predicates: an equality may only follow.
    for source in remembering:
        own = order.elements.of_source[source]
        for variable in bits(references.unbounded & own):
            for other in bits(order.same(variable) & references.unbounded & ~own):
                join = Join(variable, other, gap(order, variable))
                yield Violation("C2", "equality", source, (join,))
    for source in remembering:
        joins = _conflict(references, source)
        if joins is not None:
            yield Violation("C3", joins[0], source, joins[1])


def _conflict(references: References, source: int) -> tuple[Pattern, tuple[Join, ...]] | None:
    """Return the joins that violate C3; with DISTINCT one class may be below, or above, others."""
    order = references.order
    query = order.elements.query
    # By equivalence class, as Theorem 5.10 counts classes and not variables.
    lefts: dict[int, Join] = {}
    rights: dict[int, Join] = {}
    for low, high in references.joins:
        join = Join(low, high, gap(order, low))
        if query.variables[low].source == source:
            lefts[order.same(low)] = join
        if query.variables[high].source == source:
            rights[order.same(high)] = join
    minima, maxima = tuple(lefts.values()), tuple(rights.values())
    if not query.distinct:
        return ("count", (minima + maxima)[:1]) if minima or maxima else None
    if len(minima) > 1:
        return "minima", minima[:2]
    if len(maxima) > 1:
        return "maxima", maxima[:2]
    return ("both", maxima + minima) if minima and maxima else None
