"""Findings about a query set before it runs: contradictions, duplicates, and what implies what."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headgate.implication.order.signature import signature
from headgate.predicate import Predicate, Satisfiability, columns, holding, satisfiable, simplify
from headgate.predicate.satisfy import Answer
from headgate.queries import QuerySet
from headgate.query import Query, attribute_of
from headgate.schema import Schema, Stream

if TYPE_CHECKING:
    from headgate.implication.order.definition import Order

Bounded = Literal["yes", "no", "unknown", "not_checked"]
FEW = 10  # filters of which all pairs are looked at, before kernels are even loaded
NAMED = 3  # queries that a reason names


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one query. `reason` says why it is not simply fine, or what stayed open.

    `implied_by` are the ids of the filters that imply it directly: every row of theirs is one of
    its own, but not the other way round, and no third query lies between. Of queries that hold for
    the same rows only the first is named; the others have just that one, or none as duplicates.
    """

    id: str
    satisfiable: Answer
    duplicate_of: str | None
    implied_by: tuple[str, ...]
    bounded: Bounded
    reason: str

    @property
    def is_fine(self) -> bool:
        return self.satisfiable == "yes" and self.duplicate_of is None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "satisfiable": self.satisfiable,
            "duplicate_of": self.duplicate_of,
            "implied_by": list(self.implied_by),
            "bounded": self.bounded,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class _Relations:
    """How the condition of a query is related to those of others, and what of it stayed open.

    `same` is equal for queries whose conditions are known to hold for the same rows.
    """

    same: Hashable
    implied_by: tuple[str, ...] = ()
    left_open: str = ""


def check(queries: QuerySet, progress: Callable[[int], None] | None = None) -> list[Finding]:
    """A finding for every query of the set, in its order.

    Two queries are duplicates when they select the same from the same streams and their conditions
    simplify to the same one or, for filters, are proven to hold for the same rows; the first is the
    original. Filters of one stream imply one another by their conditions, whatever they select.
    `progress` hears of each query twice: when it is looked at alone, and beside the others.
    """
    advance = progress or (lambda _: None)
    every = list(queries)
    verdicts = []
    for query in every:
        verdicts.append(satisfiable_query(query, queries.schema))
        advance(1)
    relations = _relations(every, verdicts, queries.schema, advance)
    originals: dict[Hashable, str] = {}
    found = []
    for query, verdict, related in zip(every, verdicts, relations, strict=True):
        original = originals.setdefault(_identity(query, related.same), query.id)
        duplicate_of = None if original == query.id else original
        found.append(
            Finding(
                id=query.id,
                satisfiable=verdict.answer,
                duplicate_of=duplicate_of,
                implied_by=() if duplicate_of else related.implied_by,
                bounded="not_checked",
                reason=_reason(verdict, duplicate_of, related.left_open),
            )
        )
    return found


def satisfiable_query(query: Query, schema: Schema) -> Satisfiability:
    """Can the query ever give a row, given the CHECK and NOT NULL of its streams?"""
    attributes = {c: attribute_of(query, c, schema) for c in columns(query.where)}
    domains = {c: a.domain for c, a in attributes.items() if not a.domain.is_everything}
    required = [c for c, a in attributes.items() if not a.nullable]
    return satisfiable(query.where, domains, required)


def _relations(
    queries: Sequence[Query],
    verdicts: Sequence[Satisfiability],
    schema: Schema,
    advance: Callable[[int], None],
) -> list[_Relations]:
    """Of each query; those that are no filters, or never TRUE, are related to equal ones only.

    All contradictions hold for the same rows, none, but only equal ones are called duplicates.
    """
    found: list[_Relations] = []
    filters: dict[str, list[int]] = {}
    conditions = []
    for at, (query, verdict) in enumerate(zip(queries, verdicts, strict=True)):
        never = verdict.answer == "no"
        conditions.append(simplify(query.where) if never else holding(query.where))
        found.append(_Relations(signature(conditions[at])))
        if query.kind == "filter" and not never:
            filters.setdefault(query.stream, []).append(at)
    for name, places in filters.items():
        order = _order([conditions[at] for at in places], schema.the_stream(name), advance)
        ids = [queries[at].id for at in places]
        for number, at in enumerate(places):
            first = order.same_as[number]
            direct = [first] if first != number else order.implied_by[number]
            implied_by = tuple([ids[other] for other in direct])
            left_open = _left_open(order, number, ids)
            found[at] = _Relations(("first", places[first]), implied_by, left_open)
    advance(len(queries) - sum(map(len, filters.values())))
    return found


def _order(held: Sequence[Predicate], stream: Stream, advance: Callable[[int], None]) -> Order:
    """What implies what, the obvious way where there are few."""
    if len(held) > FEW:
        from headgate.implication.order.implications import implications

        return implications(held, stream, advance)
    from headgate.implication.order.definition import order_by_definition

    advance(len(held))
    return order_by_definition(held, stream)


def _left_open(order: Order, number: int, ids: Sequence[str]) -> str:
    reasons = []
    unknown = order.open.get(number, [])
    if unknown:
        listed = named([ids[p] for p in unknown])
        reasons.append(f"its patterns or comparisons leave open whether it is implied by {listed}")
    if number in order.skipped:
        reasons.append("too involved to tell all that imply it, or that it implies")
    if not order.is_complete:
        reasons.append("implied_by may lack some: there are too many to list them all")
    return "; ".join(reasons)


def named(ids: Sequence[str]) -> str:
    """The first few, and how many more there are.

    >>> named(["p", "q", "r", "s", "t"])
    '`p`, `q`, `r` and 2 more'
    """
    shown = ", ".join(f"`{one}`" for one in ids[:NAMED])
    return f"{shown} and {len(ids) - NAMED:,} more" if len(ids) > NAMED else shown


def _identity(query: Query, same: Hashable) -> Hashable:
    """Equal for queries that select the same."""
    return (
        same,
        query.sources if len(query.sources) > 1 else query.stream,
        query.outputs,
        query.distinct,
        query.group_by,
    )


def _reason(verdict: Satisfiability, duplicate_of: str | None, left_open: str) -> str:
    reasons = []
    if verdict.answer == "no":
        reasons.append(f"never TRUE: {verdict.reason}")
    elif verdict.answer == "unknown":
        reasons.append(f"cannot tell whether it is ever TRUE: {verdict.reason}")
    if duplicate_of is not None:
        reasons.append(f"selects the same as `{duplicate_of}`")
    if left_open:
        reasons.append(left_open)
    return "; ".join(reasons)
