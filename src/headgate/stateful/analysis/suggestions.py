"""What to add to a query so that it can run in bounded memory.

A suggestion bounds an attribute, adds DISTINCT, drops a column or puts a row window on a stream.
Those of one addition come first, then those of two that need both; each was checked again, and
leads to a bound that a machine can hold. Of a large query not all are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, compress, islice
from typing import Any

from headgate.predicate import Column, Predicate, Within, conjunction
from headgate.queries import Aggregate, Output, Query
from headgate.schema import (
    Date,
    DecimalType,
    Double,
    Interval,
    String,
    Timestamp,
    ValueSet,
)
from headgate.sql import render_predicate, render_select, render_source
from headgate.stateful.analysis.boundedness import find_bounded_cases
from headgate.stateful.analysis.case import Case, list_output_columns
from headgate.stateful.analysis.faults import Fault
from headgate.stateful.analysis.synopses.synopsis import compute_memory_limit
from headgate.stateful.analysis.theory.closure import compute_closure

SUGGESTED_WINDOW_ROWS = 100
SUGGESTED_RANGE = 1_000
FIRST_DAY, LAST_DAY = 10_957, 47_481  # 2000-01-01 and 2099-12-31, as days since 1970
MIN_TRIES, MAX_TRIES = 20, 400
MAX_WORK = 5_000  # a try costs as much as there are attributes, in all alternatives


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One or two additions, in words, and the query that they make of it."""

    additions: tuple[str, ...]
    query: Query

    @property
    def sql(self) -> str:
        return render_select(self.query)

    def as_json(self) -> dict[str, Any]:
        return {"additions": list(self.additions), "sql": self.sql}


@dataclass(frozen=True, slots=True)
class _Addition:
    """A change in words, and how it is made."""

    text: str
    bound: Predicate | None = None
    distinct: bool = False
    dropped: Output | Column | None = None
    windowed: int | None = None

    def concerns(self, case: Case, fault: Fault | None) -> bool:
        """Return whether the addition is about what is at fault."""
        if fault is None:
            return True
        violation = fault.violation
        sides = (violation.variable, *(v for j in violation.joins for v in (j.left, j.right)))
        guilty = [case.columns[v] for v in sides if v >= 0]
        if isinstance(self.bound, Within):
            return self.bound.column in guilty
        return self.dropped in guilty or self.windowed == violation.source or self.distinct

    def apply_to(self, query: Query) -> Query | None:
        """Return the query with this addition; None where that is no query."""
        if self.bound is not None:
            return replace(query, where=conjunction((query.where, self.bound)), origin=None)
        if self.distinct:
            return replace(query, distinct=True, origin=None)
        if self.windowed is not None:
            sources = list(query.sources)
            sources[self.windowed] = replace(sources[self.windowed], rows=SUGGESTED_WINDOW_ROWS)
            return replace(query, sources=tuple(sources), origin=None)
        return _drop_output(query, self.dropped)


