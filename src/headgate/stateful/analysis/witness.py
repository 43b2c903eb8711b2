"""Streams that no bounded memory survives: every one of their rows must be remembered.

"Characterizing Memory Requirements …", Lemmas A.3 to A.7. Rows of one stream arrive, any subset of
them; whoever cannot tell two subsets apart gives a wrong answer on some continuation. The values
are scheduled as positions on number lines (`witness_schedule`), which become values of types, and
these become rows. That the answers differ is always computed, from the definition of the answer, so
that a witness holds whatever the theory says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from headgate.predicate import Column, Matches, Row, collect_columns, evaluate
from headgate.predicate.narrowing import list_pattern_examples
from headgate.predicate.satisfiability import pick_example
from headgate.queries import Query
from headgate.schema import Ordinal, Stream, Type, Value, ValueSet
from headgate.stateful.analysis.case import Case, list_argument_columns, list_output_columns
from headgate.stateful.analysis.faults import Fault
from headgate.stateful.analysis.lines import NoSuchValue, Position, get_value
from headgate.stateful.analysis.relational_answer import (
    AnswerRows,
    NotComputable,
    combine_rows,
    compute_answer,
)
from headgate.stateful.analysis.theory.checker import Violation
from headgate.stateful.analysis.theory.closure import compute_closure
from headgate.stateful.analysis.theory.conjunctive import Comparison
from headgate.stateful.analysis.witness_schedule import build_schedule

LONG_WITNESS_ROWS = 24  # rows of a schedule of which three are verified

Event = tuple[str, Row]  # the stream, and a row that arrives on it

MAX_CYCLED_VALUES = 1_000
MAX_FOLLOWING_ROWS = 3  # rows of the witness that follow once more
ENDLESS_LENGTH = 1_100  # a pattern that accepts more repetitions accepts any number of them
_Values = list[Value | None]


@dataclass(frozen=True, slots=True)
class Witness:
    """Rows of `stream` of which each must be remembered, and for each what follows them.

    After any two different subsets of `rows` a continuation exists on which the answers differ, or
    the answers differ already: `find_difference` finds it. For a median, `ends` are rows below and
    above all others, that move it.
    """

    query: Query
    stream: str
    rows: tuple[Row, ...]
    others: tuple[tuple[Event, ...], ...]
    ends: tuple[Row, ...] = ()

    def iter_continuations(self, number: int) -> Iterator[tuple[Event, ...]]:
        """Yield what may follow to make row number `number` matter; for joins just one thing.

        An aggregate may need that the row comes again, that another one comes too, so that an
        average shows how many there were, or rows at the ends that move a median.
        """
        others = self.others[number]
        again: tuple[Event, ...] = ((self.stream, self.rows[number]),)
        yield others or again
        if self.query.kind != "aggregate":
            return
        if others:
            yield others + again
            yield again
            for row in self.rows[:MAX_FOLLOWING_ROWS]:
                yield (*others, (self.stream, row))
        # Each row at an end moves the median on by half a place: enough of them reach every row.
        for count in range(1, len(self.rows) + 2 if self.ends else 1):
            for end in self.ends:
                yield others + ((self.stream, end),) * count

    def find_difference(
        self, first: Collection[int], second: Collection[int]
    ) -> tuple[Event, ...] | None:
        """Return a continuation on which the two subsets of rows differ; None where none was found.

        It is that of the last row in which they differ, but where alternatives or an aggregate get
        in the way. It is empty where they differ already: the answer of an aggregate is stored.
        """
        if self.query.kind == "aggregate" and self._compute_answer(first) != self._compute_answer(
            second
        ):
            return ()
        # The last difference first: for counts, earlier rows do not join with what follows later.
        differing = sorted(set(first) ^ set(second), reverse=True)
        others = (number for number in range(len(self.rows)) if number not in differing)
        for number in (*differing, *others):
            for following in self.iter_continuations(number):
                if self.compute_output(first, following) != self.compute_output(second, following):
                    return following
        return None

    def compute_output(self, numbers: Collection[int], following: Sequence[Event]) -> AnswerRows:
        """Return what a continuation gives: changes of the answer, or the new aggregates."""
        after: Any = self._compute_answer(numbers, following)
        if self.query.kind == "aggregate":
            return dict(after)
        # Without aggregates the answer so far is given away already: only changes can differ.
        before: Any = self._compute_answer(numbers)
        changes = {row: after.get(row, 0) - before.get(row, 0) for row in (*after, *before)}
        return {row: change for row, change in changes.items() if change}

    def _compute_answer(
        self, numbers: Collection[int], following: Sequence[Event] = ()
    ) -> AnswerRows:
        streams: dict[str, list[Row]] = {self.stream: [self.rows[at] for at in sorted(numbers)]}
        for stream, row in following:
            streams.setdefault(stream, []).append(row)
        return compute_answer(self.query, streams)


def list_attempts(case: Case, fault: Fault) -> Iterator[tuple[Case, Fault]]:
    """Yield the fault itself, then with strict comparisons, then with equality for its joins.

    Values that need not be equal are easier to find if they are not. And where a condition has
    other alternatives, or a stream joins itself, the order of two values may not matter, while that
    they are equal does: `a <> b` is FALSE just there.
    """
    yield case, fault
    every = case.query.comparisons
    strict = [replace(c, operator="<" if c.operator == "<=" else c.operator) for c in every]
    yield from _with_comparisons(case, fault, strict)
    for join in fault.violation.joins:
        sides = {join.left, join.right}
        equal = [replace(c, operator="=") if {c.left, c.right} == sides else c for c in every]
        equality = Violation("C2", "equality", fault.violation.source, (join,))
        yield from _with_comparisons(case, replace(fault, violation=equality), equal)


def _with_comparisons(
    case: Case, fault: Fault, changed: list[Comparison]
) -> Iterator[tuple[Case, Fault]]:
    """Yield the case with other comparisons, if that is another one and no contradiction."""
    query = replace(case.query, comparisons=tuple(changed))
    if query != case.query and compute_closure(query).satisfiable:
        yield replace(case, query=query), fault


def build_witness(query: Query, case: Case, fault: Fault, size: int) -> Witness | None:
    """Return the witness of a fault; None where the types have no such values.

    Some rows may have to be left out, as a filter has holes or a sum does not see a zero. What is
    left is scheduled as before, so more rows are asked for than are wanted.
    """
    # Two more rows, below and above all others, that move a median or an average.
    ends = 2 if _needs_end_rows(fault) else 0
    needed = size + ends
    # A schedule costs by its length, so first little more than wanted, then much more.
    for size_tried in (needed + 1, 2 * needed + 10, 8 * needed + 100):
        try:
            rows = build_rows(query, case, fault, size_tried)
        except (NoSuchValue, ValueError):
            return None
        if len(rows) >= needed:
            break
    else:
        return None
    rows = rows[:needed]
    source, sources = fault.violation.source, range(len(query.sources))
    streams = [s.stream.name for s in query.sources]
    inner = rows[1:-1] if ends else rows
    return Witness(
        query,
        streams[source],
        tuple(parts[source] for parts in inner),
        tuple(tuple((streams[s], parts[s]) for s in sources if s != source) for parts in inner),
        (rows[0][source], rows[-1][source]) if ends else (),
    )


def is_verified(query: Query, case: Case, fault: Fault) -> bool:
    """Return whether there are streams, of any length, whose rows are all told apart.

    Three rows that lie far from each other in a longer schedule stand for all: what holds only for
    a while, as long as other values are not passed, fails for one of them.
    """
    long = build_witness(query, case, fault, LONG_WITNESS_ROWS)
    if long is None:
        return False
    far = (0, LONG_WITNESS_ROWS // 2, LONG_WITNESS_ROWS - 1)
    extended = replace(
        long, rows=tuple(long.rows[at] for at in far), others=tuple(long.others[at] for at in far)
    )
    # All 8 subsets of the three rows, pairwise: 28 comparisons.
    subsets = [frozenset(s) for n in range(len(far) + 1) for s in combinations(range(len(far)), n)]
    try:
        return all(extended.find_difference(a, b) is not None for a, b in combinations(subsets, 2))
    except NotComputable:
        return False


def _needs_end_rows(fault: Fault) -> bool:
    """Return whether rows at the ends of all others move the aggregate, and so show more."""
    if fault.aggregate is None or fault.violation.pattern != "output":
        return False
    return fault.aggregate.function in ("MEDIAN", "AVG")


def build_rows(query: Query, case: Case, fault: Fault, size: int) -> list[tuple[Row, ...]]:
    """Return rows of all sources, one for each assignment of a schedule that tells something."""
    positions = build_schedule(case.query, fault.violation, size)
    values = [_make_values(case, fault, each, number) for number, each in enumerate(positions)]
    numbers = _keep_distinguishing(case, fault, positions, values)
    sources = range(len(query.sources))
    spare = [_list_null_attributes(query, case, source) for source in sources]
    streams = [source.stream for source in query.sources]
    rows = [
        tuple(_make_row(streams[s], case, s, values[n], spare[s]) for s in sources) for n in numbers
    ]
    # A filter with holes may reject some rows: keep those that pass, or, where none does, those
    # that fail in the same way.
    truths = [evaluate(query.where, combine_rows(query, parts)) for parts in rows]
    usual = True if True in truths else Counter([*truths, False]).most_common(1)[0][0]
    return [parts for parts, truth in zip(rows, truths, strict=True) if truth == usual]


def _keep_distinguishing(
    case: Case, fault: Fault, positions: Sequence[Sequence[Position]], values: list[_Values]
) -> list[int]:
    """Return the rows that tell something: to a sum, not those that add 0.

    They are sorted by a median's argument.
    """
    numbers = list(range(len(values)))
    if fault.aggregate is None or fault.aggregate.argument is None:
        return numbers
    argument = case.number(fault.aggregate.argument)
    if argument is None:
        return numbers
    if fault.violation.pattern == "output":
        numbers.sort(key=lambda number: positions[number][argument])
    # A zero counts for COUNT and AVG, and is a value like any other for MIN, MAX and MEDIAN.
    if fault.aggregate.function != "SUM":
        return numbers
    return [number for number in numbers if values[number][argument] != 0]


def _make_values(case: Case, fault: Fault, positions: Sequence[Position], number: int) -> _Values:
    """Return the values of all variables of one row of the schedule."""
    violation = fault.violation
    equal = compute_closure(case.query).equal
    # Variables at fault, and all that equal them, must follow the schedule from row to row.
    moving = {violation.variable, *(v for j in violation.joins for v in (j.left, j.right))} - {-1}
    moving |= {int(twin) for v in moving for twin in np.flatnonzero(equal[v])}
    argument = fault.aggregate.argument if fault.aggregate else None
    tied = {v for c in case.query.comparisons for v in (c.left, c.right)}
    values: _Values = []
    for variable, column in enumerate(case.columns):
        # What nothing ties keeps one value, except that an aggregate's argument should change.
        is_free = variable not in tied and variable not in moving
        # A pattern on one member of a class decides the text of all of them.
        twins = np.flatnonzero(equal[variable])
        patterned = [v for v in twins if _list_patterns(case, case.columns[v])]
        if is_free and column == argument and column.type.numeric:
            values.append(_choose_argument(case.sets[variable], column.type, number))
        elif patterned:
            values.append(_choose_example(case, int(patterned[0]), number * (variable in moving)))
        elif is_free:
            values.append(_choose_example(case, variable, 0))
        else:
            axis = case.axes[case.query.variables[variable].line]
            values.append(get_value(axis, positions[variable], column.type))
    return values


def _choose_argument(values: ValueSet, type_: Type, number: int) -> Value:
    """Return an aggregate's value that changes from row to row: a power of two, or one of a few."""
    few = values.finite_ordinals(MAX_CYCLED_VALUES)
    if few:
        return type_.value(few[number % len(few)])
    # Each subset of different powers of two has its own sum; the first 31 rows get such.
    for power in (1 << min(number, 30), -1 << min(number, 30)):
        low, _ = type_.place(power)
        if low in values:
            return type_.value(low)
    return type_.value(_choose_ordinal(values, type_, number))


