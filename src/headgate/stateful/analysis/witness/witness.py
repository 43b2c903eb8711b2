"""Streams that no bounded memory survives: every one of their rows must be remembered.

"Characterizing Memory Requirements …", Lemmas A.3 to A.7. Rows of one stream arrive, any subset of
them; whoever cannot tell two subsets apart gives a wrong answer on some continuation. The values
come from `schedule`, the rows from `rows`. That the answers differ is always computed, from the
definition of the answer, so that a witness holds whatever the theory says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from headgate.predicate import Row
from headgate.queries import Query
from headgate.stateful.analysis.cases.case import Case
from headgate.stateful.analysis.cases.lines import NoSuchValue
from headgate.stateful.analysis.faults import Fault
from headgate.stateful.analysis.relational_answer import AnswerRows, NotComputable, compute_answer
from headgate.stateful.analysis.theory.checker import Violation
from headgate.stateful.analysis.theory.closure import compute_closure
from headgate.stateful.analysis.theory.conjunctive import Comparison
from headgate.stateful.analysis.witness.rows import build_rows

LONG_WITNESS_ROWS = 24  # rows of a schedule of which three are verified

Event = tuple[str, Row]  # the stream, and a row that arrives on it


@dataclass(frozen=True, slots=True)
class Witness:
    """Rows of `stream` of which each must be remembered, and for each what follows them.

    After any two different subsets of `rows` a continuation exists on which the answers differ, or
    the answers differ already: `tells_apart` finds it. For a median, `ends` are rows below and
    above all others, that move it.
    """

    query: Query
    stream: str
    rows: tuple[Row, ...]
    others: tuple[tuple[Event, ...], ...]
    ends: tuple[Row, ...] = ()

    def continuations(self, kept: int) -> Iterator[tuple[Event, ...]]:
        """Yield what may follow to make row number `kept` matter; for joins just one thing.

        An aggregate may need that the row comes again, or rows at the ends that move a median.
        """
        others = self.others[kept]
        again: tuple[Event, ...] = ((self.stream, self.rows[kept]),)
        yield others or again
        if self.query.kind != "aggregate":
            return
        if others:
            yield others + again
            yield again
        # Each row at an end moves the median on by half a place: enough of them reach every row.
        for many in range(1, len(self.rows) + 2 if self.ends else 1):
            for end in self.ends:
                yield others + ((self.stream, end),) * many

    def tells_apart(
        self, first: Collection[int], second: Collection[int]
    ) -> tuple[Event, ...] | None:
        """Return a continuation on which the two subsets of rows differ; None where none was found.

        It is that of the last row in which they differ, but where alternatives or an aggregate get
        in the way. It is empty where they differ already: the answer of an aggregate is stored.
        """
        if self.query.kind == "aggregate" and self._answer(first) != self._answer(second):
            return ()
        # The last difference first: for counts, earlier rows do not join with what belongs to
        # later ones.
        differing = sorted(set(first) ^ set(second), reverse=True)
        others = (number for number in range(len(self.rows)) if number not in differing)
        for kept in (*differing, *others):
            for following in self.continuations(kept):
                if self.given(first, following) != self.given(second, following):
                    return following
        return None

    def given(self, kept: Collection[int], following: Sequence[Event]) -> AnswerRows:
        """Return what a continuation gives: changes of the answer, or the new aggregates."""
        after: Any = self._answer(kept, following)
        if self.query.kind == "aggregate":
            return dict(after)
        # Without aggregates the answer so far is given away already: only changes can differ.
        before: Any = self._answer(kept)
        changes = {row: after.get(row, 0) - before.get(row, 0) for row in (*after, *before)}
        return {row: change for row, change in changes.items() if change}

    def _answer(self, kept: Collection[int], following: Sequence[Event] = ()) -> AnswerRows:
        streams: dict[str, list[Row]] = {self.stream: [self.rows[at] for at in sorted(kept)]}
        for stream, row in following:
            streams.setdefault(stream, []).append(row)
        return compute_answer(self.query, streams)


def list_attempts(case: Case, fault: Fault) -> Iterator[tuple[Case, Fault]]:
    """Yield the fault itself, then with strict comparisons, then with equality for its joins.

    Values that need not be equal are easier to find if they are not. And where a condition has
    other alternatives, or a stream joins itself, the order of two values may not matter, while that
    they are equal does: `a <> b` is FALSE just there.
    """
    yield case, fault
    every = case.query.comparisons
    strict = [replace(c, operator="<" if c.operator == "<=" else c.operator) for c in every]
    yield from _with(case, fault, strict)
    for join in fault.violation.joins:
        sides = {join.left, join.right}
        equal = [replace(c, operator="=") if {c.left, c.right} == sides else c for c in every]
        equality = Violation("C2", "equality", fault.violation.source, (join,))
        yield from _with(case, replace(fault, violation=equality), equal)


def _with(case: Case, fault: Fault, changed: list[Comparison]) -> Iterator[tuple[Case, Fault]]:
    """Yield the case with other comparisons, if that is another one and no contradiction."""
    query = replace(case.query, comparisons=tuple(changed))
    if query != case.query and compute_closure(query).satisfiable:
        yield replace(case, query=query), fault


def build_witness(query: Query, case: Case, fault: Fault, size: int) -> Witness | None:
    """Return the witness of a fault; None where the types have no such values.

    Some rows may have to be left out, as a filter has holes or a sum does not see a zero. What is
    left is scheduled as before, so more rows are asked for than are wanted.
    """
    # Two more rows, below and above all others, that move a median or an average.
    ends = 2 if _is_moved(fault) else 0
    wanted = size + ends
    # A schedule costs by its length, so first little more than wanted, then much more.
    for size_tried in (wanted + 1, 2 * wanted + 10, 8 * wanted + 100):
        try:
            rows = build_rows(query, case, fault, size_tried)
        except (NoSuchValue, ValueError):
            return None
        if len(rows) >= wanted:
            break
    else:
        return None
    rows = rows[:wanted]
    source, sources = fault.violation.source, range(len(query.sources))
    streams = [s.stream.name for s in query.sources]
    kept = rows[1:-1] if ends else rows
    return Witness(
        query,
        streams[source],
        tuple(parts[source] for parts in kept),
        tuple(tuple((streams[s], parts[s]) for s in sources if s != source) for parts in kept),
        (rows[0][source], rows[-1][source]) if ends else (),
    )


def is_verified(query: Query, case: Case, fault: Fault) -> bool:
    """Tell whether there are streams, of any length, whose rows are all told apart.

    Three rows that lie far from each other in a longer schedule stand for all: what holds only for
    a while, as long as other values are not passed, fails for one of them.
    """
    long = build_witness(query, case, fault, LONG_WITNESS_ROWS)
    if long is None:
        return False
    far = (0, LONG_WITNESS_ROWS // 2, LONG_WITNESS_ROWS - 1)
    extended = replace(
        long, rows=tuple(long.rows[at] for at in far), others=tuple(long.others[at] for at in far)
    )
    # All 8 subsets of the three rows, pairwise: 28 comparisons.
    subsets = [frozenset(s) for n in range(len(far) + 1) for s in combinations(range(len(far)), n)]
    try:
        return all(extended.tells_apart(a, b) is not None for a, b in combinations(subsets, 2))
    except NotComputable:
        return False


def _is_moved(fault: Fault) -> bool:
    """Tell whether rows at the ends of all others move the aggregate, and so tell more of them."""
    if fault.aggregate is None or fault.violation.pattern != "output":
        return False
    return fault.aggregate.function in ("MEDIAN", "AVG")
