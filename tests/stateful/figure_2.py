"""The paper's Figure 2, step by step as it is printed, with the slips of its steps 3 and 4 mended.

The closure decides step 3, step 4 asks for C2 as well, and a query without constants gets one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from headgate.stateful.analysis.theory import definition
from headgate.stateful.analysis.theory.closure import Closure, compute_closure
from headgate.stateful.analysis.theory.conjunctive import Bound, Comparison, Conjunctive, Variable


def figure_2(query: Conjunctive) -> bool:
    """Is a query on whole numbers, without self-joins, computable in bounded memory?"""
    constants = query.constants(0) or [0]
    ends = constants[0], constants[-1]
    known = compute_closure(_with_ends(query, ends))
    single = len(query.streams) == 1
    if not known.satisfiable or (single and not query.distinct):
        return True
    if any(not known.bounded[output] for output in query.outputs):
        return False
    numbers = range(len(query.variables))
    source = [variable.source for variable in query.variables]
    if any(
        known.equal[left, right] and not known.bounded[left]
        for left, right in combinations(numbers, 2)
        if source[left] != source[right]
    ):
        return False
    return all(
        definition.is_bounded(_induced(query, known, chosen, ends))
        for size in (1, 2, 3, 4)
        for chosen in combinations(numbers, size)
    )


def _with_ends(query: Conjunctive, ends: tuple[int, int]) -> Conjunctive:
    """The query with two more variables, which are the least and the greatest constant."""
    count = len(query.variables)
    pins = tuple(Bound(count + n, "=", end) for n, end in enumerate(ends))
    return replace(
        query,
        variables=(*query.variables, Variable(0, "k_min"), Variable(0, "k_max")),
        bounds=(*query.bounds, *pins),
    )


def _induced(
    query: Conjunctive, known: Closure, chosen: tuple[int, ...], ends: tuple[int, int]
) -> Conjunctive:
    """IND(X ∪ {k_min, k_max}, P): what the closure says of the chosen variables and the ends."""
    sources = sorted({query.variables[number].source for number in chosen})
    comparisons = [
        Comparison(left, "<" if known.below[x, y] else "<=", right)
        for left, x in enumerate(chosen)
        for right, y in enumerate(chosen)
        if left != right and known.at_most[x, y]
    ]
    bounds = [
        bound
        for number, x in enumerate(chosen)
        for at, end in enumerate(ends, start=len(query.variables))
        for bound in (
            Bound(number, "<" if known.below[x, at] else "<=", end)
            if known.at_most[x, at]
            else None,
            Bound(number, ">" if known.below[at, x] else ">=", end)
            if known.at_most[at, x]
            else None,
        )
        if bound is not None
    ]
    return replace(
        query,
        streams=tuple(query.streams[source] for source in sources),
        variables=tuple(
            replace(query.variables[x], source=sources.index(query.variables[x].source))
            for x in chosen
        ),
        comparisons=tuple(comparisons),
        bounds=tuple(bounds),
        outputs=(),
    )
