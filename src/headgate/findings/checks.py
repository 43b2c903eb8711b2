"""Findings about queries before they run.

Contradictions, duplicates, what implies what, and whether a query can live in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from headgate.predicate import Predicate, Satisfiability, simplify, to_monotone
from headgate.predicate.answer import Answer
from headgate.predicate.tree import order_free_key
from headgate.queries import Query, QuerySet, decide_query_satisfiability
from headgate.schema import Stream

if TYPE_CHECKING:
    from headgate.implication.order.definition import Order
    from headgate.stateful.analysis.verdict import Verdict

MAX_PAIRWISE_FILTERS = (
    10  # filters of which all pairs are looked at, before kernels are even loaded
)
MAX_NAMED_QUERIES = 3  # queries that a reason names


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one query. `reason` says why it is not simply fine, or what stayed open.

    `implied_by` are the ids of the filters that imply it directly: every row of theirs is one of
    its own, but not the other way round, and no third query lies between. Of queries that hold for
    the same rows only the first is named; the others have just that one, or none as duplicates.

    `bounded` says whether bounded memory is enough for ever. A filter remembers nothing; of every
    other query `memory` is the whole verdict: what is at fault, streams that break it, and cures,
    or what is kept and how much that is.
    """

    id: str
    satisfiable: Answer
    duplicate_of: str | None
    implied_by: tuple[str, ...]
    bounded: Answer
    reason: str
    memory: Verdict | None = field(default=None, repr=False)

    @property
    def is_fine(self) -> bool:
        return self.satisfiable is self.bounded is Answer.YES and self.duplicate_of is None

    def as_json(self, *, with_cures: bool = True) -> dict[str, Any]:
        found: dict[str, Any] = {
            "id": self.id,
            "satisfiable": self.satisfiable,
            "duplicate_of": self.duplicate_of,
            "implied_by": list(self.implied_by),
            "bounded": self.bounded,
            "reason": self.reason,
        }
        if self.memory is not None:
            found["memory"] = self.memory.as_json(with_cures=with_cures)
        return found


@dataclass(frozen=True, slots=True)
class _Relations:
    """How the condition of a query is related to those of others, and what of it stayed open.

    `same` is equal for queries whose conditions are known to hold for the same rows.
    """

    same: Hashable
    implied_by: tuple[str, ...] = ()
    left_open: str = ""


@overload
def check(queries: QuerySet, progress: Callable[[int], None] | None = None) -> list[Finding]: ...


@overload
def check(queries: Query) -> Finding: ...


def check(
    queries: QuerySet | Query,
    progress: Callable[[int], None] | None = None,
) -> list[Finding] | Finding:
    """A finding for every query of a set, in its order; or for one query.

    Two queries are duplicates when they select the same from the same streams and their conditions
    simplify to the same one or, for filters, are proven to hold for the same rows; the first is the
    original. Filters of one stream imply one another by their conditions, whatever they select.
    `progress` hears of each query twice: when it is looked at alone, and beside the others.
    """
    if isinstance(queries, Query):
        return _check_all([queries], lambda _: None)[0]
    return _check_all(list(queries), progress or (lambda _: None))


def _check_all(every: Sequence[Query], advance: Callable[[int], None]) -> list[Finding]:
    verdicts, memories = [], []
    for query in every:
        verdict, memory = _check_one(query)
        verdicts.append(verdict)
        memories.append(memory)
        advance(1)
    relations = _relate_queries(every, verdicts, advance)
    originals: dict[Hashable, str] = {}
    found = []
    for query, verdict, memory, related in zip(every, verdicts, memories, relations, strict=True):
        original = originals.setdefault(_selection_key(query, related.same), query.id)
        duplicate_of = None if original == query.id else original
        found.append(
            Finding(
                id=query.id,
                satisfiable=verdict.answer,
                duplicate_of=duplicate_of,
                implied_by=() if duplicate_of else related.implied_by,
                bounded=Answer.YES if memory is None else memory.bounded,
                reason=_write_reason(verdict, duplicate_of, related.left_open, memory),
                memory=memory,
            )
        )
    return found


