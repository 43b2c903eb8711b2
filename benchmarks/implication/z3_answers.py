"""What z3 says: is every row of one predicate a row of another?

A column is a real number that may be NULL. A predicate is asked to hold and the other not to; when
no row does both, the first implies the second. The formulas are written from the predicates, and
share nothing with cells and boxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headgate.errors import UsageError
from headgate.predicate import And, IsNull, Or, Predicate, Within
from headgate.schema import DOUBLE, Interval


def require_z3() -> Any:
    """The module; raises where it is not there, with the way to get it."""
    try:
        import z3
    except ImportError:
        raise UsageError("this experiment asks z3; pip install z3-solver") from None
    return z3


class Z3:
    """Formulas of predicates over DOUBLE columns that are made of AND, OR, ranges and IS NULL.

    A range that was met before is not built again.
    """

    def __init__(self, *, nullable: bool) -> None:
        self._z3 = require_z3()
        self._nullable = nullable
        self._known: dict[Within | IsNull, Any] = {}

    def asked(self, query: Predicate, stream: Predicate) -> Any:
        """A solver that looks for a row of the query that is none of the stream."""
        solver = self._z3.Solver()
        solver.add(self.formula(query), self._z3.Not(self.formula(stream)))
        return solver

    def implied(self, solver: Any) -> bool:
        answer = solver.check()
        assert answer != self._z3.unknown
        return bool(answer == self._z3.unsat)

    def formula(self, predicate: Predicate) -> Any:
        """TRUE where the predicate is; where that is FALSE or NULL, it is false."""
        z3 = self._z3
        if isinstance(predicate, And | Or):
            together = z3.And if isinstance(predicate, And) else z3.Or
            return together([self.formula(part) for part in predicate.parts])
        assert isinstance(predicate, IsNull | Within)
        if predicate not in self._known:
            self._known[predicate] = self._atom(predicate)
        return self._known[predicate]

    def _atom(self, predicate: IsNull | Within) -> Any:
        z3 = self._z3
        null = z3.Bool(f"{predicate.column.name} IS NULL")
        if isinstance(predicate, IsNull):
            return null
        value = z3.Real(predicate.column.name)
        inside = z3.Or([z3.And(list(self._ends(value, one))) for one in predicate.values.intervals])
        return z3.And(z3.Not(null), inside) if self._nullable else inside

    def _ends(self, value: Any, side: Interval) -> Iterator[Any]:
        assert isinstance(side.low, int)
        assert isinstance(side.high, int)
        yield value >= self._z3.RealVal(DOUBLE.value(side.low))
        yield value <= self._z3.RealVal(DOUBLE.value(side.high - 1))
