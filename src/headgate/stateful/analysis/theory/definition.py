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

The local total orders of a query, of which it is the union (Definitions 5.1 and 5.2), are found by
putting one variable after another into the ascending constants of its line, at every place that
nothing known forbids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Literal

from headgate.errors import ExpansionTooLarge
from headgate.stateful.analysis.theory.checker import Join, Pattern, Violation
from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from headgate.stateful.analysis.theory.relations import (
    Chain,
    Elements,
    Occurrences,
    Order,
    bits,
    compute_order,
    keep_all,
    remove_covered,
    union,
)

MAX_ORDERS = 1_000_000


def is_bounded(query: Conjunctive) -> bool:
    """Return whether a query can be computed in bounded memory, by the definition.

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
    occurrences = remove_covered(whole, keep_all(query)) if eliminates else keep_all(query)
    for order in iter_total_orders(query, occurrences.sources):
        uncovered = remove_covered(order, occurrences) if eliminates else occurrences
        yield from islice(find_order_violations(order, uncovered), 1)


def is_extremum_bounded(
    query: Conjunctive, variable: int, pattern: Literal["maximum", "minimum"]
) -> bool:
    """Return whether MAX or MIN needs no more than one value: Theorem 8.6, C3, corrected.

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


def find_references(order: Order, occurrences: Occurrences) -> References:
    """Return which variables are unbounded, and which joins between them are nonredundant."""
    elements = occurrences.elements(order)
    unbounded = elements & ~find_bounded_elements(order)
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


def find_bounded_elements(order: Order) -> int:
    """Return a mask of the constants and the variables with finitely many values."""
    query = order.elements.query
    constants = union(1 << c for chain in order.elements.of_line for c in chain)
    finite = union(1 << v for v, variable in enumerate(query.variables) if variable.finite)
    # What lies between two of these is finite unless it is dense (Definition 4.5, section 9).
    ends = list(bits(constants | finite))
    between = union(order.at_most[e] for e in ends) & union(order.at_least[e] for e in ends)
    sparse = union(1 << v for v, variable in enumerate(query.variables) if not variable.dense)
    return union(order.same(e) for e in bits(constants | finite | between & sparse))


def find_gap(order: Order, variable: int) -> int:
    """Return the gap of a variable: how many constants lie below it; 0 on a line without any."""
    query = order.elements.query
    line = query.variables[variable].line
    chain = order.elements.of_line[line] if query.constants(line) else ()
    return sum(order.below[constant] >> variable & 1 for constant in chain)


def find_order_violations(order: Order, occurrences: Occurrences) -> Iterator[Violation]:
    """Yield all that one ordered query violates of the conditions C1, C2 and C3, in this order."""
    query = order.elements.query
    references = find_references(order, occurrences)
    remembering = [source for source in sorted(occurrences.sources) if source not in query.windowed]
    for output in occurrences.outputs:
        source = query.variables[output].source
        if references.unbounded >> output & 1 and source in remembering:
            yield Violation("C1", "output", source, variable=output, gap=find_gap(order, output))
    # C2 asks the closure, not the written predicates: an equality may only follow.
    for source in remembering:
        own = order.elements.of_source[source]
        for variable in bits(references.unbounded & own):
            for other in bits(order.same(variable) & references.unbounded & ~own):
                join = Join(variable, other, find_gap(order, variable))
                yield Violation("C2", "equality", source, (join,))
    for source in remembering:
        joins = _find_conflict(references, source)
        if joins is not None:
            yield Violation("C3", joins[0], source, joins[1])


def _find_conflict(references: References, source: int) -> tuple[Pattern, tuple[Join, ...]] | None:
    """Return the joins that violate C3; with DISTINCT one class may be below, or above, others."""
    order = references.order
    query = order.elements.query
    # By equivalence class, as Theorem 5.10 counts classes and not variables.
    lefts: dict[int, Join] = {}
    rights: dict[int, Join] = {}
    for low, high in references.joins:
        join = Join(low, high, find_gap(order, low))
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


