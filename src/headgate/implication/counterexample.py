"""A row of what is left over, where there is one.

Where a space has columns that stand for conditions, the conditions of a part may contradict each
other or the values of their columns; so every part is asked whether it holds a row at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.errors import ExpansionTooLarge
from headgate.implication.pair import PredicatePair
from headgate.implication.paper.part import Part
from headgate.predicate import Satisfiability, collect_columns, decide_satisfiability, evaluate
from headgate.predicate.answer import Answer

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
