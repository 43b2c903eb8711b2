"""What keeps a case of a query from bounded memory, by the theorem that says so.

"Characterizing Memory Requirements …": Theorems 5.6 and 5.10 for joins without and with DISTINCT,
8.5 and 8.6 for aggregates over one stream and over several. An aggregate query stores its answer,
so its groups must be finitely many; besides, each aggregate is asked for alone. Theorem 8.6 holds
as corrected (`checker.find_extremum_violations`); of declared aggregates only the sufficient
conditions of Theorems 8.3 and 8.4 are known, and a fault beyond them is unproven.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np

from headgate.queries import Aggregate, Query
from headgate.stateful.analysis.case import Case, list_aggregates
from headgate.stateful.analysis.theory import definition
from headgate.stateful.analysis.theory.checker import (
    Violation,
    find_extremum_violations,
    find_violations,
)
from headgate.stateful.analysis.theory.closure import Closure, compute_closure
from headgate.stateful.analysis.theory.conjunctive import Conjunctive

MAX_ORDERED_QUERIES = 1_000  # ordered queries that are looked at for what else is at fault


@dataclass(frozen=True, slots=True)
class Fault:
    """A violated condition of a theorem; `is_unproven` where no theorem says so."""

    theorem: str
    condition: str
    violation: Violation
    aggregate: Aggregate | None = None
    is_unproven: bool = False


def find_faults(query: Query, case: Case) -> Iterator[Fault]:
    """Yield an example of each kind of fault of a case; none where its memory is bounded."""
    if query.kind == "aggregate":
        yield from _find_aggregate_faults(query, case)
        return
    theorem = "5.10" if query.distinct else "5.6"
    for violation, is_open in _find_violations(case.query):
        yield Fault(theorem, violation.condition, violation, is_unproven=is_open)


def _find_violations(query: Conjunctive) -> Iterator[tuple[Violation, bool]]:
    """Yield what the checker finds, and whether no theorem says that it is a fault.

    With DISTINCT and a self-join, an occurrence may be redundant (section 8.1). Then what the
    checker finds counts only if the definition, which leaves such occurrences out, finds some, too.
    """
    candidates = find_violations(query)
    if not (query.distinct and query.has_self_joins):
        yield from ((violation, False) for violation in candidates)
    elif next(candidates, None) is not None:
        known: set[Violation] = set()
        # Every ordered query repeats the same violations: each is reported once.
        for violation in islice(definition.find_violations(query), MAX_ORDERED_QUERIES):
            if violation not in known:
                known.add(violation)
                yield violation, True


def _find_aggregate_faults(query: Query, case: Case) -> Iterator[Fault]:
    known = compute_closure(case.query)
    if not known.satisfiable:
        return
    # A query with several aggregates is bounded iff it is with each of them alone (after Theorem
    # 8.6); GROUP BY without aggregates is checked once, with None.
    for aggregate in list_aggregates(query) or (None,):
        sensitive = aggregate is not None and aggregate.duplicate_sensitive
        # The reduced characteristic query: it puts out the groups only, and keeps duplicates iff
        # the aggregate counts them.
        reduced = replace(case.query, distinct=not sensitive)
        if len(query.sources) == 1:
            yield from _find_single_stream_faults(case, known, aggregate)
            continue
        for violation, is_open in _find_violations(reduced):
            yield Fault("8.6", "C1", violation, aggregate, is_open or _is_declared(aggregate))
        if aggregate is not None:
            yield from _find_argument_faults(case, known, aggregate)


def _find_single_stream_faults(
    case: Case, known: Closure, aggregate: Aggregate | None
) -> Iterator[Fault]:
    """Yield faults by Theorem 8.5: finitely many groups, and values of a holistic aggregate."""
    if case.query.windowed:
        return
    for variable in case.query.outputs:
        violation = _find_endless_values(case, known, variable)
        if violation is not None:
            yield Fault("8.5", "(1)", violation, aggregate, _is_declared(aggregate))
    if aggregate is not None and aggregate.category == "holistic":
        argument = _find_argument(case, aggregate)
        violation = None if argument is None else _find_endless_values(case, known, argument)
        if violation is not None:
            yield Fault("8.5", "(2)", violation, aggregate, _is_declared(aggregate))


def _find_argument_faults(case: Case, known: Closure, aggregate: Aggregate) -> Iterator[Fault]:
    """Yield faults by Theorem 8.6, C2 and C3, of what an aggregate over several streams sees."""
    argument = _find_argument(case, aggregate)
    if argument is None:
        return
    # C2 of Theorem 8.6; of a declared aggregate only Theorem 8.4 is known, which is sufficient.
    if aggregate.category == "holistic" or aggregate.declared is not None:
        violation = _find_endless_values(case, known, argument)
        if violation is not None:
            yield Fault("8.6", "C2", violation, aggregate, _is_declared(aggregate))
    elif aggregate.function in ("MIN", "MAX"):
        pattern: Literal["maximum", "minimum"]
        pattern = "maximum" if aggregate.function == "MAX" else "minimum"
        # MIN and MAX do not count duplicates, whatever the query says.
        reduced = replace(case.query, distinct=True)
        for violation in find_extremum_violations(reduced, argument, pattern, known):
            yield Fault("8.6", "C3", violation, aggregate, reduced.has_self_joins)


def _is_declared(aggregate: Aggregate | None) -> bool:
    return aggregate is not None and aggregate.declared is not None


def _find_argument(case: Case, aggregate: Aggregate) -> int | None:
    return None if aggregate.argument is None else case.number(aggregate.argument)


def _find_endless_values(case: Case, known: Closure, variable: int) -> Violation | None:
    """Return the violation that a variable has infinitely many values, outside of windows."""
    # The gaps in which the variable takes infinitely many values, ascending.
    gaps = np.flatnonzero(known.roams[variable])
    source = case.query.variables[variable].source
    if not len(gaps) or source in case.query.windowed:
        return None
    return Violation("C1", "output", source, variable=variable, gap=int(gaps[-1]))
