"""Is there a row for which a predicate is TRUE? Yes with such a row, no, or unknown.

The search walks the tree: atoms narrow the values that each column may still take, and a branch
ends as soon as a column has no value left. At each step a row of what is left is tried, by
`evaluate`, so a "yes" is always right. If it fails, the search branches into the options of an OR
that the row does not make TRUE. A "no" is right because narrowing only ever removes impossible
values. The rest is "unknown": past the budget, or where comparisons leave it open.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from headgate.predicate.answer import Answer
from headgate.predicate.atoms import MIRROR, Atom, Column, Compare
from headgate.predicate.deadline import Deadline
from headgate.predicate.evaluation import evaluate, evaluate_atom
from headgate.predicate.monotone import expand_truth_tests
from headgate.predicate.narrowing import Narrowing, values_within_bound
from headgate.predicate.texts import find_text
from headgate.predicate.tree import And, Or, Predicate, collect_columns, columns_of, iter_atoms
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

MAX_STEPS = 200_000
MAX_SECONDS = 1.0  # of processor time


@dataclass(frozen=True, slots=True)
class Satisfiability:
    """The answer, a row for which the predicate is TRUE, and why where there is none."""

    answer: Answer
    witness: Mapping[str, Value | None] | None = None
    reason: str = ""


@dataclass(slots=True)
class _Branch:
    """Parts that must be TRUE, ORs among them, and what that leaves of the columns."""

    pending: list[Predicate]
    alternatives: list[Or]
    narrowing: Narrowing


def decide_satisfiability(
    predicate: Predicate,
    domains: Mapping[Column, ValueSet] | None = None,
    required: Collection[Column] = (),
    budget: int = MAX_STEPS,
    seconds: float = MAX_SECONDS,
) -> Satisfiability:
    """Decide whether the predicate can be TRUE, given CHECK domains and NOT NULL columns.

    The answer is unknown past a budget of steps, or of seconds of processor time.
    """
    deadline = Deadline(seconds)
    start = Narrowing(domains or {}, frozenset(required), deadline=deadline)
    # A NOT NULL column needs a value of its domain, whether or not the branch mentions it.
    if not all(start.narrow(column, EVERYTHING) for column in start.required):
        return Satisfiability(Answer.NO, reason=start.contradiction)
    columns = collect_columns(predicate)
    stack = [_Branch([expand_truth_tests(predicate)], [], start)]
    contradiction = ""
    steps, is_open = 0, False
    while stack:
        if steps > budget:
            return Satisfiability(Answer.UNKNOWN, reason=f"no answer within {budget:,} steps")
        if deadline.is_over():
            return Satisfiability(Answer.UNKNOWN, reason=f"no answer within {seconds:g} seconds")
        branch = stack.pop()
        narrowing = branch.narrowing
        steps += 1 + len(branch.alternatives)
        if not (_narrow_branch(branch) and narrowing.propagate()):
            contradiction = contradiction or narrowing.contradiction
            continue
        row = find_row(columns, narrowing)
        if row is not None and evaluate(predicate, row) is True:
            return Satisfiability(Answer.YES, row)
        # An OR that the row makes TRUE may stay as it is. One that it does not must be TRUE in
        # every other row, so its options are all that is left to try.
        chosen = _choose_alternative(branch.alternatives, row)
        if chosen is None:
            is_open = True
            continue
        others = [part for part in branch.alternatives if part is not chosen]
        for option in reversed(chosen.parts):
            stack.append(_Branch([option], list(others), narrowing.copy()))
    # No branch has a row: unknown if any was left open, else no.
    if is_open:
        reason = "patterns or comparisons between attributes leave it open"
        return Satisfiability(Answer.UNKNOWN, reason=reason)
    return Satisfiability(Answer.NO, reason=contradiction or "the condition is FALSE")


def _narrow_branch(branch: _Branch) -> bool:
    """Assume all that must hold in a branch, ORs with one option left too; False if it cannot."""
    narrowing, pending = branch.narrowing, branch.pending
    while pending:
        part = pending.pop()
        if isinstance(part, And):
            pending.extend(part.parts)
        elif isinstance(part, Or):
            branch.alternatives.append(part)
        else:
            assert isinstance(part, Atom)
            if not narrowing.assume(part):
                return False
        # Once all is assumed, options that it excludes go, and what has a single one left follows.
        if not pending:
            alternatives, branch.alternatives = branch.alternatives, []
            for alternative in alternatives:
                options = [o for o in alternative.parts if not narrowing.excludes(o)]
                if not options:
                    narrowing.contradiction = _explain_exclusion(alternative.parts[0], narrowing)
                    return False
                if len(options) == 1:
                    pending.append(options[0])
                elif len(options) < len(alternative.parts):
                    branch.alternatives.append(Or(tuple(options)))
                else:
                    branch.alternatives.append(alternative)
    return True


def _explain_exclusion(option: Predicate, narrowing: Narrowing) -> str:
    """Return why an option cannot be TRUE, by its first atom that cannot."""
    trial = narrowing.copy()
    for atom in iter_atoms(option):
        if not trial.assume(atom):
            break
    return trial.contradiction


def _choose_alternative(alternatives: list[Or], row: _Row | None) -> Or | None:
    """Return the OR with the fewest options of those that a row does not make TRUE, if any."""
    unfulfilled = (part for part in alternatives if row is None or evaluate(part, row) is not True)
    return min(unfulfilled, key=lambda part: len(part.parts), default=None)


# Limits of the search for a row: assignments in all, candidates for each column, columns that
# depend on each other, and digits of a DOUBLE.
MAX_TRIES = 2_000
MAX_CANDIDATES = 12
MAX_TIED_COLUMNS = 100
MAX_DIGITS = 16

_Row = dict[str, Value | None]


def find_row(columns: Iterable[Column], narrowing: Narrowing) -> _Row | None:
    """Return a row that fulfils the conditions of a narrowing; None proves nothing."""
    row: _Row = {column.key: None for column in columns}
    # Columns that no comparison mentions are free of each other: any value does.
    tied = {column for comparison in narrowing.comparisons for column in columns_of(comparison)}
    for column, values in narrowing.sets.items():
        if column in tied:
            continue
        if column in narrowing.patterns:
            row[column.key] = narrowing.texts[column]
        else:
            # A narrowed set is never empty, so it has an example.
            row[column.key] = column.type.value(pick_example(values, column.type))
    if len(tied) > MAX_TIED_COLUMNS:
        return None
    order = sorted(tied, key=lambda column: column.key)
    return row if _Guess(narrowing, row).assign(order) else None


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
            if self.tries > MAX_TRIES or self.narrowing.deadline.is_over():
                return False
            self.row[column.key] = column.type.value(ordinal)
            if self.is_consistent(column) and self.assign(remaining):
                return True
            # Back to NULL, with which no comparison is FALSE.
            self.row[column.key] = None
        return False

    def is_consistent(self, column: Column) -> bool:
        """Return whether no comparison with this column is FALSE; NULL is what lacks a value."""
        return all(
            evaluate_atom(comparison, self.row) is not False
            for comparison in self.narrowing.comparisons
            if column in columns_of(comparison)
        )

    def candidates(self, column: Column) -> Iterator[Ordinal]:
        """Yield ends of what neighbours that have a value leave; for patterns, a text."""
        narrowing = self.narrowing
        allowed = narrowing.sets[column]
        for comparison in narrowing.comparisons:
            if column in columns_of(comparison):
                allowed = allowed.intersection(self.find_agreeing_values(column, comparison))
        ends = islice(_iter_ends(allowed, column.type), MAX_CANDIDATES)
        if column not in narrowing.patterns:
            yield from ends
            return
        condition = replace(narrowing.text_condition(column), values=allowed)
        _, text = find_text(condition)
        if text is not None:
            yield text
        yield from (end for end in ends if condition.holds(str(end)))

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
