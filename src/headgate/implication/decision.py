"""Is every row of one predicate a row of another? Yes, no with a counterexample, or unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge, UsageError
from headgate.implication.arguments import (
    Condition,
    StreamSource,
    check_budget,
    resolve_stream,
    to_predicate,
)
from headgate.implication.exact.leftover import MAX_KERNEL_COMPARISONS, find_uncovered
from headgate.implication.pair import Constraints, PredicatePair
from headgate.implication.parts import Part
from headgate.predicate import (
    And,
    Or,
    Predicate,
    Satisfiability,
    Truth,
    collect_columns,
    conjunction,
    decide_satisfiability,
    evaluate,
    to_monotone,
)
from headgate.predicate.answer import Answer
from headgate.schema import Value

Row = Mapping[str, Value | None]


@dataclass(frozen=True, slots=True)
class Implication:
    """The answer, for "no" a row of the first that is none of the second, and a reason.

    It is true or false as the answer is; "unknown" is neither, and to ask raises an error.
    """

    answer: Answer
    witness: Row | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        if self.answer is Answer.UNKNOWN:
            raise UsageError(f"whether it implies is unknown: {self.reason}; look at `.answer`")
        return self.answer is Answer.YES


def implies(
    p: Condition, q: Condition, stream: StreamSource = None, *, budget: int = MAX_KERNEL_COMPARISONS
) -> Implication:
    """Is every row of p a row of q, given what the stream declares of its columns?

    A row of a predicate is one for which it is TRUE. Conditions in SQL need the stream. The answer
    is "unknown" only past the budget of comparisons, or where patterns leave it open.
    """
    check_budget(budget)
    known = resolve_stream(stream, p, q)
    first, second = to_predicate(p, known), to_predicate(q, known)
    return decide_implication(first, second, Constraints.of(known, (first, second)), budget)


def decide_implication(
    p: Predicate, q: Predicate, declared: Constraints, budget: int = MAX_KERNEL_COMPARISONS
) -> Implication:
    """The same for predicates that are bound already."""
    try:
        pair = PredicatePair.of(p, q, declared)
    except ExpansionTooLarge:
        return Implication(Answer.YES) if _is_obvious(p, q) else decide_by_search(p, q, declared)
    parts = find_uncovered(pair.query_boxes, pair.stream_boxes, budget)
    return _implication(find_counterexample(parts, pair))


def _is_obvious(p: Predicate, q: Predicate) -> bool:
    """Is all that q asks for a part of p, or all that p allows a part of q?"""
    first, second = to_monotone(p), to_monotone(q)
    asked, given = (set(h.parts if isinstance(h, And) else (h,)) for h in (second, first))
    allowed, wide = (set(h.parts if isinstance(h, Or) else (h,)) for h in (first, second))
    return asked <= given or allowed <= wide


def decide_by_search(p: Predicate, q: Predicate, declared: Constraints) -> Implication:
    """The obvious way, without boxes: can p be TRUE where q is not?"""
    counter = conjunction((p, Truth(q, frozenset({False, None}))))
    return _implication(decide_satisfiability(counter, declared.domains, declared.required))


def _implication(found: Satisfiability) -> Implication:
    """What a counterexample, or that there is none, says about the implication."""
    return Implication(found.answer.opposite, found.witness, found.reason)


MAX_SEARCHED_PARTS = 50  # that are asked where conditions may contradict each other
MAX_STEPS = 1_000  # of the search in each of them


def find_counterexample(parts: Iterable[Part], pair: PredicatePair) -> Satisfiability:
    """Is there a row in any of these parts of the query that the stream does not cover?

    A row that is found has been verified: for it the query is TRUE, and the stream is not.
    """
    reason = ""
    try:
        for count, part in enumerate(parts):
            if count == MAX_SEARCHED_PARTS:
                reason = (
                    reason or f"no row in the first {MAX_SEARCHED_PARTS} parts that are left over"
                )
                break
            found = _row_of(part, pair)
            if found.answer is Answer.YES:
                return found
            if found.answer is Answer.UNKNOWN:
                reason = reason or found.reason
    except ExpansionTooLarge as error:
        reason = str(error)
    return Satisfiability(Answer.UNKNOWN if reason else Answer.NO, reason=reason)


def _row_of(part: Part, pair: PredicatePair) -> Satisfiability:
    declared = pair.constraints
    if pair.conditions:
        found = decide_satisfiability(
            pair.predicate(part), declared.domains, declared.required, budget=MAX_STEPS
        )
        if found.witness is None:
            return found
        mentioned = (*collect_columns(pair.query), *collect_columns(pair.stream))
        row = {column.key: found.witness.get(column.key) for column in mentioned}
    else:
        row = pair.example_row(part)
    assert evaluate(pair.query, row) is True
    assert evaluate(pair.stream, row) is not True
    return Satisfiability(Answer.YES, row)
