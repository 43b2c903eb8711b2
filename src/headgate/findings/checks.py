"""Findings about queries before they run.

Contradictions, duplicates, which queries imply which, and whether bounded memory is enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from headgate._display import format_count, render_fields, render_table
from headgate.predicate import Satisfiability, simplify, to_monotone
from headgate.predicate.answer import Answer
from headgate.predicate.tree import order_free_key
from headgate.queries import Query, QuerySet, decide_query_satisfiability

if TYPE_CHECKING:
    from headgate.implication.order.definition import Order
    from headgate.stateful.analysis.verdict import Verdict

MAX_PAIRWISE_FILTERS = 10  # so few are compared in pairs, which needs no kernels
MAX_SECONDS = 300.0  # of processor time, for all pairs of a run
CHECKING, COMPARING = "checking each query", "comparing queries"  # passes, for people
NOT_COMPARED = "not compared with the others: the check was interrupted"
MAX_NAMED_QUERIES = 3  # in a reason

Progress = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What `check` says about one query.

    Attributes
    ----------
    id
        The id of the query.
    satisfiable
        Whether its condition can ever be TRUE.
    duplicate_of
        The id of the first query that selects the same, if there is one.
    implied_by
        The ids of the filters that imply it directly: every row of theirs is one of its own, not
        the other way round, and no third query lies between. Of queries with the same rows only
        the first is named; the others have just that one, or none if they are duplicates.
    bounded
        Whether bounded memory is enough, however long it runs. A filter needs none.
    reason
        Why the query is not simply fine, or what could not be decided; else empty.
    memory
        The verdict on the memory of a join, DISTINCT or aggregate: what makes it unbounded, rows
        that show it and suggestions, or what is stored and how much that is. None for a filter.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> hg.check(queries["big_buys"]).as_json()["satisfiable"]
    <Answer.YES: 'yes'>
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
        """Whether it can be TRUE, runs in memory that a machine has, and is not a duplicate."""
        is_bounded = self.bounded is Answer.YES and self.is_holdable
        return self.satisfiable is Answer.YES and is_bounded and self.duplicate_of is None

    @property
    def is_holdable(self) -> bool:
        """Whether a machine can hold its memory limit; True also where it has none."""
        return self.memory is None or self.memory.is_holdable

    def list_remarks(self) -> list[str]:
        """Return what there is to say of the query: the reason, and what implies it."""
        implied = f"implied by {list_ids(self.implied_by)}" if self.implied_by else ""
        return [remark for remark in (self.reason, implied) if remark]

    def _repr_html_(self) -> str:
        fields = {
            "satisfiable": self.satisfiable,
            "bounded": self.bounded,
            "finding": "; ".join(self.list_remarks()) or "all well",
        }
        return render_fields(f"query {self.id}", fields)

    def as_json(self, *, with_suggestions: bool = True) -> dict[str, Any]:
        """Return the object that `headgate check --format json` prints for the query.

        Parameters
        ----------
        with_suggestions : bool
            Whether a verdict on memory comes with suggestions, which take time to compute.

        Returns
        -------
        dict
            An object of plain values.
        """
        fields: dict[str, Any] = {
            "id": self.id,
            "satisfiable": self.satisfiable,
            "duplicate_of": self.duplicate_of,
            "implied_by": list(self.implied_by),
            "bounded": self.bounded,
            "reason": self.reason,
        }
        if self.memory is not None:
            fields["memory"] = self.memory.as_json(with_suggestions=with_suggestions)
        return fields


class Findings(list[Finding]):
    """The findings on the queries of a set, in its order; a notebook shows those of note."""

    def __repr__(self) -> str:
        return f"<Findings: {self._summarize()}>"

    def _repr_html_(self) -> str:
        notable = [finding for finding in self if finding.list_remarks()]
        # Queries at fault first, each in the order of the set.
        notable.sort(key=lambda finding: finding.is_fine)
        rows = (
            (finding.id, finding.satisfiable, finding.bounded, "; ".join(finding.list_remarks()))
            for finding in notable
        )
        columns = ("query", "satisfiable", "bounded", "finding")
        return render_table(self._summarize(), columns, rows, len(notable))

    def _summarize(self) -> str:
        faults = sum(not finding.is_fine for finding in self)
        state = f"{faults:,} with findings" if faults else "all well"
        return f"{format_count(len(self), 'query')}, {state}"


@dataclass(frozen=True, slots=True)
class _Relations:
    """How the condition of a query is related to those of others, and what is undecided.

    `same` is equal for queries whose conditions are known to hold for the same rows.
    """

    same: Hashable
    implied_by: tuple[str, ...] = ()
    left_open: str = ""


class CheckRun:
    """A check of queries, of which what is known so far can be read at any time.

    It has three passes: each query is checked by itself, conditions with patterns are compared
    with others pair by pair, and all others are compared. A query takes at most a second of
    processor time and a pair at most two; `seconds` limits all pairs together. What is past a
    limit is left open, by name.

    Parameters
    ----------
    queries
        The queries to check.
    seconds
        The processor time that comparing pairs may take in all.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> run = CheckRun(list(queries))
    >>> run.run()
    >>> run.is_complete, len(run.findings()) == len(queries)
    (True, True)
    """

    def __init__(self, queries: Sequence[Query], seconds: float = MAX_SECONDS) -> None:
        self.queries = queries
        self._seconds = seconds
        self._satisfiabilities: list[Satisfiability] = []
        self._verdicts: list[Verdict | None] = []
        self._relations: list[_Relations] = []

    @property
    def is_complete(self) -> bool:
        """Whether all passes have ended."""
        return len(self._relations) == len(self.queries)

    def run(self, progress: Progress | None = None) -> None:
        """Run all passes; interrupted, it keeps what is known."""
        advance = progress or (lambda _count, _label: None)
        for query in self.queries:
            satisfiability, verdict = _check_one(query)
            self._satisfiabilities.append(satisfiability)
            self._verdicts.append(verdict)
            advance(1, CHECKING)
        # Comparing needs to know first which queries are never TRUE.
        self._relations = _relate_queries(
            self.queries, self._satisfiabilities, advance, self._seconds
        )

    def findings(self) -> Findings:
        """Return a finding for each query that was checked, in the order of the queries."""
        checked = self.queries[: len(self._verdicts)]
        relations = self._relations or [
            _Relations(order_free_key(query.where), left_open=NOT_COMPARED) for query in checked
        ]
        # The id of the first query with each selection.
        originals: dict[Hashable, str] = {}
        findings = []
        for query, satisfiability, verdict, related in zip(
            checked, self._satisfiabilities, self._verdicts, relations, strict=True
        ):
            original = originals.setdefault(_selection_key(query, related.same), query.id)
            duplicate_of = None if original == query.id else original
            findings.append(
                Finding(
                    id=query.id,
                    satisfiable=satisfiability.answer,
                    duplicate_of=duplicate_of,
                    implied_by=() if duplicate_of else related.implied_by,
                    bounded=Answer.YES if verdict is None else verdict.bounded,
                    reason=_write_reason(satisfiability, duplicate_of, related.left_open, verdict),
                    memory=verdict,
                )
            )
        return Findings(findings)


@overload
def check(
    queries: QuerySet, progress: Progress | None = None, *, seconds: float = MAX_SECONDS
) -> Findings: ...


@overload
def check(queries: Query) -> Finding: ...


def check(
    queries: QuerySet | Query,
    progress: Progress | None = None,
    *,
    seconds: float = MAX_SECONDS,
) -> Findings | Finding:
    """Check queries before they run.

    Two queries are duplicates when they select the same from the same streams and their conditions
    simplify to the same one or, for filters, are proven to hold for the same rows; the first is the
    original. Filters of one stream imply one another by their conditions, whatever they select.

    Parameters
    ----------
    queries
        A query set, or one query.
    progress
        Called with a number of queries and the name of the pass that is done with them. Each query
        is counted twice: when it is checked by itself, and when it is compared with the others.
    seconds
        The processor time that comparing pairs of conditions with patterns, or comparisons of
        attributes, may take in all. Pairs that are left then are named as open.

    Returns
    -------
    list of Finding, or Finding
        One for each query of a set, in its order; or the one of a query.

    Examples
    --------
    >>> import headgate as hg
    >>> queries = hg.read_queries("examples/trades/schema.sql", "examples/trades/queries.sql")
    >>> finding = hg.check(queries["big_buys"])
    >>> finding.satisfiable, finding.bounded, finding.is_fine
    (<Answer.YES: 'yes'>, <Answer.YES: 'yes'>, True)
    >>> len(hg.check(queries)) == len(queries)
    True
    """
    # one query is a set of one: nothing is compared with it
    run = CheckRun([queries] if isinstance(queries, Query) else list(queries), seconds)
    run.run(progress)
    findings = run.findings()
    # A query by itself has one finding, not a list of one.
    return findings[0] if isinstance(queries, Query) else findings


def _check_one(query: Query) -> tuple[Satisfiability, Verdict | None]:
    """Return whether a query can be TRUE, and the verdict on its memory; None for a filter."""
    answer = decide_query_satisfiability(query)
    if query.kind == "filter":
        return answer, None
    from headgate.stateful.analysis.verdict import check_memory

    memory = check_memory(query)
    # The analysis of memory also sees contradictions between comparisons of several columns.
    if memory.analysis.is_contradiction and answer.answer is not Answer.NO:
        answer = Satisfiability(Answer.NO, reason="its comparisons contradict each other")
    return answer, memory


def _relate_queries(
    queries: Sequence[Query],
    satisfiabilities: Sequence[Satisfiability],
    advance: Progress,
    seconds: float,
) -> list[_Relations]:
    """Relate each query to the others; what is no filter or never TRUE only to equal ones.

    All contradictions hold for the same rows, none, but only equal ones are called duplicates.
    """
    relations: list[_Relations] = []
    deadline = time.process_time() + seconds
    # By stream, the positions in `queries` of the filters to be compared.
    filters: dict[str, list[int]] = {}
    conditions = []
    for at, (query, satisfiability) in enumerate(zip(queries, satisfiabilities, strict=True)):
        is_never_true = satisfiability.answer is Answer.NO
        conditions.append(simplify(query.where) if is_never_true else to_monotone(query.where))
        relations.append(_Relations(order_free_key(conditions[at])))
        if query.kind == "filter" and not is_never_true:
            filters.setdefault(query.stream_name, []).append(at)
    # In an order, `number` counts the filters of one stream; `at` is the position in `queries`.
    for positions in filters.values():
        stream = queries[positions[0]].sources[0].stream
        chosen = [conditions[at] for at in positions]
        witnesses = [satisfiabilities[at].witness for at in positions]
        left = max(0.0, deadline - time.process_time())
        if len(positions) > MAX_PAIRWISE_FILTERS:
            from headgate.implication.order.implications import find_implications

            order = find_implications(chosen, stream, advance, witnesses, left)
        else:
            from headgate.implication.order.definition import order_by_definition

            order = order_by_definition(chosen, stream, witnesses, left)
            advance(len(positions), COMPARING)
        ids = [queries[at].id for at in positions]
        for number, at in enumerate(positions):
            first = order.same_as[number]
            direct = [first] if first != number else order.implied_by[number]
            implied_by = tuple([ids[other] for other in direct])
            left_open = _describe_unknowns(order, number, ids)
            relations[at] = _Relations(("first", positions[first]), implied_by, left_open)
    # Queries that are compared with no other count as compared too.
    advance(len(queries) - sum(map(len, filters.values())), COMPARING)
    return relations


def _describe_unknowns(order: Order, number: int, ids: Sequence[str]) -> str:
    reasons = []
    unknown = order.undecided.get(number, [])
    if unknown:
        listed = list_ids([ids[p] for p in unknown])
        reasons.append(
            f"it is open whether it is implied by {listed}: no proof within the limits of time"
        )
    if number in order.skipped:
        reasons.append("it was not compared with others, because no row of it is known")
    if not order.is_complete:
        reasons.append("implied_by may be incomplete: too many queries imply others")
    return "; ".join(reasons)


def list_ids(ids: Sequence[str]) -> str:
    """List the first few ids, and how many more there are.

    >>> list_ids(["p", "q", "r", "s", "t"])
    '`p`, `q`, `r` and 2 more'
    """
    shown = ", ".join(f"`{query_id}`" for query_id in ids[:MAX_NAMED_QUERIES])
    return (
        f"{shown} and {len(ids) - MAX_NAMED_QUERIES:,} more"
        if len(ids) > MAX_NAMED_QUERIES
        else shown
    )


def _selection_key(query: Query, same: Hashable) -> Hashable:
    """Return a key that is equal for queries that select the same."""
    return (
        same,
        query.sources if len(query.sources) > 1 else (query.stream_name, query.sources[0].rows),
        query.outputs,
        query.distinct,
        query.group_by,
    )


def _write_reason(
    satisfiability: Satisfiability,
    duplicate_of: str | None,
    left_open: str,
    verdict: Verdict | None,
) -> str:
    reasons = []
    if satisfiability.answer is Answer.NO:
        reasons.append(f"never TRUE: {satisfiability.reason}")
    elif satisfiability.answer is Answer.UNKNOWN:
        reasons.append(f"cannot tell whether it is ever TRUE: {satisfiability.reason}")
    if verdict is not None and verdict.bounded is not Answer.YES:
        reasons.append(verdict.reason)
    elif verdict is not None and not verdict.is_holdable:
        limit = verdict.compute_memory_limit()
        reasons.append(f"needs more memory than a machine has: {limit}")
    if duplicate_of is not None:
        reasons.append(f"selects the same as `{duplicate_of}`")
    if left_open:
        reasons.append(left_open)
    return "; ".join(reasons)
