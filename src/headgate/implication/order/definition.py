"""Which queries imply which, straight from the definition: all pairs, then the reduction.

It takes time that is cubic in the number of queries and is what the fast way is held to.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.implication.decision import decide_pair
from headgate.implication.pair import Constraints
from headgate.predicate import Predicate, decide_satisfiability, evaluate
from headgate.predicate.answer import Answer
from headgate.predicate.satisfiability import pick_example
from headgate.schema import Stream, Value

Row = Mapping[str, Value | None]


@dataclass(frozen=True, slots=True)
class Order:
    """How queries imply one another, each named by its place.

    `same_as[q]` is the first query that holds for the same rows, q itself where no earlier one
    does. `implied_by[q]` are the largest of the queries that strictly imply q, ascending; only
    firsts have any, or occur. `undecided[q]` are queries of which it is not known whether they
    imply q. Queries that are never TRUE imply everything, and are left out. `is_complete` is
    False where a budget ended the search, so that `implied_by` may lack some. Queries that are
    `skipped` were not, or not fully, compared with others: they are too large, no row of them
    is known, or what their conditions imply was past the budget.
    """

    same_as: list[int]
    implied_by: Sequence[Sequence[int] | npt.NDArray[np.int64]]
    undecided: dict[int, list[int]] = field(default_factory=dict)
    is_complete: bool = True
    skipped: Collection[int] = ()


def order_by_definition(
    conditions: Sequence[Predicate],
    stream: Stream,
    examples: Sequence[Row | None] | None = None,
    seconds: float = math.inf,
) -> Order:
    """Return the order of conditions on one stream.

    `examples` are rows for which each condition is TRUE: what is not TRUE for the row of another
    is not implied by it, which saves a proof. `seconds` of processor time may go into proofs; what
    is left then is undecided.

    >>> from headgate.schema import INT, Attribute
    >>> from headgate.sql import parse_where
    >>> s = Stream("s", (Attribute("a", INT),))
    >>> texts = ("a > 1", "a > 3", "a > 2", "NOT a <= 1", "a > 1 AND a < 1", "TRUE")
    >>> found = order_by_definition([parse_where(text, s) for text in texts], s)
    >>> found.implied_by, found.same_as
    ([[2], [], [1], [], [], [0]], [0, 1, 2, 0, 4, 5])
    """
    places = [at for at, condition in enumerate(conditions) if _can_hold(condition, stream)]
    rows = [None if row is None else complete_row(row, stream) for row in examples or ()]
    deadline = time.process_time() + seconds

    def decide(p: int, q: int) -> Answer:
        # A condition implies itself, also one that is too large for a proof.
        if p == q:
            return Answer.YES
        row = rows[p] if rows else None
        if row is not None and evaluate(conditions[q], row) is not True:
            return Answer.NO
        if time.process_time() > deadline:
            return Answer.UNKNOWN
        return decide_pair(conditions[p], conditions[q], stream).answer

    # By pair (p, q): does p imply q?
    answers = {(p, q): decide(p, q) for p in places for q in places}
    same_as = list(range(len(conditions)))
    for q in places:
        equal = (p for p in places if answers[p, q] is answers[q, p] is Answer.YES)
        # By way of the first that it equals: whether it equals that one's first may be unknown.
        same_as[q] = same_as[min([q, *equal])]
    # Only the first of equal queries is ordered.
    firsts = [q for q in places if same_as[q] == q]
    below = {(p, q) for p in firsts for q in firsts if p != q and answers[p, q] is Answer.YES}
    # The transitive reduction: pairs with nothing strictly between them.
    implied_by: list[list[int]] = [[] for _ in conditions]
    for p, q in sorted(below):
        if not any((p, r) in below and (r, q) in below for r in firsts):
            implied_by[q].append(p)
    unknown: dict[int, list[int]] = {}
    for (p, q), answer in answers.items():
        if answer is Answer.UNKNOWN and same_as[p] == p and same_as[q] == q:
            unknown.setdefault(q, []).append(p)
    return Order(same_as, implied_by, unknown)


def complete_row(row: Row, stream: Stream) -> dict[str, Value | None]:
    """Return the row with a value in each NOT NULL column that it lacks."""
    missing = [a for a in stream if not a.nullable and row.get(a.name) is None]
    values = {a.name: a.type.value(pick_example(a.domain, a.type)) for a in missing}
    return {**row, **values}


def _can_hold(condition: Predicate, stream: Stream) -> bool:
    declared = Constraints.of(stream, (condition,))
    answer = decide_satisfiability(condition, declared.domains, declared.required).answer
    return answer is not Answer.NO
