"""Exact implication against z3: the same answers, and how much sooner.

z3 is asked by `check()` alone, with the formulas there, and with building them. Ours are
`match_exact`, which has boxes in one space, and `headgate.implies`, which has predicates as z3 has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.harness.claims import Faster, SameAnswers
from benchmarks.harness.experiment import Contestant, Experiment, Fact, Look, Round, Unit
from benchmarks.implication.contestants import PER_PAIR, Verdicts, exact_verdicts
from benchmarks.implication.pairs import ALL_PAIRS, Pairs, Setting
from headgate.errors import UsageError
from headgate.predicate import And, IsNull, Or, Predicate, Within
from headgate.schema import DOUBLE, Interval

# What z3 says: is every row of one predicate a row of another?
#
# A column is a real number that may be NULL. A predicate is asked to hold and the other not to;
# when no row does both, the first implies the second. The formulas are written from the
# predicates, and share nothing with cells and boxes.


def require_z3() -> Any:
    """Return the module; raise where it is not there, with the way to get it."""
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

    def make_solver(self, query: Predicate, stream: Predicate) -> Any:
        """Return a solver that looks for a row of the query that is none of the stream."""
        solver = self._z3.Solver()
        solver.add(self.formula(query), self._z3.Not(self.formula(stream)))
        return solver

    def is_implied(self, solver: Any) -> bool:
        answer = solver.check()
        assert answer != self._z3.unknown
        return bool(answer == self._z3.unsat)

    def formula(self, predicate: Predicate) -> Any:
        """Return a formula that is true where the predicate is TRUE, else false."""
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
        inside = z3.Or(
            [z3.And(list(self._ends(value, interval))) for interval in predicate.values.intervals]
        )
        return z3.And(z3.Not(null), inside) if self._nullable else inside

    def _ends(self, value: Any, side: Interval) -> Iterator[Any]:
        assert isinstance(side.low, int)
        assert isinstance(side.high, int)
        yield value >= self._z3.RealVal(DOUBLE.value(side.low))
        yield value <= self._z3.RealVal(DOUBLE.value(side.high - 1))


PREPARED, IMPLIES = "match_exact, on boxes", "headgate.implies, on predicates"
CHECK, WHOLE = "z3, check() alone", "z3, building and check()"
PAIRS, MIN_PAIRS = 200, 10
TIMES = 10  # that match_exact gets all pairs in a turn
COMPARED_PAIRS = 20_000
DRAWS = {1: 1, 2: 1, 3: 2, 4: 1, 6: 1}  # of 1,200 pairs of each kind, by dimensions
KINDS: dict[str, dict[str, Any]] = {
    "bounded": {},
    "possibly unbounded": {"unbounded": True},
    "with NULL": {"unbounded": True, "nulls": 0.15},
}
AGREED = "pairs on which all agree"


def implies_verdicts(pairs: Pairs) -> Verdicts:
    from headgate.implication.decision import implies

    return tuple(
        bool(implies(query, stream, pairs.stream)) for query, stream in pairs.as_predicates()
    )


class Solvers:
    """Solvers with their formulas, each of which is asked once."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._z3 = Z3(nullable=any(attribute.nullable for attribute in pairs.stream))
        self._ready: list[Any] = []

    def prepare(self) -> None:
        self._ready = [self._z3.make_solver(*pair) for pair in self._pairs.as_predicates()]

    def check(self) -> Verdicts:
        return tuple(self._z3.is_implied(solver) for solver in self._ready)

    def whole(self) -> Verdicts:
        solvers = (self._z3.make_solver(*pair) for pair in self._pairs.as_predicates())
        return tuple(self._z3.is_implied(solver) for solver in solvers)


@contextmanager
def _prepare_times(_: int, scale: float, seed: int) -> Iterator[Round]:
    require_z3()
    pairs = Setting().pairs(max(MIN_PAIRS, round(PAIRS * scale)), seed=seed)
    solvers = Solvers(pairs)
    solvers.prepare()
    truth = exact_verdicts(pairs)

    def run_exact() -> None:
        for _ in range(TIMES):
            exact_verdicts(pairs)

    def check_and_prepare() -> Verdicts:
        # z3 remembers what it was asked, so each check needs new solvers.
        answer = solvers.check()
        solvers.prepare()
        return answer

    count = len(pairs)
    contestants = (
        Contestant(PREPARED, TIMES * count, lambda: truth, run_exact),
        Contestant(
            IMPLIES, count, lambda: implies_verdicts(pairs), lambda: implies_verdicts(pairs)
        ),
        Contestant(CHECK, count, check_and_prepare, solvers.check, solvers.prepare),
        Contestant(WHOLE, count, solvers.whole, solvers.whole),
    )
    yield Round(count, contestants)


@contextmanager
def _prepare_answers(size: int, scale: float, seed: int) -> Iterator[Round]:
    require_z3()
    facts: dict[str, Fact] = {}
    contestants = []
    for kind, options in KINDS.items():
        count = max(MIN_PAIRS, round(ALL_PAIRS * min(scale, 1)))
        draws = [
            Setting(size, 2, 20 if size > 1 else 4, **options).pairs(count, seed=100 * seed + draw)
            for draw in range(DRAWS[size])
        ]
        contestants.append(_make_comparison(kind, size, draws, facts))
    yield Round(size, tuple(contestants), lambda: facts)


def _make_comparison(
    kind: str, size: int, draws: list[Pairs], facts: dict[str, Fact]
) -> Contestant:
    """Return a contestant that counts covered pairs; its answer is what the ways disagree on."""
    variants = (exact_verdicts, implies_verdicts, lambda pairs: Solvers(pairs).whole())
    ours, whole, z3 = (
        tuple(verdict for pairs in draws for verdict in variant(pairs)) for variant in variants
    )
    # The places at which they disagree, which must be none.
    apart = tuple(
        at
        for at, verdicts in enumerate(zip(ours, whole, z3, strict=True))
        if len(set(verdicts)) > 1
    )
    facts[f"{AGREED}, {kind}, {size} dimensions"] = len(ours) - len(apart)
    return Contestant(kind, len(ours), answer=lambda: apart, run=lambda: sum(z3))


SOLVER = (
    Experiment(
        name="implication-z3",
        title="Stream sharing: exact implication and z3, default setting",
        sizes=(PAIRS,),
        size_label="pairs",
        unit=PER_PAIR,
        baseline=CHECK,
        prepare=_prepare_times,
        repeats=5,
        against=(WHOLE,),
        claims=(
            Faster("boxes against check() alone", PREPARED, CHECK, 100, claimant="goal"),
            Faster("boxes against building and check()", PREPARED, WHOLE, 100, claimant="goal"),
            Faster("predicates against building and check()", IMPLIES, WHOLE, 100, claimant="goal"),
            Faster("predicates against check() alone", IMPLIES, CHECK, 100, claimant="goal"),
        ),
        clock=time.process_time,
    ),
    Experiment(
        name="implication-z3-answers",
        title="Stream sharing: random pairs that are covered, as both of ours and z3 say",
        sizes=tuple(DRAWS),
        size_label="dimensions",
        unit=Unit("percent of pairs", "share", 100.0, counted=True),
        baseline="",
        prepare=_prepare_answers,
        repeats=1,
        claims=(SameAnswers("the same answers as z3", AGREED, COMPARED_PAIRS, claimant="goal"),),
        look=Look(linear=True),
    ),
)
