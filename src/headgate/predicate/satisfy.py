"""Is there a row for which a predicate is TRUE? Yes with such a row, no, or unknown.

The search walks the tree: atoms narrow the values that each column may still take, an OR branches,
and a branch ends as soon as a column has no value left. What is left is a conjunction; a row for it
is guessed from the narrowed values and then *verified* by `evaluate`, so a "yes" is always right. A
"no" is right because narrowing only ever removes impossible values. The rest is "unknown": past the
budget, or where patterns and comparisons leave it open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from headgate.predicate.answer import Answer
from headgate.predicate.atoms import Atom, Column
from headgate.predicate.holding import expand_truth_tests
from headgate.predicate.narrowing import Narrowing
from headgate.predicate.solve import find_row
from headgate.predicate.tree import And, Or, Predicate
from headgate.schema import Value, ValueSet

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
    blamed: str = ""


def decide_satisfiability(
    predicate: Predicate,
    domains: Mapping[Column, ValueSet] | None = None,
    required: Collection[Column] = (),
    budget: int = MAX_STEPS,
) -> Satisfiability:
    """Can the predicate be TRUE, given the values that CHECK allows and what is NOT NULL?"""
    start = Narrowing(domains or {}, frozenset(required))
    search = _Search([((expand_truth_tests(predicate),), start)], budget)
    is_open = False
    for narrowing in _branches(search):
        if not narrowing.propagate():
            search.blamed = search.blamed or narrowing.contradiction
            continue
        witness = find_row(predicate, narrowing)
        if witness is not None:
            return Satisfiability(Answer.YES, witness)
        is_open = True
    if search.steps > budget:
        return Satisfiability(Answer.UNKNOWN, reason=f"no answer within {budget:,} steps")
    if is_open:
        reason = "patterns or comparisons between attributes leave it open"
        return Satisfiability(Answer.UNKNOWN, reason=reason)
    return Satisfiability(Answer.NO, reason=search.blamed or "the condition is FALSE")


def _branches(search: _Search) -> Iterator[Narrowing]:
    """All ways to make the predicate TRUE that narrowing does not exclude, depth first."""
    while search.stack and search.steps <= search.budget:
        pending, narrowing = search.stack.pop()
        alternatives = _narrowed(list(pending), narrowing, search)
        if alternatives is None:
            search.blamed = search.blamed or narrowing.contradiction
        elif not alternatives:
            yield narrowing
        else:
            chosen = min(alternatives, key=lambda part: len(part.parts))
            rest = tuple(part for part in alternatives if part is not chosen)
            for option in reversed(chosen.parts):
                search.stack.append(((*rest, option), narrowing.copy()))


def _narrowed(pending: list[Predicate], narrowing: Narrowing, search: _Search) -> list[Or] | None:
    """Assume all atoms that must hold; the ORs that remain, or None on a contradiction."""
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
