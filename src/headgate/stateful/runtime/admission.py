"""Whether a query can be run, and if not, why: streams that break it and suggestions."""

from __future__ import annotations

from functools import lru_cache

from headgate.errors import Unbounded, UsageError
from headgate.events.json_lines import format_json
from headgate.predicate.answer import Answer
from headgate.queries import Query
from headgate.schema import Schema
from headgate.stateful.analysis.case import list_aggregates
from headgate.stateful.analysis.synopses.synopsis import Memory
from headgate.stateful.analysis.verdict import Verdict, check_memory

SHOWN_ROWS, SHOWN_SUGGESTIONS = 3, 3


def check_runnable(query: Query) -> Verdict:
    """Return the verdict on a query that can run, or raise the error that says why it cannot."""
    if query.kind == "filter":
        raise UsageError(
            f"`{query.id}` is a filter, which remembers nothing; match it by an index or by route"
        )
    verdict = _check_memory(query, query.schema)
    if verdict.bounded is not Answer.YES:
        raise Unbounded(explain_refusal(verdict), verdict)
    declared = [a.function for a in list_aggregates(query) if a.declared is not None]
    if declared:
        raise UsageError(f"`{query.id}` needs {declared[0]}, which is declared, but not defined")
    return verdict


def has_windows(query: Query) -> bool:
    """Return whether a query reads only the last rows of some stream."""
    return any(source.rows is not None for source in query.sources)


@lru_cache(maxsize=1_000)
def _check_memory(query: Query, _: Schema) -> Verdict:
    # Equal queries may read streams that are declared differently, so the schema is in the key.
    return check_memory(query)


def get_memory_limit(query: Query) -> Memory | None:
    """Return the most that a runnable query ever stores; it is worked out once."""
    return _compute_memory_limit(query, query.schema)


@lru_cache(maxsize=1_000)
def _compute_memory_limit(query: Query, schema: Schema) -> Memory | None:
    return _check_memory(query, schema).compute_memory_limit()


def explain_refusal(verdict: Verdict) -> str:
    """Write the reason, rows that would all have to be kept, and suggestions, a line each."""
    lines = [f"`{verdict.query.id}`: {verdict.reason}"]
    witness = verdict.build_witness(SHOWN_ROWS)
    if witness is not None:
        rows = ", ".join(format_json(dict(row)) for row in witness.rows)
        lines.append(f"  every row like these of {witness.stream} must be remembered: {rows}, …")
    for suggestion in verdict.find_suggestions()[:SHOWN_SUGGESTIONS]:
        lines.append("  suggestion: " + ", and ".join(suggestion.additions))
        if any("last_rows(" in addition for addition in suggestion.additions):
            lines[-1] += " (not on Spark: windows run in one process, by hg.continuous)"
    return "\n".join(lines)
