"""Decide whether every row of one predicate is a row of another.

The answer is yes, no with a counterexample, or unknown. Both predicates become unions of boxes in
one space, and what the second union leaves uncovered of the first holds the counterexamples. Where
a predicate is too many boxes, the search for satisfiability decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate._display import render_fields
from headgate.errors import ExpansionTooLarge, UsageError
from headgate.implication.arguments import (
    Condition,
    StreamSource,
    check_budget,
    resolve_stream,
    to_predicate,
)
from headgate.implication.exact import MAX_KERNEL_COMPARISONS, find_uncovered
from headgate.implication.pair import Constraints, PredicatePair
from headgate.implication.parts import Part
from headgate.predicate import (
    And,
    Answer,
    Matches,
    Or,
    Predicate,
    Satisfiability,
    Truth,
    collect_columns,
    conjunction,
    decide_satisfiability,
    evaluate,
    iter_atoms,
    to_monotone,
)
from headgate.predicate.satisfiability import MAX_SECONDS, pick_example
from headgate.schema import EVERYTHING, Stream, Value
from headgate.sql import render_row

MAX_SEARCHED_PARTS = 50  # where conditions may contradict each other
MAX_STEPS = 1_000  # of the search in each of them
MAX_PAIR_SECONDS = 2.0  # of processor time, for one pair of many

Row = Mapping[str, Value | None]


@dataclass(frozen=True, slots=True)
class Implication:
    """Whether every row of one condition is a row of another.

    It is true or false as the answer is; where the answer is unknown, `bool` raises a UsageError.

    Attributes
    ----------
    answer : Answer
        Yes, no or unknown.
    witness : mapping, optional
        For a no, a row of the first condition that is none of the second.
    reason : str
        For unknown, why no answer was found.

    Examples
    --------
    >>> import headgate as hg
    >>> from headgate.schema import INT, Attribute
    >>> trades = hg.Stream("trades", (Attribute("qty", INT),))
    >>> implication = hg.implies("qty > 5", "qty > 10", trades)
    >>> implication.answer, implication.witness
    (<Answer.NO: 'no'>, {'qty': 6})
    >>> bool(implication)
    False
    """

    answer: Answer
    witness: Row | None = None
    reason: str = ""

    def _repr_html_(self) -> str:
        fields = {
            "implies": self.answer,
            "row of the first only": None if self.witness is None else render_row(self.witness),
            "reason": self.reason,
        }
        return render_fields("", fields)

    def __bool__(self) -> bool:
        if self.answer is Answer.UNKNOWN:
            raise UsageError(f"whether it implies is unknown: {self.reason}; look at `.answer`")
        return self.answer is Answer.YES


def implies(
    p: Condition,
    q: Condition,
    stream: StreamSource = None,
    *,
    budget: int = MAX_KERNEL_COMPARISONS,
) -> Implication:
    """Decide whether every row of p is a row of q, given what the stream declares.

    A row of a condition is one for which it is TRUE. Rows that CHECK or NOT NULL rule out do not
    count.

    Parameters
    ----------
    p, q : str, Predicate or Query
        The conditions: SQL text, which needs `stream`, or what was parsed before.
    stream : Stream, Schema or QuerySet, optional
        What the conditions are about; queries bring their own. A schema must have one stream.
    budget : int
        How many sides of boxes may be compared, past which the answer is unknown.

    Returns
    -------
    Implication
        The answer, with a row that shows a no. It is unknown only past the budget, or where
        patterns leave it open.

    Raises
    ------
    UsageError
        If the stream is missing, or the conditions are about several streams.
    SqlError
        If a condition is not valid SQL for the stream.

    Examples
    --------
    >>> import headgate as hg
    >>> from headgate.schema import INT, STRING, Attribute
    >>> trades = hg.Stream("trades", (Attribute("qty", INT), Attribute("venue", STRING)))
    >>> hg.implies("qty > 10", "qty > 5", trades).answer
    <Answer.YES: 'yes'>
    >>> hg.implies("venue LIKE 'NY%'", "venue >= 'N'", trades).answer
    <Answer.YES: 'yes'>
    """
    check_budget(budget)
    # What CHECK and NOT NULL rule out is known of a stream only.
    known = resolve_stream(stream, p, q)
    first, second = to_predicate(p, known), to_predicate(q, known)
    return decide_implication(first, second, Constraints.of(known, (first, second)), budget)


def decide_implication(
    p: Predicate, q: Predicate, constraints: Constraints, budget: int = MAX_KERNEL_COMPARISONS
) -> Implication:
    """Decide whether every row of p is a row of q, for predicates that are bound already."""
    try:
        pair = PredicatePair.of(p, q, constraints)
    except ExpansionTooLarge:
        # Too many boxes: compare the parts as they are written, then search without boxes.
        if _is_obvious(p, q):
            return Implication(Answer.YES)
        return decide_by_search(p, q, constraints)
    parts = find_uncovered(pair.query_boxes, pair.stream_boxes, budget)
    return _to_implication(find_counterexample(parts, pair))


def decide_by_search(
    p: Predicate, q: Predicate, constraints: Constraints, seconds: float = MAX_SECONDS
) -> Implication:
    """Decide without boxes whether p can be TRUE where q is not."""
    counter = conjunction((p, Truth(q, frozenset({False, None}))))
    return _to_implication(
        decide_satisfiability(counter, constraints.domains, constraints.required, seconds=seconds)
    )


def decide_pair(p: Predicate, q: Predicate, stream: Stream) -> Implication:
    """Decide for two of many conditions on a stream: by search, which is quicker, then by boxes.

    Boxes know no more of patterns than the search does.
    """
    constraints = Constraints.of(stream, (p, q))
    implication = decide_by_search(p, q, constraints, MAX_PAIR_SECONDS)
    if implication.answer is Answer.UNKNOWN and not (_has_patterns(p) or _has_patterns(q)):
        return decide_implication(p, q, constraints)
    return implication


def _has_patterns(predicate: Predicate) -> bool:
    return any(isinstance(atom, Matches) for atom in iter_atoms(predicate))


def find_counterexample(parts: Iterable[Part], pair: PredicatePair) -> Satisfiability:
    """Search these parts of the query, which the stream does not cover, for a row.

    A row that is returned has been verified: for it the query is TRUE, and the stream is not.
    Where the space has columns that stand for conditions, the conditions of a part may contradict
    each other or the values of their columns, so a part may hold no row at all.
    """
    reason = ""
    try:
        for count, part in enumerate(parts):
            if count == MAX_SEARCHED_PARTS:
                reason = (
                    reason or f"no example in the first {MAX_SEARCHED_PARTS} of the parts left over"
                )
                break
            result = _find_row(part, pair)
            if result.answer is Answer.YES:
                return result
            # A later part may still hold a row; the first reason is kept in case none does.
            if result.answer is Answer.UNKNOWN:
                reason = reason or result.reason
    except ExpansionTooLarge as error:
        reason = str(error)
    return Satisfiability(Answer.UNKNOWN if reason else Answer.NO, reason=reason)


def _find_row(part: Part, pair: PredicatePair) -> Satisfiability:
    if pair.conditions:
        domains, required = pair.constraints.domains, pair.constraints.required
        result = decide_satisfiability(pair.predicate(part), domains, required, budget=MAX_STEPS)
        if result.witness is None:
            return result
        columns = (*collect_columns(pair.query), *collect_columns(pair.stream))
        # The witness lacks columns that the part does not restrict: they are NULL.
        row = {column.key: result.witness.get(column.key) for column in columns}
    else:
        row = pair.example_row(part)
    # A row of the stream has a value in each NOT NULL column, also where no box mentions it.
    for column in pair.constraints.required:
        if row.get(column.key) is None:
            domain = pair.constraints.domains.get(column, EVERYTHING)
            row[column.key] = column.type.value(pick_example(domain, column.type))
    assert evaluate(pair.query, row) is True
    assert evaluate(pair.stream, row) is not True
    return Satisfiability(Answer.YES, row)


def _is_obvious(p: Predicate, q: Predicate) -> bool:
    """Return whether p requires all that q requires, or q allows all that p allows, literally."""
    first, second = to_monotone(p), to_monotone(q)
    # As ANDs: q needs a subset of what p has. As ORs: p has a subset of what q allows.
    needed, stated = (set(m.parts if isinstance(m, And) else (m,)) for m in (second, first))
    narrow, wide = (set(m.parts if isinstance(m, Or) else (m,)) for m in (first, second))
    return needed <= stated or narrow <= wide


def _to_implication(counterexample: Satisfiability) -> Implication:
    """Return what a counterexample, or that there is none, says about the implication."""
    if counterexample.answer is Answer.NO:
        return Implication(Answer.YES)
    answer = counterexample.answer.opposite
    return Implication(answer, counterexample.witness, counterexample.reason)
