"""The ways to match a pair of predicates, what of them is on the clock, and who agrees with whom.

Matching changes the stream predicate, so a pair is made ready before every turn: boxes in order of
volume, sides in order of length, and the index are there when the clock starts, as they are in the
paper, where a stream predicate is kept that way. Exact ways must all give the same answers; what a
heuristic finds covered must be so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.harness.experiment import Contestant, Unit
from benchmarks.implication.pairs import Pairs
from headgate.errors import ExpansionTooLarge
from headgate.implication.paper import Method
from headgate.implication.paper.heuristics import match_hcr, match_hsr
from headgate.implication.paper.splitting import (
    match_em,
    split_breadth_first,
    split_depth_first,
    split_mixed,
)
from headgate.implication.paper.stream_predicate import StreamPredicate
from headgate.implication.parts import ComparisonCounter, to_parts
from headgate.implication.space import Boxes, Space

# A pair of predicates made ready for one of the paper's methods, to be matched once.

MATCHERS: dict[Method, Callable[..., bool]] = {
    "hsr": match_hsr,
    "hcr": match_hcr,
    "em-bfs": partial(match_em, strategy=split_breadth_first),
    "em-dfs": partial(match_em, strategy=split_depth_first),
    "em-mix": partial(match_em, strategy=split_mixed),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """A method of the paper, with or without the quick check and an index."""

    method: Method
    index: str | None = None
    quick_check: bool = True

    @property
    def name(self) -> str:
        checked = "+QC" if self.quick_check else ""
        return f"{self.method.upper()}{checked}" + (f", {self.index}" if self.index else "")

    @property
    def is_exact(self) -> bool:
        return self.method.startswith("em")


class Ready:
    """The boxes in order of volume, their sides in order of length, and the index, are there."""

    def __init__(self, space: Space, query: Boxes, stream: Boxes, variant: Variant) -> None:
        self.tally = ComparisonCounter()
        self.stream = StreamPredicate(space, stream, variant.index)
        self._variant = variant
        self._query = to_parts(space.sort_by_volume(query))

    def match(self) -> bool:
        """Return whether the stream covers the query; relax it where it does not."""
        run = MATCHERS[self._variant.method]
        return run(self.stream, self._query, self.tally, check_first=self._variant.quick_check)


PER_PAIR = Unit("ms of the processor per pair", "cost", 1e3)
EXACT, COMPILED_HCR = "our exact method, compiled", "HCR, compiled"
LIMIT = 12.0  # seconds for all pairs, past which a contestant is left out

Verdicts = tuple[bool, ...]


HSR, HCR = Variant("hsr"), Variant("hcr")
BFS, DFS, MIX = Variant("em-bfs"), Variant("em-dfs"), Variant("em-mix")
BFS_R = replace(BFS, index="r-tree")
BFS_RSTAR, DFS_RSTAR, MIX_RSTAR = (replace(variant, index="r*-tree") for variant in (BFS, DFS, MIX))
DFS_ARRAY, MIX_ARRAY = (replace(variant, index="array") for variant in (DFS, MIX))


class Turns:
    """Pairs made ready, matched once, and then made ready again."""

    def __init__(self, pairs: Pairs, variant: Variant) -> None:
        self._pairs, self.variant = pairs, variant
        self.ready = self._prepare_all()

    def _prepare_all(self) -> list[Ready]:
        space = self._pairs.space
        return [Ready(space, query, stream, self.variant) for query, stream in self._pairs]

    def run(self) -> Verdicts:
        return tuple(pair.match() for pair in self.ready)

    def reset(self) -> None:
        self.ready = self._prepare_all()


@dataclass(frozen=True, slots=True)
class Tried:
    """What a way said of all pairs, and the most parts that it stored; or why it is left out."""

    turns: Turns
    verdicts: Verdicts
    max_parts: int
    left_out: str

    @staticmethod
    def of(pairs: Pairs, variant: Variant) -> Tried:
        turns = Turns(pairs, variant)
        verdicts: list[bool] = []
        left_out = ""
        started = time.process_time()
        # Ends at the first pair that is too large, or when all together take too long.
        for pair in turns.ready:
            try:
                verdicts.append(pair.match())
            except ExpansionTooLarge as error:
                left_out = str(error)
            if time.process_time() - started > LIMIT:
                left_out = f"it takes over {LIMIT:g} s for {len(pairs)} pairs"
            if left_out:
                break
        most = max(pair.tally.max_parts for pair in turns.ready)
        # Matching has relaxed the streams, so the pairs are made ready again.
        turns.reset()
        return Tried(turns, tuple(verdicts), most, left_out)

    def contestant(self, truth: Verdicts) -> Contestant:
        turns = self.turns
        answer = self.verdicts if turns.variant.is_exact else holds_of(self.verdicts, truth)
        return Contestant(turns.variant.name, len(truth), lambda: answer, turns.run, turns.reset)


def make_counted(name: str, count: float, answer: tuple[object, ...] = ()) -> Contestant:
    """Return what was counted before."""
    return Contestant(name, 1, answer=lambda: answer, run=lambda: count)


def holds_of(answers: Iterable[bool], truth: Verdicts) -> Verdicts:
    """Return the truth, unless something was found that is not true."""
    return tuple(answer or true for answer, true in zip(answers, truth, strict=True))


def exact_verdicts(pairs: Pairs) -> Verdicts:
    from headgate.implication.exact import match_exact

    return tuple(match_exact(query, stream).covered for query, stream in pairs)


def hcr_verdicts(pairs: Pairs) -> Verdicts:
    """Return the kernel's answer; its query boxes are in the order of `match_hcr_compiled`."""
    from benchmarks.implication.kernels import grow_boxes

    starts, stops = pairs.space.positions
    counts = pairs.space.counts
    free_row = np.zeros((1, len(counts)), np.int32)

    def is_covered(query: Boxes, stream: Boxes) -> bool:
        low, high = np.concatenate((stream.low, free_row)), np.concatenate((stream.high, free_row))
        are_covered, _ = grow_boxes(query.low, query.high, low, high, starts, stops, counts)
        return bool(are_covered.all())

    return tuple(is_covered(query, stream) for query, stream in pairs)


def make_compiled(pairs: Pairs, truth: Verdicts, times: int) -> tuple[Contestant, Contestant]:
    """Return ours and HCR as kernels, which get all pairs repeatedly: they are soon done."""

    def exact() -> None:
        for _ in range(times):
            exact_verdicts(pairs)

    def hcr() -> None:
        for _ in range(times):
            hcr_verdicts(pairs)

    work = times * len(pairs)
    return (
        Contestant(EXACT, work, lambda: truth, exact),
        Contestant(COMPILED_HCR, work, lambda: holds_of(hcr_verdicts(pairs), truth), hcr),
    )
