"""Why a query needs bounded memory: the conditions of its theorem, and by what each is fulfilled.

It is read off the same closure that `faults` searches for what violates them, so it holds only of
cases that have no faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from headgate._display import format_count
from headgate.predicate import Column
from headgate.queries import Query
from headgate.schema import ValueSet
from headgate.stateful.analysis.case import (
    Case,
    find_source,
    list_aggregates,
    list_output_columns,
)
from headgate.stateful.analysis.lines import is_finite, list_intervals
from headgate.stateful.analysis.theory.checker import find_live_joins, find_violations
from headgate.stateful.analysis.theory.closure import Booleans, Closure, compute_closure

MAX_LISTED_TEXTS = 1_000
ASKS_NOTHING = "between streams asks for rows to be kept"
NEVER_TRUE = "the condition is never TRUE, so nothing is kept"


def explain_bounded(query: Query, cases: Sequence[Case]) -> list[str]:
    """Return the theorem by which a query is bounded, and what fulfils each of its conditions.

    `cases` are those of an analysis that said yes; without any the query is never TRUE.
    """
    if query.kind == "filter":
        return ["each row is decided alone, so nothing is kept"]
    if not cases:
        return [NEVER_TRUE]
    theorem, lines = _find_theorem(query), list(dict.fromkeys(_list_conditions(query, cases)))
    within = f" in each of the {len(cases):,} alternatives of the condition"
    first = f"{theorem} holds{within if len(cases) > 1 else ''}"
    windows = [
        f"`{source.alias}` keeps its last {format_count(source.rows, 'row')}, whatever the rest"
        for source in query.sources
        if source.rows is not None
    ]
    return [first, *windows, *lines]


def _find_theorem(query: Query) -> str:
    if query.kind == "aggregate":
        return f"Theorem {'8.5' if len(query.sources) == 1 else '8.6'}"
    return f"Theorem {'5.10' if query.distinct else '5.6'}"


def _list_conditions(query: Query, cases: Sequence[Case]) -> Iterator[str]:
    if query.kind != "aggregate":
        yield from _list_join_conditions(query, cases, distinct=query.distinct)
        return
    aggregates = list_aggregates(query)
    is_single = len(query.sources) == 1
    if is_single:
        yield f"(1): {_describe_finite(query, cases, query.group_by, 'groups')}"
    else:
        # Each aggregate asks for the join of its groups, with or without duplicates.
        for distinct in sorted({not a.duplicate_sensitive for a in aggregates} or {True}):
            for line in _list_join_conditions(query, cases, distinct=distinct):
                yield f"C1, by Theorem {'5.10' if distinct else '5.6'}, {line}"
    for aggregate in aggregates:
        name = f"{aggregate.function}({'DISTINCT ' if aggregate.distinct else ''}"
        argument = aggregate.argument
        name += f"{argument.key if argument is not None else '*'})"
        if aggregate.category == "holistic" and argument is not None:
            values = _describe_finite(query, cases, (argument,), "values")
            yield f"{'(2)' if is_single else 'C2'}: of `{name}`, {values}"
        elif aggregate.function in ("MIN", "MAX") and not is_single:
            yield f"C3: `{name}` is {_describe_extremum(cases, argument)}"
        elif is_single:
            yield f"(2) asks nothing of `{name}`, which is kept up to date row by row"


def _describe_extremum(cases: Sequence[Case], argument: Column | None) -> str:
    """Return where MIN or MAX over a join comes from, though only some rows are kept."""
    for case in cases:
        number = None if argument is None else case.number(argument)
        if number is not None and not compute_closure(case.query).bounded[number]:
            return "kept as the extreme of each bucket, and the join needs no other row"
    return "of finitely many values"


def _list_join_conditions(query: Query, cases: Sequence[Case], *, distinct: bool) -> Iterator[str]:
    """Yield C1 to C3 of Theorem 5.6 or, with DISTINCT, of Theorem 5.10."""
    reduced = [replace(case.query, distinct=distinct) for case in cases]
    if any(next(find_violations(conjunctive), None) is not None for conjunctive in reduced):
        yield "C1 to C3 hold once an occurrence that gives no new rows is left out (section 8.1)"
        return
    noun = "groups" if query.kind == "aggregate" else "outputs"
    yield f"C1: {_describe_finite(query, cases, list_output_columns(query), noun)}"
    if len(query.sources) == 1:
        yield "C2, C3: nothing is joined"
        return
    closures = [compute_closure(conjunctive) for conjunctive in reduced]
    pairs = list(zip(cases, closures, strict=True))
    equal = dict.fromkeys(text for case, known in pairs for text in _list_equalities(case, known))
    yield f"C2: {'; '.join(equal) or f'no equality {ASKS_NOTHING}'}"
    if distinct:
        ends = dict.fromkeys(
            text for case, known in pairs for text in _list_extremes(query, case, known)
        )
        yield f"C3: a stream needs one extreme at most: {'; '.join(ends) or 'none needs any'}"
    else:
        decided = dict.fromkeys(
            text for case, known in pairs for text in _list_inequalities(case, known)
        )
        yield f"C3: {'; '.join(decided) or f'no inequality {ASKS_NOTHING}'}"


def _describe_finite(
    query: Query, cases: Sequence[Case], columns: Sequence[Column], noun: str
) -> str:
    """Return that columns have finitely many values, and by what."""
    kept = [c for c in dict.fromkeys(columns) if query.sources[find_source(query, c)].rows is None]
    if not kept:
        return "there is one group" if not columns else f"the {noun} are those of row windows"
    each = []
    for column in kept:
        reasons = dict.fromkeys(_describe_values(case, column) for case in cases)
        each.append(f"`{column.key}` has {' or '.join(reasons)}")
    return f"{noun} are finitely many: {', '.join(each)}"


def _describe_values(case: Case, column: Column) -> str:
    """Return how many values a column can have in a case, or what limits them."""
    number = case.number(column)
    if number is None:
        return "NULL only"
    values = case.sets[number]
    if not is_finite(values, column.type):
        return "finitely many values by what it is compared with"
    # What the type itself rules out is no value: BOOLEAN has two.
    count = 0
    for interval in list_intervals(values, column.type):
        if isinstance(interval.low, int) and isinstance(interval.high, int):
            count += interval.high - interval.low
        else:
            # Of texts, only those that differ in NULs at the end.
            count += len(ValueSet.of(interval).finite_ordinals(MAX_LISTED_TEXTS) or ())
    return format_count(count, "value")


def _list_equalities(case: Case, known: Closure) -> Iterator[str]:
    """Yield the columns of different streams that are equal, with their finitely many values."""
    for left, column in enumerate(case.columns):
        for right in range(left + 1, len(case.columns)):
            # What is not finite is between row windows, of which none has to remember it.
            is_asked = known.equal[left, right] and known.bounded[left]
            if is_asked and _are_apart(case, left, right):
                other = case.columns[right]
                finer = min(
                    (_describe_values(case, each) for each in (column, other)),
                    key=lambda text: not text[0].isdigit(),
                )
                yield f"`{column.key} = {other.key}` has {finer}"


def _list_inequalities(case: Case, known: Closure) -> Iterator[str]:
    """Yield the inequalities between streams, each with why no row need be counted for it."""
    for comparison in case.query.comparisons:
        left, right = comparison.left, comparison.right
        sources = {case.query.variables[side].source for side in (left, right)}
        if comparison.operator == "=" or len(sources) == 1 or sources <= case.query.windowed:
            continue
        text = f"`{case.columns[left].key} {comparison.operator} {case.columns[right].key}`"
        finite = [case.columns[side] for side in (left, right) if known.bounded[side]]
        if finite:
            values = _describe_values(case, finite[0])
            yield f"{text} is counted by `{finite[0].key}`, which has {values}"
        else:
            yield f"{text} is decided by constants where both sides have no end of values"


def _list_extremes(query: Query, case: Case, known: Closure) -> Iterator[str]:
    """Yield for each stream the column of which it keeps the least or the greatest."""
    live: Booleans = np.any(find_live_joins(case.query, known), axis=2)
    for number, source in enumerate(query.sources):
        if source.rows is not None:
            continue
        own = [v for v, variable in enumerate(case.query.variables) if variable.source == number]
        # A side at the left of `x <= y` is kept with its least value, one at the right with its
        # greatest: whatever joins another row then joins that one.
        lows: Booleans = np.any(live[own], axis=1)
        highs: Booleans = np.any(live[:, own], axis=0)
        for end, sides in (("least", lows), ("greatest", highs)):
            columns = [case.columns[v] for v, is_live in zip(own, sides, strict=True) if is_live]
            if columns:
                names = " or ".join(f"`{column.key}`" for column in columns)
                yield f"`{source.alias}` the {end} {names}"


def _are_apart(case: Case, left: int, right: int) -> bool:
    return case.query.variables[left].source != case.query.variables[right].source