def _check_one(query: Query) -> tuple[Satisfiability, Verdict | None]:
    """Can it ever be TRUE, and what does it remember? A filter remembers nothing."""
    answer = decide_query_satisfiability(query)
    if query.kind == "filter":
        return answer, None
    from headgate.stateful.analysis.verdict import verdict

    memory = verdict(query)
    if memory.analysis.is_contradiction and answer.answer is not Answer.NO:
        answer = Satisfiability(Answer.NO, reason="its comparisons contradict each other")
    return answer, memory


def _relate_queries(
    queries: Sequence[Query],
    verdicts: Sequence[Satisfiability],
    advance: Callable[[int], None],
) -> list[_Relations]:
    """Of each query; those that are no filters, or never TRUE, are related to equal ones only.

    All contradictions hold for the same rows, none, but only equal ones are called duplicates.
    """
    found: list[_Relations] = []
    filters: dict[str, list[int]] = {}
    conditions = []
    for at, (query, verdict) in enumerate(zip(queries, verdicts, strict=True)):
        never = verdict.answer is Answer.NO
        conditions.append(simplify(query.where) if never else to_monotone(query.where))
        found.append(_Relations(order_free_key(conditions[at])))
        if query.kind == "filter" and not never:
            filters.setdefault(query.stream_name, []).append(at)
    for places in filters.values():
        stream = queries[places[0]].sources[0].stream
        order = _order_conditions([conditions[at] for at in places], stream, advance)
        ids = [queries[at].id for at in places]
        for number, at in enumerate(places):
            first = order.same_as[number]
            direct = [first] if first != number else order.implied_by[number]
            implied_by = tuple([ids[other] for other in direct])
            left_open = _describe_unknowns(order, number, ids)
            found[at] = _Relations(("first", places[first]), implied_by, left_open)
    advance(len(queries) - sum(map(len, filters.values())))
    return found


def _order_conditions(
    held: Sequence[Predicate], stream: Stream, advance: Callable[[int], None]
) -> Order:
    """What implies what, the obvious way where there are few."""
    if len(held) > MAX_PAIRWISE_FILTERS:
        from headgate.implication.order.implications import find_implications

        return find_implications(held, stream, advance)
    from headgate.implication.order.definition import order_by_definition

    advance(len(held))
    return order_by_definition(held, stream)


def _describe_unknowns(order: Order, number: int, ids: Sequence[str]) -> str:
    reasons = []
    unknown = order.undecided.get(number, [])
    if unknown:
        listed = list_ids([ids[p] for p in unknown])
        reasons.append(f"its patterns or comparisons leave open whether it is implied by {listed}")
    if number in order.skipped:
        reasons.append("too involved to tell all that imply it, or that it implies")
    if not order.is_complete:
        reasons.append("implied_by may lack some: there are too many to list them all")
    return "; ".join(reasons)


def list_ids(ids: Sequence[str]) -> str:
    """The first few, and how many more there are.

    >>> list_ids(["p", "q", "r", "s", "t"])
    '`p`, `q`, `r` and 2 more'
    """
    shown = ", ".join(f"`{one}`" for one in ids[:MAX_NAMED_QUERIES])
    return (
        f"{shown} and {len(ids) - MAX_NAMED_QUERIES:,} more"
        if len(ids) > MAX_NAMED_QUERIES
        else shown
    )


def _selection_key(query: Query, same: Hashable) -> Hashable:
    """Equal for queries that select the same."""
    return (
        same,
        query.sources if len(query.sources) > 1 else (query.stream_name, query.sources[0].rows),
        query.outputs,
        query.distinct,
        query.group_by,
    )


def _write_reason(
    verdict: Satisfiability, duplicate_of: str | None, left_open: str, memory: Verdict | None
) -> str:
    reasons = []
    if verdict.answer is Answer.NO:
        reasons.append(f"never TRUE: {verdict.reason}")
    elif verdict.answer is Answer.UNKNOWN:
        reasons.append(f"cannot tell whether it is ever TRUE: {verdict.reason}")
    if memory is not None and memory.bounded is not Answer.YES:
        reasons.append(memory.reason)
    if duplicate_of is not None:
        reasons.append(f"selects the same as `{duplicate_of}`")
    if left_open:
        reasons.append(left_open)
    return "; ".join(reasons)
