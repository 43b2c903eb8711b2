"""Every way to order the variables of each stream among themselves and the constants.

"Characterizing Memory Requirements …", Definitions 5.1 and 5.2: the locally totally ordered queries
that a query is the union of. An order is found by putting one variable after another into the
ascending constants of its line, at every place that nothing known forbids.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from headgate.errors import ExpansionTooLarge
from headgate.stateful.analysis.theory.conjunctive import Conjunctive
from headgate.stateful.analysis.theory.relations import (
    Chain,
    Elements,
    Order,
    bits,
    compute_order,
    union,
)

MAX_ORDERS = 1_000_000


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
    return iter(()) if start.contradictory else _orders(start, _to_order(start, sources))


def estimate_orders(query: Conjunctive, sources: frozenset[int] | None = None) -> int:
    """Return an upper bound on the number of orders: of each stream, and line, on its own.

    >>> from headgate.stateful.analysis.theory.conjunctive import Bound, Conjunctive, Variable
    >>> estimate_orders(Conjunctive(("s",), (Variable(0, "a"),), bounds=(Bound(0, "<", 3),)))
    3
    """
    order = compute_order(query)
    # By stream and line: the classes that are not equal to a constant, as bit masks.
    classes: dict[tuple[int, int], set[int]] = {}
    for variable in _to_order(order, sources):
        source, line = query.variables[variable].source, query.variables[variable].line
        same = order.same(variable)
        if not any(same >> constant & 1 for constant in order.elements.of_line[line]):
            own = same & order.elements.of_source[source]
            classes.setdefault((source, line), set()).add(own)
    estimate = 1
    for (source, line), free in classes.items():
        # Pinned variables of other streams cut the line as constants do (`_among_pinned`).
        foreign = [v for v in _sparse(order.elements, line) if query.variables[v].source != source]
        steps = len(order.elements.of_line[line]) + len(foreign)
        estimate *= _weak_orders(len(free), steps)
    return estimate


@cache
def _weak_orders(variables: int, constants: int) -> int:
    """Return in how many ways variables can stand among ascending constants and each other."""
    if not variables:
        return 1
    # The next variable equals one of the elements, or lies in a gap and is an element from then
    # on.
    onto = constants * _weak_orders(variables - 1, constants)
    return onto + (constants + 1) * _weak_orders(variables - 1, constants + 1)


def _to_order(order: Order, sources: frozenset[int] | None) -> list[int]:
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


def _orders(start: Order, variables: list[int]) -> Iterator[Order]:
    """Put each variable, depth first, into the chain of its stream and line in every way."""
    elements = start.elements
    # Entries: how many variables are placed, the order so far, and the chain by stream and line.
    stack: list[tuple[int, Order, dict[tuple[int, int], Chain]]] = [(0, start, {})]
    while stack:
        placed, order, chains = stack.pop()
        if placed == len(variables):
            yield from _among_pinned(order, _find_pinned_pairs(order, variables))
            continue
        variable = variables[placed]
        attribute = elements.query.variables[variable]
        place = attribute.source, attribute.line
        # Streams share the constants of a line, but are not ordered against each other (Definition
        # 5.1).
        chain = chains.get(place, elements.of_line[attribute.line])
        for after, longer in _places(order, variable, chain):
            if _fits(after, variable):
                stack.append((placed + 1, after, {**chains, place: longer}))


def _among_pinned(order: Order, pairs: list[tuple[int, int]]) -> Iterator[Order]:
    """Order every variable against the pinned variables of other streams too.

    A pinned variable takes finitely many values, which are constants to all streams as written ones
    are: in S.b < S.p < S.a, T.c <= T.d, T.c <= S.a, S.b <= T.d each value of p decides one of the
    two joins. On whole lines unbounded variables lie beyond all such values.
    """
    if not pairs:
        yield order
        return
    variable, pinned = pairs[0]
    for after, _ in _places(order, variable, (pinned,)):
        yield from _among_pinned(after, pairs[1:])


def _find_pinned_pairs(order: Order, variables: list[int]) -> list[tuple[int, int]]:
    """Return variables with a pinned one of another stream in the same gap between constants."""
    attributes = order.elements.query.variables
    pairs = []
    for line, constants in enumerate(order.elements.of_line):
        held = [v for v in _sparse(order.elements, line) if v in variables]
        for pinned in held:
            # Constants below and above the pinned variable; the nearest of each bound its gap.
            under = [k for k in constants if order.below[k] >> pinned & 1]
            over = [k for k in constants if order.below[pinned] >> k & 1]
            inside = order.below[under[-1]] & order.at_least[over[0]] if under and over else 0
            source = attributes[pinned].source
            pairs += [
                (v, pinned) for v in variables if inside >> v & 1 and attributes[v].source != source
            ]
    return pairs


def _sparse(elements: Elements, line: int) -> list[int]:
    """Return variables with finitely many values between constants, on a line that is not whole."""
    if elements.query.lines[line].whole:
        return []
    attributes = enumerate(elements.query.variables)
    return [v for v, a in attributes if a.line == line and (a.finite or not a.dense)]


def _places(order: Order, variable: int, chain: Chain) -> Iterator[tuple[Order, Chain]]:
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
    """Tell whether there are whole numbers for all that stands between two constants."""
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
    return _height(order, between) < high - low


def _height(order: Order, elements: int) -> int:
    """Return how many of the elements stand strictly above one another."""
    height = 0
    # Keep what has another one of them below it: each round removes the lowest layer.
    while elements:
        elements &= union(order.below[element] for element in bits(elements))
        height += 1
    return height
