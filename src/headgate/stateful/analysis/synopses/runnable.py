"""The plan by which a bounded query is run, or why it is not run."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import UsageError
from headgate.predicate.answer import Answer
from headgate.queries import Query
from headgate.stateful.analysis.analysis import analyse
from headgate.stateful.analysis.cases.case import Case
from headgate.stateful.analysis.lean import lean
from headgate.stateful.analysis.synopses.plan import Plan, plan_of


def plan_to_run(query: Query) -> Plan:
    """What a query keeps of each stream; of a self-join, without occurrences that are redundant."""
    analysis = analyse(query)
    if analysis.bounded is not Answer.YES:
        raise UsageError("only a query that needs bounded memory is run from synopses")
    if query.kind == "filter":
        raise UsageError("a filter keeps nothing: it decides on each row alone")
    plan = plan_of(query, analysis.cases)
    if not plan.needs_reduction:
        return plan
    less = _without_redundant(query, analysis.cases)
    return plan_of(less, analyse(less).cases)


def _without_redundant(query: Query, cases: Sequence[Case]) -> Query:
    less = lean(query, cases[0]) if len(cases) == 1 else None
    if less is None:
        raise UsageError(
            f"`{query.id}` joins a stream with itself, which is bounded because an occurrence is "
            "redundant, but not the same one in all alternatives of the condition; that is not run"
        )
    return less
