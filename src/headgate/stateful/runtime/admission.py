"""Why a query is not run, with streams that break it and what would cure it."""

from __future__ import annotations

from functools import lru_cache

from headgate.errors import Unbounded, UsageError
from headgate.events.json_text import format_json
from headgate.predicate.answer import Answer
from headgate.queries import Query
from headgate.schema import Schema
from headgate.stateful.analysis.cases.case import aggregates
from headgate.stateful.analysis.verdict import Verdict, verdict

SHOWN_ROWS, SHOWN_CURES = 3, 3


def check_runs(query: Query) -> Verdict:
    """The verdict on a query that can be run in bounded memory, or an error that says why not."""
    if query.kind == "filter":
        raise UsageError(
            f"`{query.id}` is a filter, which remembers nothing; match it by an index or by route"
        )
    found = _verdict(query, query.schema)
    if found.bounded is not Answer.YES:
        raise Unbounded(refusal(found), found)
    declared = [a.function for a in aggregates(query) if a.declared is not None]
    if declared:
        raise UsageError(f"`{query.id}` needs {declared[0]}, which is declared, but not defined")
    return found


def has_windows(query: Query) -> bool:
    return any(source.rows is not None for source in query.sources)


@lru_cache(maxsize=1_000)
def _verdict(query: Query, _: Schema) -> Verdict:
    # equal queries may read streams that are declared differently, so the schema is part of the key
    return verdict(query)


def refusal(found: Verdict) -> str:
    """The reason, rows of which all would have to be remembered, and cures, a line each."""
    unknown = ":" * (found.bounded is Answer.UNKNOWN)
    lines = [f"`{found.query.id}`{unknown} {found.reason}"]
    witness = found.witness(SHOWN_ROWS)
    if witness is not None:
        rows = ", ".join(format_json(dict(row)) for row in witness.rows)
        lines.append(f"  every row like these of {witness.stream} must be remembered: {rows}, …")
    for cure in found.cures[:SHOWN_CURES]:
        lines.append("  cure: " + ", and ".join(cure.additions))
        if any("last_rows(" in addition for addition in cure.additions):
            lines[-1] += " (not on Spark: windows run in one process, by hg.continuous)"
    return "\n".join(lines)
