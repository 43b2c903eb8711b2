"""How long the texts are that a query keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.predicate import Column
from headgate.queries import find_attribute
from headgate.schema import String
from headgate.stateful.analysis.synopses.branches import source_of
from headgate.stateful.analysis.synopses.cells import Cells
from headgate.stateful.analysis.synopses.plan import Plan
from headgate.stateful.analysis.synopses.sizes import ASSUMED_TEXT, width


@dataclass(frozen=True, slots=True)
class Lengths:
    """The bytes of values, with texts as long as the longest that is possible or was observed."""

    plan: Plan
    observed: Mapping[str, int]

    def bytes(self, columns: Iterable[Column]) -> int:
        return sum(width(c.type, self._known(c) or ASSUMED_TEXT) for c in columns)

    def assumed(self, number: int, columns: Iterable[Column]) -> tuple[str, ...]:
        texts = (c for c in dict.fromkeys(columns) if isinstance(c.type, String))
        stream = self.plan.query.sources[number].stream.name
        return tuple(f"{stream}.{c.name}" for c in texts if self._known(c) is None)

    def _known(self, column: Column) -> int | None:
        if not isinstance(column.type, String):
            return None
        stream = self.plan.query.sources[source_of(self.plan.query, column)].stream.name
        of = [b for b in self.plan.branches if b.accepts_values(column)]
        attribute = find_attribute(self.plan.query, column)
        cells = [b.cells(column) for b in of] or [Cells(column.type, attribute.domain, ())]
        longest = [each.longest() for each in cells]
        found = [length for length in longest if length is not None]
        if len(found) == len(longest):
            return max(found)
        return self.observed.get(f"{stream}.{column.name}")
