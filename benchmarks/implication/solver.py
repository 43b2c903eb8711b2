"""Exact implication against z3: the same answers, and how much sooner.

z3 is asked by `check()` alone, with the formulas there, and with building them. Ours are
`match_exact`, which has boxes in one space, and `headgate.implies`, which has predicates as z3 has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.claims import Faster
from benchmarks.experiment import Contestant, Experiment, Fact, Look, Round, Unit
from benchmarks.implication.claims import Agree
from benchmarks.implication.contestants import PER_PAIR, Verdicts, exact_verdicts
from benchmarks.implication.pairs import ALL_PAIRS, Pairs, Setting
from benchmarks.implication.z3_answers import Z3, require_z3

PREPARED, IMPLIES = "match_exact, on boxes", "headgate.implies, on predicates"
CHECK, WHOLE = "z3, check() alone", "z3, building and check()"
PAIRS, FEWEST = 200, 10
TIMES = 10  # that match_exact gets all pairs in a turn
ASKED = 20_000
DRAWS = {1: 1, 2: 1, 3: 2, 4: 1, 6: 1}  # of 1,200 pairs of each kind, by dimensions
KINDS: dict[str, dict[str, Any]] = {
    "bounded": {},
    "possibly unbounded": {"unbounded": True},
    "with NULL": {"unbounded": True, "nulls": 0.15},
}
AGREED = "pairs on which all agree"


def implies_verdicts(pairs: Pairs) -> Verdicts:
    from headgate.implication.decision import implies

    return tuple(bool(implies(one, two, pairs.stream)) for one, two in pairs.as_predicates())


class Solvers:
    """Solvers with their formulas, each of which is asked once."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._z3 = Z3(nullable=any(attribute.nullable for attribute in pairs.stream))
        self._ready: list[Any] = []

    def prepare(self) -> None:
        self._ready = [self._z3.asked(*pair) for pair in self._pairs.as_predicates()]

    def check(self) -> Verdicts:
        return tuple(self._z3.implied(solver) for solver in self._ready)

    def whole(self) -> Verdicts:
        asked = (self._z3.asked(*pair) for pair in self._pairs.as_predicates())
        return tuple(self._z3.implied(solver) for solver in asked)


@contextmanager
def _timed(_: int, scale: float, seed: int) -> Iterator[Round]:
    require_z3()
    pairs = Setting().pairs(max(FEWEST, round(PAIRS * scale)), seed=seed)
    solvers = Solvers(pairs)
    solvers.prepare()
    truth = exact_verdicts(pairs)

    def several() -> None:
        for _ in range(TIMES):
            exact_verdicts(pairs)

    def checked() -> Verdicts:
        found = solvers.check()
        solvers.prepare()
        return found

    count = len(pairs)
    contestants = (
        Contestant(PREPARED, TIMES * count, lambda: truth, several),
        Contestant(
            IMPLIES, count, lambda: implies_verdicts(pairs), lambda: implies_verdicts(pairs)
        ),
        Contestant(CHECK, count, checked, solvers.check, solvers.prepare),
        Contestant(WHOLE, count, solvers.whole, solvers.whole),
    )
    yield Round(count, contestants)


@contextmanager
def _asked(size: int, scale: float, seed: int) -> Iterator[Round]:
    require_z3()
    facts: dict[str, Fact] = {}
    contestants = []
    for kind, options in KINDS.items():
        count = max(FEWEST, round(ALL_PAIRS * min(scale, 1)))
        draws = [
            Setting(size, 2, 20 if size > 1 else 4, **options).pairs(count, seed=100 * seed + draw)
            for draw in range(DRAWS[size])
        ]
        contestants.append(_agreeing(kind, size, draws, facts))
    yield Round(size, tuple(contestants), lambda: facts)


def _agreeing(kind: str, size: int, draws: list[Pairs], facts: dict[str, Fact]) -> Contestant:
    """Tells how many pairs are covered; its answer is what the ways disagree on."""
    ways = (exact_verdicts, implies_verdicts, lambda pairs: Solvers(pairs).whole())
    ours, whole, z3 = (tuple(verdict for pairs in draws for verdict in way(pairs)) for way in ways)
    apart = tuple(
        at for at, found in enumerate(zip(ours, whole, z3, strict=True)) if len(set(found)) > 1
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
        prepare=_timed,
        repeats=5,
        against=(WHOLE,),
        claims=(
            Faster("boxes against check() alone", PREPARED, CHECK, 100, says="goal"),
            Faster("boxes against building and check()", PREPARED, WHOLE, 100, says="goal"),
            Faster("predicates against building and check()", IMPLIES, WHOLE, 100, says="goal"),
            Faster("predicates against check() alone", IMPLIES, CHECK, 100, says="goal"),
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
        prepare=_asked,
        repeats=1,
        claims=(Agree("the same answers as z3", AGREED, ASKED, says="goal"),),
        look=Look(linear=True),
    ),
)