def iter_total_orders(
    query: Conjunctive, sources: frozenset[int] | None = None, most: int = MAX_ORDERS
) -> Iterator[Order]:
    """Return all satisfiable queries, locally totally ordered, whose union a query is.

    Only the given sources are ordered, or all. Raises ExpansionTooLarge, before any work, when
    there could be more than `most` orders.
    """
    estimate = estimate_orders(query, sources)
    if estimate > most:
        raise ExpansionTooLarge(
            f"the variables of this query may be ordered in {estimate:,} ways, more than {most:,}"
        )
    start = compute_order(query)
    variables = _list_ordered_variables(start, sources)
    return iter(()) if start.contradictory else _iter_orders(start, variables)


def estimate_orders(query: Conjunctive, sources: frozenset[int] | None = None) -> int:
    """Return an upper bound on the number of orders: of each stream, and line, on its own.

    >>> from headgate.stateful.analysis.theory.conjunctive import Bound, Conjunctive, Variable
    >>> estimate_orders(Conjunctive(("s",), (Variable(0, "a"),), bounds=(Bound(0, "<", 3),)))
    3
    """
    order = compute_order(query)
    # By stream and line: the classes that are not equal to a constant, as bit masks.
    classes: dict[tuple[int, int], set[int]] = {}
    for variable in _list_ordered_variables(order, sources):
        source, line = query.variables[variable].source, query.variables[variable].line
        same = order.same(variable)
        if not any(same >> constant & 1 for constant in order.elements.of_line[line]):
            own = same & order.elements.of_source[source]
            classes.setdefault((source, line), set()).add(own)
    estimate = 1
    for (source, line), free in classes.items():
        # Pinned variables of other streams cut the line as constants do (`_order_against_pinned`).
        sparse = _find_sparse_variables(order.elements, line)
        foreign = sum(query.variables[v].source != source for v in sparse)
        steps = len(order.elements.of_line[line]) + foreign
        estimate *= _count_weak_orders(len(free), steps)
    return estimate


@cache
def _count_weak_orders(variables: int, constants: int) -> int:
    """Return in how many ways variables can stand among ascending constants and each other."""
    if not variables:
        return 1
    # The next variable equals one of the elements, or lies in a gap and is a further element.
    onto = constants * _count_weak_orders(variables - 1, constants)
    return onto + (constants + 1) * _count_weak_orders(variables - 1, constants + 1)


def _list_ordered_variables(order: Order, sources: frozenset[int] | None) -> list[int]:
    """Return the variables of the sources that occur in comparisons, bounds or outputs.

    Any other variable u of a stream decides nothing. It joins another stream only by way of a
    neighbour a in its own, as in u < a < c, which makes the join redundant; and where it stands
    between two sides of a join, a < u < c, some neighbour does so too.
    """
    query = order.elements.query
    used = set(query.outputs) | {bound.variable for bound in query.bounds}
    for comparison in query.comparisons:
        used |= {comparison.left, comparison.right}
    return [v for v in sorted(used) if sources is None or query.variables[v].source in sources]


def _iter_orders(start: Order, variables: list[int]) -> Iterator[Order]:
    """Put each variable, depth first, into the chain of its stream and line in every way."""
    elements = start.elements
    # Entries: how many variables are placed, the order so far, and the chain by stream and line.
    stack: list[tuple[int, Order, dict[tuple[int, int], Chain]]] = [(0, start, {})]
    while stack:
        placed, order, chains = stack.pop()
        if placed == len(variables):
            yield from _order_against_pinned(order, _find_pinned_pairs(order, variables))
            continue
        variable = variables[placed]
        attribute = elements.query.variables[variable]
        place = attribute.source, attribute.line
        # Streams share the constants of a line, but have separate chains (Definition 5.1).
        chain = chains.get(place, elements.of_line[attribute.line])
        for after, longer in _place_in_chain(order, variable, chain):
            if _fits(after, variable):
                stack.append((placed + 1, after, {**chains, place: longer}))


