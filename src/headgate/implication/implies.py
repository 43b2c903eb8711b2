"""Is every row of one predicate a row of another? Yes, no with a counterexample, or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge, UsageError
from headgate.implication.counterexample import counterexample
from headgate.implication.exact.leftover import BUDGET, uncovered
from headgate.implication.pair import Declared, Pair
from headgate.predicate import Predicate, Satisfiability, Truth, conjunction, satisfiable
from headgate.predicate.satisfy import Answer
from headgate.query import Query
from headgate.schema import Schema, Stream, Value
from headgate.sql import parse_where

Condition = str | Predicate | Query
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
        if self.answer == "unknown":
            raise UsageError(f"whether it implies is unknown: {self.reason}; look at `.answer`")
        return self.answer == "yes"


def implies(
    p: Condition, q: Condition, stream: Stream | Schema | None = None, *, budget: int = BUDGET
) -> Implication:
    """Is every row of p a row of q, given what the stream declares of its columns?

    A row of a predicate is one for which it is TRUE. Conditions in SQL need the stream. The answer
    is "unknown" only past the budget of comparisons, or where patterns leave it open.
    """
    known = stream.the_stream() if isinstance(stream, Schema) else stream
    first, second = as_predicate(p, known), as_predicate(q, known)
    return implied(first, second, Declared.of(known, (first, second)), budget)


def as_predicate(condition: Condition, stream: Stream | None) -> Predicate:
    """The predicate that text, a query or itself is."""
    if isinstance(condition, Query):
        if len(condition.sources) > 1:
            raise UsageError(f"`{condition.id}` is a join; implication is about one stream")
        return condition.where
    if not isinstance(condition, str):
        return condition
    if stream is None:
        raise UsageError("a condition in SQL needs `stream`, whose attributes it names")
    return parse_where(condition, stream)


def implied(p: Predicate, q: Predicate, declared: Declared, budget: int = BUDGET) -> Implication:
    """The same for predicates that are bound already."""
    try:
        pair = Pair.of(p, q, declared)
    except ExpansionTooLarge:
        return by_search(p, q, declared)
    parts = uncovered(pair.query_boxes, pair.stream_boxes, budget)
    return _implication(counterexample(parts, pair))


def by_search(p: Predicate, q: Predicate, declared: Declared) -> Implication:
    """The obvious way, without boxes: can p be TRUE where q is not?"""
    counter = conjunction((p, Truth(q, frozenset({False, None}))))
    return _implication(satisfiable(counter, declared.domains, declared.required))


def _implication(found: Satisfiability) -> Implication:
    """What a counterexample, or that there is none, says about the implication."""
    if found.answer == "no":
        return Implication("yes")
    return Implication("no" if found.answer == "yes" else "unknown", found.witness, found.reason)
