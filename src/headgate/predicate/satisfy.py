"""Is there a row for which a predicate is TRUE? Yes with such a row, no, or unknown.

The search walks the tree: atoms narrow the values that each column may still take, an OR branches,
and a branch ends as soon as a column has no value left. What is left is a conjunction; a row for it
is guessed from the narrowed values and then *verified* by `evaluate`, so a "yes" is always right. A
"no" is right because narrowing only ever removes impossible values. The rest is "unknown": past the
budget, or where patterns and comparisons leave it open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from headgate.predicate.atoms import (
    MIRROR,
    Column,
    Compare,
    Constant,
    IsNull,
    Matches,
    Operator,
    Within,
)
from headgate.predicate.candidates import pattern_examples, values_beside
from headgate.predicate.comparison import comparable
from headgate.predicate.evaluate import evaluate, evaluate_atom
from headgate.predicate.holding import without_nulls
from headgate.predicate.like import parse_like
from headgate.predicate.tree import And, Or, Predicate, columns
from headgate.schema import (
    EVERYTHING,
    Interval,
    Ordinal,
    String,
    Type,
    Value,
    ValueSet,
    successor,
)

Answer = Literal["yes", "no", "unknown"]
BUDGET = 20_000
CANDIDATES = 12
ROUNDS = 50
LARGEST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Satisfiability:
    """The answer, a row for which the predicate is TRUE, and why where there is none."""

    answer: Answer
    witness: Mapping[str, Value | None] | None = None
    reason: str = ""


@dataclass(slots=True)
class _State:
    """What a branch still allows. A column is absent until something is said of it."""

    sets: dict[Column, ValueSet] = field(default_factory=dict)
    nulls: frozenset[Column] = frozenset()
    others: tuple[Compare | Matches, ...] = ()
    blamed: str = ""

    def copy(self) -> _State:
        return _State(dict(self.sets), self.nulls, self.others, self.blamed)


@dataclass(slots=True)
class _Search:
    predicate: Predicate
    domains: Mapping[Column, ValueSet]
    required: frozenset[Column]
    steps: int = 0
    open_branches: int = 0
    blamed: str = ""


def satisfiable(
    predicate: Predicate,
    domains: Mapping[Column, ValueSet] | None = None,
    required: Collection[Column] = (),
    budget: int = BUDGET,
) -> Satisfiability:
    """Can the predicate be TRUE, given the values that CHECK allows and what is NOT NULL?"""
    search = _Search(predicate, domains or {}, frozenset(required))
    for state in _branches(without_nulls(predicate), search, budget):
        witness = _solve(state, search)
        if witness is not None:
            return Satisfiability("yes", witness)
    if search.steps > budget:
        return Satisfiability("unknown", reason=f"no answer within {budget:,} steps")
    if search.open_branches:
        reason = "patterns or comparisons between attributes leave it open"
        return Satisfiability("unknown", reason=reason)
    return Satisfiability("no", reason=search.blamed or "the condition is FALSE")


def _branches(predicate: Predicate, search: _Search, budget: int) -> Iterator[_State]:
    """All ways to make the predicate TRUE that narrowing does not exclude, depth first."""
    stack: list[tuple[tuple[Predicate, ...], _State]] = [((predicate,), _State())]
    while stack and search.steps <= budget:
        pending, state = stack.pop()
        alternatives = _narrowed(list(pending), state, search)
        if alternatives is None:
            search.blamed = search.blamed or state.blamed
        elif not alternatives:
            yield state
        else:
            chosen = min(alternatives, key=lambda part: len(part.parts))
            rest = tuple(part for part in alternatives if part is not chosen)
            stack.extend(((*rest, option), state.copy()) for option in reversed(chosen.parts))


def _narrowed(pending: list[Predicate], state: _State, search: _Search) -> list[Or] | None:
    """Assume all atoms that must hold; the ORs that remain, or None on a contradiction."""
    alternatives: list[Or] = []
    while pending:
        search.steps += 1
        part = pending.pop()
        if isinstance(part, And):
            pending.extend(part.parts)
        elif isinstance(part, Or):
            alternatives.append(part)
        elif not _assume(part, state, search):
            return None
    return alternatives


def _assume(part: Predicate, state: _State, search: _Search) -> bool:
    """Narrow the state by one atom; False when nothing is left."""
    if isinstance(part, Constant):
        state.blamed = "a constant condition is not TRUE"
        return part.value is True
    if isinstance(part, IsNull):
        state.nulls |= {part.column}
        state.blamed = f"`{part.column.key}` would have to be NULL and have a value"
        return part.column not in state.sets and part.column not in search.required
    if isinstance(part, Within):
        return _narrow(state, part.column, part.values, search)
    assert isinstance(part, Compare | Matches)
    state.others += (part,)
    if isinstance(part, Compare):
        return all(_narrow(state, c, EVERYTHING, search) for c in (part.left, part.right))
    return _narrow(state, part.column, _prefix_range(part), search)


def _narrow(state: _State, column: Column, values: ValueSet, search: _Search) -> bool:
    known = state.sets.get(column)
    if known is None:
        known = search.domains.get(column, EVERYTHING)
    left = known.intersection(values)
    state.sets[column] = left
    if column in state.nulls:
        state.blamed = f"`{column.key}` would have to be NULL and have a value"
        return False
    if left.is_empty:
        state.blamed = f"no value of `{column.key}` fulfils all conditions on it"
        return False
    return True


def _prefix_range(part: Matches) -> ValueSet:
    """The texts that begin with a LIKE pattern's prefix; they contain all that match it."""
    if part.negated or part.pattern.kind != "LIKE":
        return EVERYTHING
    pattern = parse_like(part.pattern.text, part.pattern.escape)
    prefix = pattern.prefix
    if pattern.is_literal:
        return ValueSet.of(Interval(prefix, successor(prefix)))
    return ValueSet.of(Interval(prefix or None, _after_prefix(prefix)))


