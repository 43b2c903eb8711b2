"""Is there a row for which a predicate is TRUE? Yes with such a row, no, or unknown.

The search walks the tree: atoms narrow the values that each column may still take, an OR branches,
and a branch ends as soon as a column has no value left. What is left is a conjunction; a row for it
is guessed from the narrowed values and then *verified* by `evaluate`, so a "yes" is always right. A
"no" is right because narrowing only ever removes impossible values. The rest is "unknown": past the
budget, or where patterns and comparisons leave it open.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from headgate.predicate.answer import Answer
from headgate.predicate.atoms import MIRROR, Atom, Column, Compare, Matches
from headgate.predicate.evaluation import evaluate, evaluate_atom
from headgate.predicate.monotone import expand_truth_tests
from headgate.predicate.narrowing import Narrowing, list_pattern_examples, values_within_bound
from headgate.predicate.tree import And, Or, Predicate, collect_columns, columns_of
from headgate.schema import (
    EVERYTHING,
    Double,
    Interval,
    Ordinal,
    String,
    Type,
    Value,
    ValueSet,
    successor,
)

MAX_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Satisfiability:
    """The answer, a row for which the predicate is TRUE, and why where there is none."""

    answer: Answer
    witness: Mapping[str, Value | None] | None = None
    reason: str = ""


@dataclass(slots=True)
class _Search:
    """The branches that are still to be walked, each the parts that must hold in it."""

    stack: list[tuple[tuple[Predicate, ...], Narrowing]]
    budget: int
    steps: int = 0
    contradiction: str = ""


def decide_satisfiability(
    predicate: Predicate,
    domains: Mapping[Column, ValueSet] | None = None,
    required: Collection[Column] = (),
    budget: int = MAX_STEPS,
) -> Satisfiability:
    """Decide whether the predicate can be TRUE, given CHECK domains and NOT NULL columns."""
    start = Narrowing(domains or {}, frozenset(required))
    # A NOT NULL column needs a value of its domain, whether or not the branch mentions it.
    if not all(start.narrow(column, EVERYTHING) for column in start.required):
        return Satisfiability(Answer.NO, reason=start.contradiction)
    search = _Search([((expand_truth_tests(predicate),), start)], budget)
    is_open = False
    for narrowing in _iter_branches(search):
        if not narrowing.propagate():
            search.contradiction = search.contradiction or narrowing.contradiction
            continue
        witness = find_row(predicate, narrowing)
        if witness is not None:
            return Satisfiability(Answer.YES, witness)
        is_open = True
    # No branch has a row: unknown if any was left unsearched or open, else no.
    if search.steps > budget:
        return Satisfiability(Answer.UNKNOWN, reason=f"no answer within {budget:,} steps")
    if is_open:
        reason = "patterns or comparisons between attributes leave it open"
        return Satisfiability(Answer.UNKNOWN, reason=reason)
    return Satisfiability(Answer.NO, reason=search.contradiction or "the condition is FALSE")


def _iter_branches(search: _Search) -> Iterator[Narrowing]:
    """Yield all ways to make the predicate TRUE that narrowing does not exclude, depth first."""
    while search.stack and search.steps <= search.budget:
        pending, narrowing = search.stack.pop()
        alternatives = _narrow_branch(list(pending), narrowing, search)
        if alternatives is None:
            search.contradiction = search.contradiction or narrowing.contradiction
        elif not alternatives:
            yield narrowing
        else:
            # The OR with the fewest options branches first; its first option is on top of the
            # stack.
            chosen = min(alternatives, key=lambda part: len(part.parts))
            others = tuple(part for part in alternatives if part is not chosen)
            for option in reversed(chosen.parts):
                search.stack.append(((*others, option), narrowing.copy()))


def _narrow_branch(
    pending: list[Predicate], narrowing: Narrowing, search: _Search
) -> list[Or] | None:
    """Assume all atoms that must hold; return the ORs that remain, None on a contradiction."""
    alternatives: list[Or] = []
    while pending:
        search.steps += 1
        part = pending.pop()
        if isinstance(part, And):
            pending.extend(part.parts)
        elif isinstance(part, Or):
            alternatives.append(part)
        else:
            assert isinstance(part, Atom)
            if not narrowing.assume(part):
                return None
    return alternatives


# Limits of the search for a row: assignments in all, candidates for each column, columns that
# depend on each other, and digits of a DOUBLE.
MAX_TRIES = 2_000
MAX_CANDIDATES = 12
MAX_TIED_COLUMNS = 100
MAX_DIGITS = 16

_Row = dict[str, Value | None]


def find_row(predicate: Predicate, narrowing: Narrowing) -> _Row | None:
    """Return a row for which the predicate is TRUE; None proves nothing."""
    row: _Row = {column.key: None for column in collect_columns(predicate)}
    # Columns that no pattern or comparison mentions are free of each other: any value does.
    tied = {column for condition in narrowing.conditions for column in columns_of(condition)}
    for column, values in narrowing.sets.items():
        # A narrowed set is never empty, so it has an example.
        if column not in tied:
            row[column.key] = column.type.value(pick_example(values, column.type))
    if len(tied) > MAX_TIED_COLUMNS:
        return None
    order = sorted(tied, key=lambda column: column.key)
    guess = _Guess(narrowing, row)
    return row if guess.assign(order) and evaluate(predicate, row) is True else None


class _Guess:
    """Backtracking over a few candidates for each column that a pattern or comparison ties."""

    def __init__(self, narrowing: Narrowing, row: _Row) -> None:
        self.narrowing = narrowing
        self.row = row
        self.tries = 0

    def assign(self, order: list[Column]) -> bool:
        if not order:
            return True
        column, *remaining = order
        for ordinal in self.candidates(column):
            self.tries += 1
            if self.tries > MAX_TRIES:
                return False
            self.row[column.key] = column.type.value(ordinal)
            if self.is_consistent(column) and self.assign(remaining):
                return True
            # Back to NULL, with which no comparison is FALSE.
            self.row[column.key] = None
        return False

    def is_consistent(self, column: Column) -> bool:
        """Return whether no condition on this column is FALSE; what still lacks a value is NULL."""
        return all(
            evaluate_atom(condition, self.row) is not False
            for condition in self.narrowing.conditions
            if column in columns_of(condition)
        )

    def candidates(self, column: Column) -> Iterator[Ordinal]:
        """Yield examples of patterns, and ends of what neighbours that have a value leave."""
        allowed = self.narrowing.sets[column]
        # Texts that patterns suggest come first; comparisons narrow the rest.
        examples: list[str] = []
        for condition in self.narrowing.conditions:
            if isinstance(condition, Matches) and condition.column == column:
                examples.extend(list_pattern_examples(condition))
            elif isinstance(condition, Compare) and column in columns_of(condition):
                allowed = allowed.intersection(self.find_agreeing_values(column, condition))
        yield from (example for example in examples if example in allowed)
        yield from islice(_iter_ends(allowed, column.type), MAX_CANDIDATES)

    def find_agreeing_values(self, column: Column, comparison: Compare) -> ValueSet:
        """Return the values that agree with the other side of a comparison, once it has one."""
        is_left = comparison.left == column
        other = comparison.right if is_left else comparison.left
        # As the column sees it: mirrored where it stands on the right.
        op = comparison.operator if is_left else MIRROR[comparison.operator]
        value = self.row.get(other.key)
        if value is None:
            return EVERYTHING
        return values_within_bound(column, op, other.type.ordinal(value), other)


def pick_example(values: ValueSet, type_: Type) -> Ordinal:
    """Return a member of a set that is not empty, one that reads well where there is a choice."""
    return next(_iter_ends(values, type_))


def _iter_ends(values: ValueSet, type_: Type) -> Iterator[Ordinal]:
    """Yield the ends of each interval, nearest to zero first where an end is infinite."""
    for interval in values.intervals:
        low, high = interval.low, interval.high
        if low is None and high is None:
            # No end at all: values that read well.
            yield from (type_.ordinal("a"), "") if isinstance(type_, String) else (0, 1)
            continue
        if isinstance(type_, Double):
            yield from _round_number(interval, type_)
        if low is not None:
            yield low
            # A second value, for two columns that must differ.
            if successor(low) in values:
                yield successor(low)
        # The last value inside. A range of texts may have none, but the empty text is its first.
        if high is not None and not isinstance(high, str):
            yield high - 1
        elif low is None and isinstance(high, str):
            yield ""


def _round_number(interval: Interval, type_: Double) -> Iterator[Ordinal]:
    """Yield a number of few digits in the middle of an interval, or beyond its only end."""
    ends = [float(type_.value(o)) for o in (interval.low, interval.high) if isinstance(o, int)]
    if not all(map(math.isfinite, ends)):
        return
    # Between two ends their middle, else one beyond the only end; then the fewest digits that fit.
    middle = sum(ends) / 2 if len(ends) == 2 else ends[0] + (1 if interval.high is None else -1)
    rounded = (type_.ordinal(round(middle, digits)) for digits in range(MAX_DIGITS))
    yield from islice((ordinal for ordinal in rounded if ordinal in interval), 1)