def _choose_ordinal(values: ValueSet, type_: Type, number: int) -> Ordinal:
    """Return a member of a set, another for each number where it can: `a <> b` may be asked."""
    usual = pick_example(values, type_)
    other = f"{usual}{number}" if isinstance(usual, str) else usual + number
    return other if type_.fits(type_.value(other)) and other in values else usual


def _list_patterns(case: Case, column: Column) -> list[Matches]:
    return [a for a in case.unseen if isinstance(a, Matches) and a.column == column]


def _choose_example(case: Case, variable: int, number: int) -> Value:
    """Return a value in a column's set that its patterns accept, others for other numbers.

    If there is a number, the patterns must accept texts of any length: `^[0-9]{3}$` does not.
    """
    column, values = case.columns[variable], case.sets[variable]
    patterns = _list_patterns(case, column)
    if not patterns:
        return column.type.value(_choose_ordinal(values, column.type, variable))
    texts = [text for pattern in patterns for text in list_pattern_examples(pattern)]
    for text in (*texts, str(pick_example(values, column.type)), "a"):
        for form in ("{0}{1}", "{1}{0}"):
            tried = form.format(text, number or "")
            # A long text stands for all: a pattern that rejects it may accept only finitely many.
            endless = form.format(text, "0" * ENDLESS_LENGTH + str(number))
            if tried in values and _match_all(patterns, tried):
                if number and not (endless in values and _match_all(patterns, endless)):
                    continue
                return tried
    raise NoSuchValue("no text was found that its patterns accept")


