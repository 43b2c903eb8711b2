"""Can a query live in bounded memory? Yes, no, or unknown, with the reason.

The alternatives of the condition are looked at one by one, coarsely first. Where none has a fault,
the query is the union of queries that need bounded memory, and the answer is yes. A fault is a no
when streams that break the query are found and verified, or when the paper's theorem covers the
whole query. Alternatives prove a yes, but not always a no: `s.a < t.b OR s.a >= t.b` needs no
memory, though each side alone does. What nothing decides is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import ExpansionTooLarge
from headgate.predicate.answer import Answer
from headgate.queries import Query, decide_query_satisfiability
from headgate.stateful.analysis.cases.alternatives import Alternatives, coarse, fine
from headgate.stateful.analysis.cases.case import Case, case_of
from headgate.stateful.analysis.faults import Fault, faults
from headgate.stateful.analysis.theory.closure import close
from headgate.stateful.analysis.witness.witness import attempts, holds

TRIED = 40  # faults for which streams are looked for


@dataclass(frozen=True, slots=True)
class Analysis:
    """The answer, the cases of which the query is the union, and what is at fault in which of them.

    `open` says why an unknown answer is unknown. `shown` is what to build a witness of; it is there
    where streams that break the query were found and verified.
    """

    bounded: Answer
    cases: tuple[Case, ...] = ()
    fault: Fault | None = None
    case: Case | None = None
    shown: tuple[Case, Fault] | None = None
    is_contradiction: bool = False
    open: str = ""

    @property
    def is_shown(self) -> bool:
        return self.shown is not None


def analyse(query: Query) -> Analysis:
    """The answer for a query, whatever its kind."""
    if query.kind == "filter":
        return Analysis(Answer.YES)
    look: _Look | None = None
    too_many = ""
    for alternatives_of in (coarse, fine):
        try:
            look = _look(query, alternatives_of(query.where))
        except ExpansionTooLarge as error:
            too_many = str(error)
            break
        if not look.faults:
            cases = _cases(query, look.alternatives)
            return Analysis(Answer.YES, cases, is_contradiction=not cases)
        if look.alternatives.exact:
            break
    if look is None:
        return Analysis(Answer.UNKNOWN, open=too_many)
    return _with_faults(query, look, too_many)


def _with_faults(query: Query, look: _Look, too_many: str) -> Analysis:
    """No, where streams show it or a theorem says it; else unknown; or yes, as nothing ever is."""
    for case, fault in look.faults[:TRIED]:
        for attempt in attempts(case, fault):
            if holds(query, *attempt):
                return Analysis(Answer.NO, look.cases, fault, case, attempt)
    if decide_query_satisfiability(query).answer is Answer.NO:
        return Analysis(Answer.YES, is_contradiction=True)
    case, fault = look.faults[0]
    why = too_many or _why_open(look.alternatives, case, fault)
    return Analysis(Answer.UNKNOWN if why else Answer.NO, look.cases, fault, case, open=why)


@dataclass(frozen=True, slots=True)
class _Look:
    """Alternatives, their cases, and all faults of these."""

    alternatives: Alternatives
    cases: tuple[Case, ...]
    faults: list[tuple[Case, Fault]]


def _look(query: Query, alternatives: Alternatives) -> _Look:
    cases = _cases(query, alternatives, marked=True)
    found = [(case, fault) for case in cases for fault in faults(query, case)]
    return _Look(alternatives, cases, found)


def _cases(query: Query, alternatives: Alternatives, *, marked: bool = False) -> tuple[Case, ...]:
    """The cases of alternatives that are no contradictions."""
    filtered = alternatives.filtered
    cases = (case_of(query, atoms, filtered, marked=marked) for atoms in alternatives.each)
    return tuple(case for case in cases if case is not None and close(case.query).satisfiable)


def is_proven(query: Query) -> bool:
    """Does the analysis say yes, and is the query not a contradiction? Looks for no streams."""
    for alternatives_of in (coarse, fine):
        try:
            alternatives = alternatives_of(query.where)
            cases = _cases(query, alternatives)
            if not any(True for case in cases for _ in faults(query, case)):
                return bool(cases)
        except ExpansionTooLarge:
            return False
        if alternatives.exact:
            return False
    return False


def _why_open(alternatives: Alternatives, case: Case, fault: Fault) -> str:
    """Why a fault without verified streams is no proof; nothing where the theorem says no."""
    if len(alternatives.each) > 1:
        return "one alternative of its condition needs unbounded memory, which all of them may not"
    if not alternatives.exact or case.unseen:
        return "a filter on one stream may leave only finitely many values"
    if fault.open:
        return "no theorem decides it for a self-join or a declared aggregate"
    if fault.aggregate is not None:
        return "the aggregate may not depend on what would have to be remembered"
    if not all(line.whole for line in case.query.lines):
        return "the theorem is about whole numbers, and no streams were found that show it"
    return ""