def find_suggestions(
    query: Query, case: Case, fault: Fault | None, alternatives: int = 1
) -> tuple[Suggestion, ...]:
    """Return suggestions of one addition first; those of two hold none of one.

    What bears on the fault is tried first. Without a fault the query is bounded, but by more than a
    machine holds. Of large queries, or those with many `alternatives`, not everything is tried.
    """
    suggestions: list[Suggestion] = []
    helpless: list[_Addition] = []
    # Checking a changed query costs about its attributes times its alternatives.
    cost = (len(case.columns) + 1) * alternatives
    tries = max(min(MAX_TRIES, MAX_WORK // cost), MIN_TRIES)
    # The sort is stable: within what concerns the fault the least intrusive stay first.
    wide = _find_wide_columns(query, case, only_unbounded=fault is not None)
    additions = list(_list_additions(query, case, wide))
    additions.sort(key=lambda addition: not addition.concerns(case, fault))
    for addition in additions[:tries]:
        changed = addition.apply_to(query)
        if changed is not None and _is_held(changed):
            suggestions.append(Suggestion((addition.text,), changed))
        else:
            helpless.append(addition)
    # Pairs are made only of additions that do not help alone, with the tries that are left.
    for first, second in islice(combinations(helpless, 2), max(tries - len(additions), 0)):
        changed = first.apply_to(query)
        changed = None if changed is None else second.apply_to(changed)
        if changed is not None and _is_held(changed):
            suggestions.append(Suggestion((first.text, second.text), changed))
    return tuple(suggestions)


def _is_held(query: Query) -> bool:
    """Return whether a query is bounded, by what a machine holds, and is no contradiction."""
    cases = find_bounded_cases(query)
    limit = compute_memory_limit(query, cases) if cases else None
    return bool(cases) and (limit is None or limit.is_holdable)


def _list_additions(query: Query, case: Case, wide: list[Column]) -> Iterator[_Addition]:
    """Yield all additions that bear on wide columns, the least intrusive first."""
    aggregate = query.kind == "aggregate"
    if not query.distinct and not aggregate:
        yield _Addition("SELECT DISTINCT", distinct=True)
    yield from (_make_bound_addition(column, case) for column in wide if _is_counted(column))
    columns = query.group_by if aggregate else list_output_columns(query)
    # A query must put something out: the only column is not dropped.
    for column in columns if len(columns) > 1 or aggregate else ():
        action = "drop the group" if aggregate else "drop the column"
        yield _Addition(f"{action} `{column.key}`", dropped=column)
    if aggregate and len(query.outputs) > 1:
        for output in query.outputs:
            if isinstance(output.expression, Aggregate):
                yield _Addition(f"drop the aggregate `{output.name}`", dropped=output)
    for number, source in enumerate(query.sources):
        if source.rows is None:
            window = render_source(replace(source, rows=SUGGESTED_WINDOW_ROWS))
            yield _Addition(f"a row window, {window}", windowed=number)
    listed = (column for column in wide if isinstance(column.type, Double | String))
    yield from (_make_bound_addition(column, case) for column in listed)


def _is_counted(column: Column) -> bool:
    """Return whether people have ranges of such values that a machine holds.

    Texts and doubles are listed. A range of moments has too many to hold, if it is of any use.
    """
    return not isinstance(column.type, Double | String | Timestamp)


def _make_bound_addition(column: Column, case: Case) -> _Addition:
    bound = _make_bound(column, case)
    return _Addition(f"bound `{column.key}`, such as {render_predicate(bound)}", bound=bound)


def _find_wide_columns(query: Query, case: Case, *, only_unbounded: bool) -> list[Column]:
    """Return columns that are put out or compared between streams, with too many values.

    That is infinitely many or, unless `only_unbounded`, more than would be suggested.
    """
    core, bounded = case.query, compute_closure(case.query).bounded
    # Variables that can be at fault: outputs (C1), sides of joins (C2, C3), and arguments.
    used = set(core.outputs)
    for comparison in core.comparisons:
        sides = comparison.left, comparison.right
        if core.variables[sides[0]].source != core.variables[sides[1]].source:
            used.update(sides)
    for output in query.outputs:
        expression = output.expression
        if isinstance(expression, Aggregate) and expression.argument is not None:
            number = case.number(expression.argument)
            used |= set() if number is None else {number}
    wide = [
        not bounded[number]
        or (not only_unbounded and case.sets[number].finite_ordinals(SUGGESTED_RANGE) is None)
        for number in sorted(used)
    ]
    return [case.columns[number] for number in compress(sorted(used), wide)]


def _make_bound(column: Column, case: Case) -> Predicate:
    """Return a condition that leaves a column finitely many values, near those that it may have."""
    type_, values = column.type, case.sets[case.columns.index(column)]
    if isinstance(type_, String):
        return Within(column, ValueSet.points(type_, ("a", "b")))
    if isinstance(type_, Double):
        return Within(column, ValueSet.points(type_, map(type_.ordinal, (0.0, 1.0))))
    unit = 10**type_.scale if isinstance(type_, DecimalType) else 1
    # Dates get a century, since a range that has ended leaves nothing; numbers so many units.
    first, past = (FIRST_DAY, LAST_DAY + 1) if isinstance(type_, Date) else (0, None)
    # Ends that the query gives are kept, if they are not too far apart.
    low, high = values.intervals[0].low, values.intervals[-1].high
    minimum, maximum = int(type_.minimum), int(type_.maximum or 0)
    if not isinstance(low, int) and not isinstance(high, int):
        low, high = first, past or SUGGESTED_RANGE * unit + 1
    elif not isinstance(low, int):
        low = int(high or 0) - SUGGESTED_RANGE * unit
    widest = max(low + SUGGESTED_RANGE * unit, past or 0)
    high = min(high, widest + 1) if isinstance(high, int) else widest
    # Stay off the limits of the type: an interval that reaches them may count as unbounded.
    low = min(max(low, minimum + 1), maximum - 1)
    return Within(column, ValueSet.of(Interval(low, max(low + 1, min(high, maximum)))))


def _drop_output(query: Query, dropped: Output | Column | None) -> Query | None:
    """Return the query without an output, or without a group."""
    outputs = query.outputs or tuple(
        Output(column.name, column) for column in list_output_columns(query)
    )
    remaining = tuple(o for o in outputs if dropped not in (o, o.expression))
    groups = tuple(column for column in query.group_by if column != dropped)
    # GROUP BY cannot lose its last group unless an aggregate is left.
    if not remaining or (query.group_by and not groups and not _has_aggregates(remaining)):
        return None
    return replace(query, outputs=remaining, group_by=groups, origin=None)


def _has_aggregates(outputs: tuple[Output, ...]) -> bool:
    return any(isinstance(output.expression, Aggregate) for output in outputs)