def _match_all(patterns: list[Matches], text: str) -> bool:
    return all(p.pattern.matcher.matches(text) != p.negated for p in patterns)


def _list_null_attributes(query: Query, case: Case, source: int) -> frozenset[str]:
    """Return attributes that are NULL in rows of an occurrence, where they are not variables of it.

    Those that this case wants NULL, and those that other alternatives, or other occurrences of the
    stream, look at, unless they want them NULL.
    """
    alias, stream = query.sources[source].alias, query.sources[source].stream
    same = {"", *(other.alias for other in query.sources if other.stream == stream)}
    used = (
        *collect_columns(query.where),
        *list_output_columns(query),
        *list_argument_columns(query),
    )
    null_here = {column.name for column in case.nulls if column.source in ("", alias)}
    null_anywhere = {column.name for column in case.nulls if column.source in same}
    return frozenset({c.name for c in used if c.source in same} - null_anywhere | null_here)


def _make_row(
    stream: Stream,
    case: Case,
    source: int,
    values: Sequence[Value | None],
    left_null: frozenset[str],
) -> Row:
    """Return a row of an occurrence; an attribute that nothing looks at gets any value."""
    mentioned = {
        column.name: value
        for variable, column, value in zip(case.query.variables, case.columns, values, strict=True)
        if variable.source == source
    }
    row: dict[str, Value | None] = {}
    for attribute in stream:
        if attribute.name in mentioned:
            row[attribute.name] = mentioned[attribute.name]
        elif attribute.nullable and (attribute.name in left_null or attribute.domain.is_empty):
            row[attribute.name] = None
        elif attribute.domain.is_empty:
            raise NoSuchValue(f"no value of {attribute.name} passes its CHECK")
        else:
            row[attribute.name] = attribute.type.value(
                pick_example(attribute.domain, attribute.type)
            )
    return row
