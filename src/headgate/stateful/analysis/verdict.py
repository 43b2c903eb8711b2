"""The verdict on a query's memory, with everything that a user needs to believe it and to act.

The answer, its reason and the diagnosis are there at once. What takes longer is a method: streams
that break the query, suggestions, what its synopses keep, and how much memory that is at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headgate._display import render_fields
from headgate.predicate.answer import Answer
from headgate.queries import Query
from headgate.stateful.analysis.boundedness import Analysis, analyse
from headgate.stateful.analysis.diagnosis import Diagnosis, diagnose
from headgate.stateful.analysis.proof import NEVER_TRUE, explain_bounded
from headgate.stateful.analysis.suggestions import Suggestion, find_suggestions
from headgate.stateful.analysis.synopses.synopsis import (
    Memory,
    Synopsis,
    compute_memory_limit,
    describe_synopses,
)
from headgate.stateful.analysis.witness import Witness, build_witness

DEFAULT_WITNESS_ROWS = 10
MAX_SHOWN_SUGGESTIONS = 4  # in a notebook


@dataclass(frozen=True)
class Verdict:
    """The answer to whether a query can run in bounded memory, with its reason.

    Attributes
    ----------
    query
        The query that was analysed.
    analysis
        The cases of the query, and what is at fault in which of them.
    diagnosis
        What is at fault, in the words of the query; None for a yes.
    reason
        Why the answer is not a plain yes; empty for a yes.
    observed
        The lengths of texts in bytes, by stream and attribute as in `trades.symbol`.

    Examples
    --------
    >>> from headgate.schema import Schema
    >>> from headgate.sql import Script
    >>> _, query = Script(Schema()).read('''
    ...     CREATE STREAM s (a INT, b INT);
    ...     CREATE QUERY q AS SELECT DISTINCT a FROM s''')
    >>> verdict = check_memory(query)
    >>> str(verdict.bounded), verdict.diagnosis.attributes
    ('no', ('a',))
    >>> verdict.find_suggestions()[0].additions
    ('bound `a`, such as a BETWEEN 0 AND 1000',)
    """

    query: Query
    analysis: Analysis
    diagnosis: Diagnosis | None = None
    reason: str = ""
    observed: Mapping[str, int] | None = None

    @property
    def bounded(self) -> Answer:
        """Yes, no or unknown."""
        return self.analysis.bounded

    def build_witness(self, size: int = DEFAULT_WITNESS_ROWS) -> Witness | None:
        """Build streams of which `size` rows must all be kept; None where there are none."""
        shown = self.analysis.witness_of
        return None if shown is None else build_witness(self.query, *shown, size)

    def find_suggestions(self) -> tuple[Suggestion, ...]:
        """Return additions that make the query bounded, by what a machine holds, if it is not."""
        case, fault = self.analysis.case, self.analysis.fault
        if not self.is_holdable:
            case = self.analysis.cases[0]
        elif case is None or fault is None:
            return ()
        return find_suggestions(self.query, case, fault, len(self.analysis.cases))

    def describe_synopses(self) -> tuple[Synopsis, ...]:
        """Describe what is kept of each stream; nothing unless the answer is yes."""
        if self.bounded is not Answer.YES or self.analysis.is_contradiction:
            return ()
        return describe_synopses(self.query, self.analysis.cases, self.observed)

    def compute_memory_limit(self) -> Memory | None:
        """Return the most that is ever stored; None unless the answer is yes."""
        if self.bounded is not Answer.YES:
            return None
        if self.analysis.is_contradiction:
            return Memory(0, 0)
        return compute_memory_limit(self.query, self.analysis.cases, self.observed)

    def explain_bounded(self) -> list[str]:
        """Return the theorem behind a yes, and what fulfils its conditions; nothing else."""
        if self.bounded is not Answer.YES:
            return []
        if self.analysis.is_contradiction:
            return [NEVER_TRUE]
        return explain_bounded(self.query, self.analysis.cases)

    @cached_property
    def is_holdable(self) -> bool:
        """Whether a machine can hold the memory limit; True also where there is none."""
        limit = self.compute_memory_limit()
        return limit is None or limit.is_holdable

    def __repr__(self) -> str:
        reason = f", {self.reason}" if self.reason else ""
        return f"<Verdict on {self.query.id!r}: bounded memory, {self.bounded}{reason}>"

    def _repr_html_(self) -> str:
        suggestions = self.find_suggestions()[:MAX_SHOWN_SUGGESTIONS]
        fields = {
            "bounded memory": self.bounded,
            "because": self.reason,
            "criterion": self.diagnosis and self.diagnosis.criterion,
            "proof": "\n".join(self.explain_bounded()),
            "suggestions": "\n".join(", and ".join(each.additions) for each in suggestions),
            "limit": self.compute_memory_limit(),
            "keeps": "\n".join(map(str, self.describe_synopses())),
        }
        return render_fields(f"query {self.query.id}", fields)

    def as_json(self, *, with_suggestions: bool = True) -> dict[str, Any]:
        """Return the object that `headgate check --format json` prints as `memory`."""
        document: dict[str, Any] = {"bounded": self.bounded, "reason": self.reason}
        if self.diagnosis is not None:
            document |= self.diagnosis.as_json()
            document["witness"] = self.analysis.has_witness
        if self.diagnosis is not None or not self.is_holdable:
            suggestions = self.find_suggestions() if with_suggestions else None
            document["suggestions"] = (
                None if suggestions is None else [each.as_json() for each in suggestions]
            )
        if self.bounded is Answer.YES:
            document["holdable"] = self.is_holdable
            document["proof"] = self.explain_bounded()
            limit = self.compute_memory_limit()
            document["synopses"] = [each.as_json() for each in self.describe_synopses()]
            document["memory_limit"] = limit.as_json() if limit is not None else None
        return document


def check_memory(query: Query, observed: Mapping[str, int] | None = None) -> Verdict:
    """Decide whether a query can run in bounded memory.

    How long texts were `observed` to be counts in the limit of its memory.
    """
    analysis = analyse(query)
    case, fault = analysis.case, analysis.fault
    diagnosis = None if case is None or fault is None else diagnose(query, case, fault)
    return Verdict(query, analysis, diagnosis, _write_reason(analysis, diagnosis), observed)


def _write_reason(analysis: Analysis, diagnosis: Diagnosis | None) -> str:
    parts = []
    if analysis.bounded is Answer.UNKNOWN:
        parts.append(f"cannot tell whether its memory keeps growing: {analysis.unknown_because}")
    if diagnosis is not None:
        grows = "its memory keeps growing because" if analysis.bounded is Answer.NO else "perhaps"
        place = f" (at {diagnosis.place.position})" if diagnosis.place else ""
        parts.append(f"{grows} {diagnosis.sentence}{place}")
    return "; ".join(parts)
