"""The decision whether a query needs bounded memory: yes, no or unknown, with the reason.

The alternatives of the condition are looked at one by one, coarsely first. Where none has a fault,
the query is the union of queries that need bounded memory, and the answer is yes. A fault is a no
when streams that break the query are found and verified, or when the paper's theorem covers the
whole query. Alternatives prove a yes, but not always a no: `s.a < t.b OR s.a >= t.b` needs no
memory, though each side alone does. What nothing decides is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headgate.errors import ExpansionTooLarge
from headgate.predicate.answer import Answer
from headgate.queries import Query, decide_query_satisfiability
from headgate.stateful.analysis.alternatives import Alternatives, split_coarsely, split_finely
from headgate.stateful.analysis.case import Case, build_case
from headgate.stateful.analysis.faults import Fault, find_faults
from headgate.stateful.analysis.refinement import iter_context_cases, merge_contexts
from headgate.stateful.analysis.theory.closure import compute_closure
from headgate.stateful.analysis.witness import is_verified, list_attempts

MAX_TRIED_FAULTS = 40  # faults for which streams are looked for


@dataclass(frozen=True, slots=True)
class Analysis:
    """The answer, the cases of which the query is the union, and what is at fault in which of them.

    `unknown_because` says why an unknown answer is unknown. `witness_of` is what to build a
    witness of; it is there where streams that break the query were found and verified.
    """

    bounded: Answer
    cases: tuple[Case, ...] = ()
    fault: Fault | None = None
    case: Case | None = None
    witness_of: tuple[Case, Fault] | None = None
    is_contradiction: bool = False
    unknown_because: str = ""

    @property
    def has_witness(self) -> bool:
        return self.witness_of is not None


def analyse(query: Query) -> Analysis:
    """Decide whether a query can run in bounded memory, whatever its kind."""
    # A filter on one stream decides on each row alone and keeps nothing.
    if query.kind == "filter":
        return Analysis(Answer.YES)
    inspection: _Inspection | None = None
    too_many = ""
    # The coarse alternatives decide most queries; the fine ones cost more, and decide more.
    for alternatives_of in (split_coarsely, split_finely):
        try:
            inspection = _inspect(query, alternatives_of(query.where))
        except ExpansionTooLarge as error:
            too_many = str(error)
            break
        if not inspection.faults:
            # Rows are kept by these cases, so without the marks of `_inspect`, which bound nothing
            # and would only cut the buckets finer.
            cases = _list_cases(query, inspection.alternatives)
            return Analysis(Answer.YES, cases, is_contradiction=not cases)
        # Exact alternatives leave nothing for a finer split to refine.
        if inspection.alternatives.exact:
            break
    if inspection is None:
        return Analysis(Answer.UNKNOWN, unknown_because=too_many)
    return _decide_with_faults(query, inspection, too_many)


def _decide_with_faults(query: Query, inspection: _Inspection, too_many: str) -> Analysis:
    """Decide on a query with faults: no if streams or a theorem show it, else unknown."""
    # A verified witness is a proof whatever the theory says, so it comes before the theorems.
    shown = _find_witness(query, inspection.faults)
    if shown is not None:
        return replace(shown, cases=inspection.cases)
    if decide_query_satisfiability(query).answer is Answer.NO:
        return Analysis(Answer.YES, is_contradiction=True)
    # No streams were verified: it is a no only where a theorem is necessary as well as sufficient.
    case, fault = inspection.faults[0]
    why = too_many or _explain_unknown(inspection.alternatives, case, fault)
    # Alternatives may have faults that the whole has not. In contexts, few such are left.
    for finely in (False, True) if why else ():
        analysis = _decide_in_contexts(query, inspection, finely=finely)
        if analysis is not None:
            return analysis
    return Analysis(
        Answer.UNKNOWN if why else Answer.NO, inspection.cases, fault, case, unknown_because=why
    )


def _find_witness(query: Query, faults: Sequence[tuple[Case, Fault]]) -> Analysis | None:
    """Return the first fault of which streams show that it is one."""
    for case, fault in faults[:MAX_TRIED_FAULTS]:
        for attempt in list_attempts(case, fault):
            if is_verified(query, *attempt):
                return Analysis(Answer.NO, (), fault, case, attempt)
    return None


def _decide_in_contexts(query: Query, inspection: _Inspection, *, finely: bool) -> Analysis | None:
    """Decide by what is left of the condition in each context; None where that does not decide."""
    try:
        every = list(iter_context_cases(query, finely=finely))
    except ExpansionTooLarge:
        return None
    # Where one alternative is left, its fault is one of the whole: these are tried first.
    ordered = sorted(every, key=lambda each: not each.is_exact)
    faults = [pair for each in ordered for pair in each.faults]
    if not faults:
        # Rows are kept for each case: what contexts cut apart is put together again.
        atoms = merge_contexts(query, (case.atoms for each in every for case in each.cases))
        cases = _list_cases(query, Alternatives(tuple(atoms), exact=True))
        return Analysis(Answer.YES, cases, is_contradiction=not cases)
    shown = _find_witness(query, faults)
    return None if shown is None else replace(shown, cases=inspection.cases)


@dataclass(frozen=True, slots=True)
class _Inspection:
    """Alternatives, their cases, and all faults of these."""

    alternatives: Alternatives
    cases: tuple[Case, ...]
    faults: list[tuple[Case, Fault]]


def _inspect(query: Query, alternatives: Alternatives) -> _Inspection:
    cases = _list_cases(query, alternatives, marked=True)
    pairs = [(case, fault) for case in cases for fault in find_faults(query, case)]
    return _Inspection(alternatives, cases, pairs)


def _list_cases(
    query: Query, alternatives: Alternatives, *, marked: bool = False
) -> tuple[Case, ...]:
    """Return the cases of alternatives that are no contradictions."""
    filters = alternatives.filters
    cases = (build_case(query, atoms, filters, marked=marked) for atoms in alternatives.each)
    return tuple(
        case for case in cases if case is not None and compute_closure(case.query).satisfiable
    )


def find_bounded_cases(query: Query) -> tuple[Case, ...]:
    """Return the cases of a query if the analysis says yes; tries no streams.

    There are none where it does not, and none of a contradiction.
    """
    for alternatives_of in (split_coarsely, split_finely):
        try:
            alternatives = alternatives_of(query.where)
            cases = _list_cases(query, alternatives)
            # One fault is enough: the generator stops at the first.
            if not any(True for case in cases for _ in find_faults(query, case)):
                return cases
        except ExpansionTooLarge:
            return ()
        if alternatives.exact:
            return ()
    return ()


def _explain_unknown(alternatives: Alternatives, case: Case, fault: Fault) -> str:
    """Say why a fault without verified streams is no proof; nothing if the theorem says no."""
    # Theorem 5.3 is about queries that differ in filters only; alternatives may differ in more.
    if len(alternatives.each) > 1:
        return (
            "one alternative of its condition would grow by itself, but perhaps not with the others"
        )
    if not alternatives.exact or case.unseen:
        return "a filter on one stream may leave only finitely many values"
    if fault.is_unproven:
        return "no proof is known for a self-join with DISTINCT or a declared aggregate"
    if fault.aggregate is not None:
        return "the aggregate may not depend on what would have to be remembered"
    # Section 9 widens the theorems to dense types, but "no" is said of these only with a witness.
    if not all(line.whole for line in case.query.lines):
        return "it is proven for whole numbers only, and no rows were found that show it here"
    return ""
