"""The verdict on a query's memory, with everything that a user needs to believe it and to act.

Beyond the answer and its reason it is worked out when it is asked for: what is at fault, streams
that break the query, cures, or what its synopses keep and how much that is at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headgate.predicate.answer import Answer
from headgate.queries import Query
from headgate.stateful.analysis.boundedness import Analysis, analyse
from headgate.stateful.analysis.diagnosis import Blame, blame
from headgate.stateful.analysis.redundancy import lean
from headgate.stateful.analysis.suggestions import Cure, cures
from headgate.stateful.analysis.synopses.memory import Memory, memory
from headgate.stateful.analysis.synopses.plan import plan_of
from headgate.stateful.analysis.synopses.synopsis import Synopsis, synopses
from headgate.stateful.analysis.witness.witness import Witness, witness

DEFAULT_SIZE = 10


@dataclass(frozen=True)
class Verdict:
    """Can the query live in bounded memory? `bounded` is yes, no or unknown.

    `observed` are the lengths of texts in bytes, by stream and attribute as in `trades.symbol`.
    """

    query: Query
    analysis: Analysis
    observed: Mapping[str, int] | None = None

    @property
    def bounded(self) -> Answer:
        return self.analysis.bounded

    @cached_property
    def reason(self) -> str:
        """Why it is not simply a yes."""
        if self.blame is None:
            unknown = f"cannot tell whether its memory is bounded: {self.analysis.open}"
            return unknown if self.bounded is Answer.UNKNOWN else ""
        place = f", at {self.blame.place.position}" if self.blame.place else ""
        why = f"{self.blame.sentence} (Theorem {self.blame.theorem}, {self.blame.condition}{place})"
        if self.bounded is Answer.NO:
            return f"needs unbounded memory: {why}"
        return f"cannot tell whether its memory is bounded: {self.analysis.open}; {why}"

    @cached_property
    def blame(self) -> Blame | None:
        """What is at fault; None for a yes."""
        case, fault = self.analysis.case, self.analysis.fault
        if case is None or fault is None:
            return None
        return blame(self.query, case, fault)

    def witness(self, size: int = DEFAULT_SIZE) -> Witness | None:
        """Streams of which `size` rows must all be remembered; None where none can be built."""
        shown = self.analysis.shown
        return None if shown is None else witness(self.query, *shown, size)

    @cached_property
    def cures(self) -> tuple[Cure, ...]:
        """Additions that make it bounded; none for a yes."""
        case, fault = self.analysis.case, self.analysis.fault
        if case is None or fault is None:
            return ()
        return cures(self.query, case, fault, len(self.analysis.cases))

    @cached_property
    def synopses(self) -> tuple[Synopsis, ...]:
        """What is kept of each stream; none unless the answer is yes, or for a contradiction."""
        if self.bounded is not Answer.YES or self.analysis.is_contradiction:
            return ()
        run = self._as_run
        return synopses(run.query, run.analysis.cases, self.observed)

    @cached_property
    def most(self) -> Memory | None:
        """The most that is ever stored; None unless the answer is yes."""
        if self.bounded is not Answer.YES:
            return None
        if self.analysis.is_contradiction:
            return Memory(0, 0)
        run = self._as_run
        return memory(run.query, run.analysis.cases, self.observed)

    @cached_property
    def _as_run(self) -> Verdict:
        """The verdict on the query without occurrences of streams that are redundant."""
        cases = self.analysis.cases
        if not plan_of(self.query, cases).needs_reduction or len(cases) != 1:
            return self
        less = lean(self.query, cases[0])
        return self if less is None else verdict(less, self.observed)

    def as_json(self, *, with_cures: bool = True) -> dict[str, Any]:
        found: dict[str, Any] = {"bounded": self.bounded, "reason": self.reason}
        if self.blame is not None:
            found |= self.blame.as_json()
            found["witness"] = self.analysis.is_shown
            found["cures"] = [cure.as_json() for cure in self.cures] if with_cures else None
        if self.bounded is Answer.YES:
            found["synopses"] = [synopsis.as_json() for synopsis in self.synopses]
            found["most"] = self.most.as_json() if self.most is not None else None
        return found


def verdict(query: Query, observed: Mapping[str, int] | None = None) -> Verdict:
    """The verdict on a query; how long texts were observed to be counts in its bound."""
    return Verdict(query, analyse(query), observed)
