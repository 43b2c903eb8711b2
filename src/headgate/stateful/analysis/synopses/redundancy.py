"""A case of a DISTINCT query without occurrences of a stream that others make superfluous.

"Characterizing Memory Requirements …", Definition 8.2 and what follows it: where an occurrence is
covered by another one of the same stream, the other may stand for both. Which one is superfluous
may depend on the order of the values in a row: then the case is split by these orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from headgate.errors import ExpansionTooLarge
from headgate.predicate import Atom, Column, Compare, Predicate, Within, conjunction
from headgate.queries import Aggregate, Output, Query
from headgate.schema import Interval, ValueSet
from headgate.stateful.analysis.case import (
    Case,
    build_case,
    counts_duplicates,
    list_output_columns,
    rename_columns,
)
from headgate.stateful.analysis.faults import find_faults
from headgate.stateful.analysis.synopses.cells import find_cut
from headgate.stateful.analysis.theory.checker import is_bounded
from headgate.stateful.analysis.theory.definition import iter_total_orders
from headgate.stateful.analysis.theory.relations import (
    Occurrences,
    Order,
    compute_order,
    keep_all,
    remove_covered,
)

MAX_ORDERS = 1_000  # into which a case is split
MAX_REDUCED_CASES = 64  # of one case


@dataclass(frozen=True, slots=True)
class ReducedCase:
    """A case, and the occurrences that are left out, by alias: each with what stands for it.

    `query` has the condition and the outputs in terms of what is left, and the same FROM.
    """

    query: Query
    case: Case
    stand_ins: Mapping[str, str] = field(default_factory=dict)


def reduce_case(query: Query, case: Case) -> tuple[ReducedCase, ...]:
    """Return cases, equal to one, of which every row that is needed is kept by its extremes.

    SELECT DISTINCT x.a FROM s AS x, s AS y WHERE x.a = 1 AND x.b = y.b
    ->  SELECT DISTINCT x.a WHERE x.a = 1 AND x.b = x.b, with x in place of y

    Mostly that is the case itself. There are none where it is bounded for other reasons.
    """
    core = replace(case.query, distinct=True)
    if counts_duplicates(query) or not core.has_self_joins or is_bounded(core):
        return (ReducedCase(query, case),)
    # Only a marked case has the constants of all occurrences on one line.
    marked = build_case(query, case.atoms, case.filters, marked=True)
    assert marked is not None
    order = compute_order(marked.query)
    occurrences = remove_covered(order, keep_all(marked.query))
    whole = _build_reduced(query, marked, occurrences)
    if whole is not None and _is_kept_by_extremes(whole):
        return (whole,)
    return _reduce_by_orders(query, marked, order, occurrences)


def _reduce_by_orders(
    query: Query, case: Case, order: Order, occurrences: Occurrences
) -> tuple[ReducedCase, ...]:
    """Return a case for each order of the values in a row, each without what is superfluous."""
    reduced: dict[tuple[Predicate, tuple[str, ...]], ReducedCase] = {}
    try:
        orders = iter_total_orders(case.query, occurrences.sources, MAX_ORDERS)
    except ExpansionTooLarge:
        return ()
    for ordered in orders:
        left = remove_covered(ordered, occurrences)
        added = _list_order_atoms(case, order, ordered, sorted(left.sources))
        each = _build_reduced(query, case, left, added)
        if each is None:
            continue
        if not _is_kept_by_extremes(each) or len(reduced) >= MAX_REDUCED_CASES:
            return ()
        reduced[each.query.where, tuple(each.stand_ins)] = each
    return tuple(reduced.values())


def _is_kept_by_extremes(reduced: ReducedCase) -> bool:
    core = replace(reduced.case.query, distinct=True)
    return is_bounded(core) and next(find_faults(reduced.query, reduced.case), None) is None


def _build_reduced(
    query: Query, case: Case, occurrences: Occurrences, added: Iterable[Atom] = ()
) -> ReducedCase | None:
    """Return the case in terms of the occurrences that are left; None if it contradicts itself."""
    aliases = [source.alias for source in query.sources]
    stand_ins: dict[str, str] = {}
    for covered, other in occurrences.covered_by:
        # An occurrence that stood for another may be left out later: follow the chain to its end.
        stand_ins = {
            alias: aliases[other] if stand_in == aliases[covered] else stand_in
            for alias, stand_in in stand_ins.items()
        }
        stand_ins[aliases[covered]] = aliases[other]

    def rename(column: Column) -> Column:
        return replace(column, source=stand_ins.get(column.source, column.source))

    atoms = tuple(dict.fromkeys(rename_columns(atom, rename) for atom in (*case.atoms, *added)))
    # `SELECT *` names no columns: they are spelt out, so that they can be renamed.
    outputs = query.outputs or tuple(Output(c.name, c) for c in list_output_columns(query))
    reduced = replace(
        query,
        where=conjunction(atoms),
        outputs=tuple(replace(o, expression=_rename_expression(o, rename)) for o in outputs),
        group_by=tuple(rename(column) for column in query.group_by),
        origin=None,
    )
    built = build_case(reduced, atoms, case.filters)  # type: ignore[arg-type]
    return None if built is None else ReducedCase(reduced, built, stand_ins)


def _rename_expression(output: Output, rename: Callable[[Column], Column]) -> Column | Aggregate:
    expression = output.expression
    if isinstance(expression, Column):
        return rename(expression)
    if expression.argument is None:
        return expression
    return replace(expression, argument=rename(expression.argument))


def _list_order_atoms(
    case: Case, before: Order, after: Order, sources: Sequence[int]
) -> Iterator[Atom]:
    """Yield what an order says of the occurrences that are left, beyond what was known before."""

    def is_new(low: int, high: int) -> bool:
        """Return whether only the order says that one element is below another."""
        return bool((after.below[low] & ~before.below[low]) >> high & 1)

    columns = case.columns
    variables = [v for v, variable in enumerate(case.query.variables) if variable.source in sources]
    for left, right in permutations(variables, 2):
        if is_new(left, right):
            yield Compare(columns[left], "<", columns[right])
        if left < right and (after.same(left) & ~before.same(left)) >> right & 1:
            yield Compare(columns[left], "=", columns[right])
    for variable in variables:
        line = case.query.variables[variable].line
        for constant in after.elements.of_line[line] if case.query.constants(line) else ():
            value = after.elements.value(constant)
            assert value is not None
            low, high = find_cut(case, variable, value)
            if after.same(variable) >> constant & 1:
                yield Within(columns[variable], ValueSet.of(Interval(low, high)))
            elif is_new(variable, constant):
                yield Within(columns[variable], ValueSet.of(Interval(None, low)))
            elif is_new(constant, variable):
                yield Within(columns[variable], ValueSet.of(Interval(high, None)))