def _after_prefix(prefix: str) -> str | None:
    """The least text above all that begin with the prefix.

    >>> _after_prefix("ab"), _after_prefix("a\\U0010ffff"), _after_prefix("")
    ('ac', 'b', None)
    """
    stem = prefix.rstrip(LARGEST_CHARACTER)
    if not stem:
        return None
    last = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if last == 0xD800 else last)


def _solve(state: _State, search: _Search) -> dict[str, Value | None] | None:
    """A verified row for a branch, or None; notes when the branch stays open."""
    if not _propagate(state, search):
        search.blamed = search.blamed or state.blamed
        return None
    for column in search.required:
        state.sets.setdefault(column, search.domains.get(column, EVERYTHING))
    order = sorted(state.sets, key=lambda c: (c not in _compared(state), c.key))
    row: dict[str, Value | None] = {column.key: None for column in columns(search.predicate)}
    budget = [BUDGET // 10]
    if _assign(order, row, state, search, budget):
        return row
    search.open_branches += 1
    return None


def _compared(state: _State) -> set[Column]:
    return {c for o in state.others if isinstance(o, Compare) for c in (o.left, o.right)}


def _propagate(state: _State, search: _Search) -> bool:
    """Narrow compared columns by each other's least and greatest values, to a fixed point."""
    comparisons = [other for other in state.others if isinstance(other, Compare)]
    if _strict_cycle(comparisons):
        state.blamed = "the comparisons between attributes contradict each other"
        return False
    for _ in range(ROUNDS):
        before = dict(state.sets)
        for comparison in comparisons:
            left, op, right = comparison.left, comparison.operator, comparison.right
            if not (
                _narrow(state, left, _allowed(left, op, right, state), search)
                and _narrow(state, right, _allowed(right, MIRROR[op], left, state), search)
            ):
                return False
        if state.sets == before:
            break
    return True


def _allowed(column: Column, op: Operator, other: Column, state: _State) -> ValueSet:
    """The values of a column that stand in `op` to some value of the other column."""
    values = state.sets[other]
    if op == "=" and column.type == other.type:
        return values
    if op in ("<", "<="):
        return values_beside(column, op, _greatest(values), other)
    if op in (">", ">="):
        return values_beside(column, op, _least(values, other.type), other)
    if op == "=":
        return values_beside(column, "<=", _greatest(values), other).intersection(
            values_beside(column, ">=", _least(values, other.type), other)
        )
    only = values.finite_ordinals(1)
    return values_beside(column, op, only[0], other) if only else EVERYTHING


def _greatest(values: ValueSet) -> Ordinal | None:
    """The greatest member; None where there is no greatest, or none that we can name."""
    high = values.intervals[-1].high
    if isinstance(high, str):
        return high[:-1] if high.endswith("\0") else high
    return None if high is None else high - 1


def _least(values: ValueSet, type_: Type) -> Ordinal | None:
    low = values.intervals[0].low
    return "" if low is None and isinstance(type_, String) else low


def _strict_cycle(comparisons: list[Compare]) -> bool:
    """Does `a < b <= … <= a` follow? Found by the transitive closure of the few columns."""
    reach: dict[tuple[Column, Column], bool] = {}  # (a, b): a <= b follows; True when a < b does
    for comparison in comparisons:
        left, op, right = comparison.left, comparison.operator, comparison.right
        if op in (">", ">="):
            left, op, right = right, MIRROR[op], left
        if op in ("<", "<=", "="):
            reach[left, right] = reach.get((left, right), False) or op == "<"
        if op == "=":
            reach.setdefault((right, left), False)
    nodes = {column for pair in reach for column in pair}
    for middle in nodes:
        for first in nodes:
            for last in nodes:
                if (first, middle) in reach and (middle, last) in reach:
                    strict = reach[first, middle] or reach[middle, last]
                    reach[first, last] = reach.get((first, last), False) or strict
    unequal = {(c.left, c.right) for c in comparisons if c.operator == "<>"}
    return any(strict and a == b for (a, b), strict in reach.items()) or any(
        (a, b) in reach and (b, a) in reach for a, b in unequal
    )


def _assign(
    order: list[Column],
    row: dict[str, Value | None],
    state: _State,
    search: _Search,
    budget: list[int],
) -> bool:
    """Backtracking over a few candidates a column; the full row is verified at the end."""
    if not order:
        return evaluate(search.predicate, row) is True
    column, *rest = order
    for ordinal in _candidates(column, row, state):
        budget[0] -= 1
        if budget[0] < 0:
            return False
        row[column.key] = column.type.value(ordinal)
        if _consistent(column, row, state) and _assign(rest, row, state, search, budget):
            return True
        row[column.key] = None
    return False


def _consistent(column: Column, row: dict[str, Value | None], state: _State) -> bool:
    """No condition on this column is FALSE yet; what still lacks a value is NULL."""
    return all(
        evaluate_atom(other, row) is not False
        for other in state.others
        if column in ((other.left, other.right) if isinstance(other, Compare) else (other.column,))
    )


def _candidates(column: Column, row: dict[str, Value | None], state: _State) -> Iterator[Ordinal]:
    """Values worth trying: pattern examples, ends of intervals, and beside assigned neighbours."""
    values = state.sets[column]
    allowed = values
    hints: list[Ordinal] = []
    for other in state.others:
        if isinstance(other, Matches) and other.column == column:
            hints.extend(pattern_examples(other))
        elif isinstance(other, Compare) and column in (other.left, other.right):
            allowed = allowed.intersection(_beside(column, other, row))
    seen = [hint for hint in hints if hint in allowed]
    yield from seen
    yield from islice(_ends(allowed, column.type), CANDIDATES)


def _beside(column: Column, comparison: Compare, row: dict[str, Value | None]) -> ValueSet:
    """The values that agree with the other side of a comparison, once that has its value."""
    mine = comparison.left == column
    other = comparison.right if mine else comparison.left
    op = comparison.operator if mine else MIRROR[comparison.operator]
    value = row.get(other.key)
    if value is None or not comparable(column.type, other.type):
        return EVERYTHING
    return values_beside(column, op, other.type.ordinal(value), other)


def _ends(values: ValueSet, type_: Type) -> Iterator[Ordinal]:
    """The ends of each interval, nearest to zero first where an end is infinite."""
    for interval in values.intervals:
        low, high = interval.low, interval.high
        if low is None and high is None:
            yield from (type_.ordinal("a"), "") if isinstance(type_, String) else (0, 1)
            continue
        if low is not None:
            yield low
            if successor(low) in values:
                yield successor(low)
        if high is not None and not isinstance(high, str):
            yield high - 1
        elif low is None and isinstance(high, str):
            yield ""
