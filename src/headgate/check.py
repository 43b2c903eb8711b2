"""Findings about a query set before it runs: contradictions, duplicates, and what was refused."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from headgate.predicate import (
    And,
    Or,
    Predicate,
    Satisfiability,
    columns,
    holding,
    satisfiable,
    simplify,
)
from headgate.predicate.satisfy import Answer
from headgate.queries import QuerySet
from headgate.query import Query, attribute_of
from headgate.schema import Schema

Bounded = Literal["yes", "no", "unknown", "not_checked"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one query. `reason` says why it is not simply fine."""

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


def check(queries: QuerySet, progress: Callable[[int], None] | None = None) -> list[Finding]:
    """A finding for every query of the set, in its order.

    Two queries are duplicates when they select the same from the same streams and their conditions
    simplify to the same one; the first is the original.
    """
    return list(findings(queries, progress))


def findings(queries: QuerySet, progress: Callable[[int], None] | None = None) -> Iterator[Finding]:
    """The same one by one."""
    originals: dict[Hashable, str] = {}
    for query in queries:
        verdict = satisfiable_query(query, queries.schema)
        original = originals.setdefault(_identity(query, verdict), query.id)
        duplicate_of = None if original == query.id else original
        yield Finding(
            id=query.id,
            satisfiable=verdict.answer,
            duplicate_of=duplicate_of,
            implied_by=(),
            bounded="not_checked",
            reason=_reason(verdict, duplicate_of),
        )
        if progress is not None:
            progress(1)


def satisfiable_query(query: Query, schema: Schema) -> Satisfiability:
    """Can the query ever give a row, given the CHECK and NOT NULL of its streams?"""
    attributes = {c: attribute_of(query, c, schema) for c in columns(query.where)}
    domains = {c: a.domain for c, a in attributes.items() if not a.domain.is_everything}
    required = [c for c, a in attributes.items() if not a.nullable]
    return satisfiable(query.where, domains, required)


def _identity(query: Query, verdict: Satisfiability) -> Hashable:
    """Equal for queries that select the same.

    All contradictions hold for the same rows, none, but only equal ones are called duplicates.
    """
    never = verdict.answer == "no"
    condition = simplify(query.where) if never else holding(query.where)
    return (
        _signature(condition),
        query.sources if len(query.sources) > 1 else query.stream,
        query.outputs,
        query.distinct,
        query.group_by,
    )


def _signature(predicate: Predicate) -> Hashable:
    """The predicate without the order of its parts."""
    if isinstance(predicate, And | Or):
        kind = "AND" if isinstance(predicate, And) else "OR"
        return (kind, frozenset(_signature(part) for part in predicate.parts))
    return predicate


def _reason(verdict: Satisfiability, duplicate_of: str | None) -> str:
    reasons = []
    if verdict.answer == "no":
        reasons.append(f"never TRUE: {verdict.reason}")
    elif verdict.answer == "unknown":
        reasons.append(f"cannot tell whether it is ever TRUE: {verdict.reason}")
    if duplicate_of is not None:
        reasons.append(f"selects the same as `{duplicate_of}`")
    return "; ".join(reasons)