def _order_against_pinned(order: Order, pairs: list[tuple[int, int]]) -> Iterator[Order]:
    """Order every variable against the pinned variables of other streams too.

    A pinned variable takes finitely many values, which are constants to all streams as written ones
    are: in S.b < S.p < S.a, T.c <= T.d, T.c <= S.a, S.b <= T.d each value of p decides one of the
    two joins. On whole lines unbounded variables lie beyond all such values.
    """
    if not pairs:
        yield order
        return
    variable, pinned = pairs[0]
    for after, _ in _place_in_chain(order, variable, (pinned,)):
        yield from _order_against_pinned(after, pairs[1:])


def _find_pinned_pairs(order: Order, variables: list[int]) -> list[tuple[int, int]]:
    """Return variables with a pinned one of another stream in the same gap between constants."""
    attributes = order.elements.query.variables
    pairs = []
    for line, constants in enumerate(order.elements.of_line):
        sparse = [v for v in _find_sparse_variables(order.elements, line) if v in variables]
        for pinned in sparse:
            # Constants below and above the pinned variable; the nearest of each bound its gap.
            under = [k for k in constants if order.below[k] >> pinned & 1]
            over = [k for k in constants if order.below[pinned] >> k & 1]
            inside = order.below[under[-1]] & order.at_least[over[0]] if under and over else 0
            source = attributes[pinned].source
            pairs += [
                (v, pinned) for v in variables if inside >> v & 1 and attributes[v].source != source
            ]
    return pairs


def _find_sparse_variables(elements: Elements, line: int) -> list[int]:
    """Return variables with finitely many values between constants, on a line that is not whole."""
    if elements.query.lines[line].whole:
        return []
    attributes = enumerate(elements.query.variables)
    return [v for v, a in attributes if a.line == line and (a.finite or not a.dense)]


def _place_in_chain(order: Order, variable: int, chain: Chain) -> Iterator[tuple[Order, Chain]]:
    """Yield the orders with a variable at, or between, the elements of a chain, where it may be."""
    # The chain ascends: first what is known to be at most the variable, last what is at least it.
    under = [element for element in chain if order.at_least[variable] >> element & 1]
    over = [element for element in chain if order.at_most[variable] >> element & 1]
    first, last = len(under), len(chain) - len(over)
    if under and over and under[-1] == over[0]:
        yield order, chain
        return
    # Equal to an element: also to the nearest known ones, unless the order is known to be strict.
    for element in (*under[-1:], *chain[first:last], *over[:1]):
        if not (order.below[element] >> variable | order.below[variable] >> element) & 1:
            after = order.copy()
            after.put(element, variable, strict=False)
            after.put(variable, element, strict=False)
            yield after, chain
    # Strictly between two neighbours, or beyond the last one.
    for place in range(first, last + 1):
        after = order.copy()
        if place:
            after.put(chain[place - 1], variable, strict=True)
        if place < len(chain):
            after.put(variable, chain[place], strict=True)
        yield after, (*chain[:place], variable, *chain[place:])


def _fits(order: Order, variable: int) -> bool:
    """Return whether there are whole numbers for all that stands between two constants."""
    elements = order.elements
    line = elements.query.variables[variable].line
    constants = elements.of_line[line]
    under = [k for k in constants if order.below[k] >> variable & 1]
    over = [k for k in constants if order.below[variable] >> k & 1]
    if not (elements.query.lines[line].whole and under and over):
        return True
    bottom, top = under[-1], over[0]
    low, high = elements.value(bottom), elements.value(top)
    assert low is not None
    assert high is not None
    # All that lies above the lower constant and at most at the upper. Cheap test first: so few
    # elements always fit.
    candidates = order.below[bottom] & order.at_least[top]
    if candidates.bit_count() < high - low:
        return True
    between = union(1 << e for e in bits(candidates) if order.below[e] >> top & 1)
    return _count_layers(order, between) < high - low


def _count_layers(order: Order, elements: int) -> int:
    """Return how many of the elements stand strictly above one another."""
    height = 0
    # Keep what has another one of them below it: each round removes the lowest layer.
    while elements:
        elements &= union(order.below[element] for element in bits(elements))
        height += 1
    return height
