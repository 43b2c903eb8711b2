"""A pair of predicates made ready for one of the paper's methods, to be matched once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from headgate.implication.paper.heuristics import match_hcr, match_hsr
from headgate.implication.paper.matching import Method
from headgate.implication.paper.splitting import (
    match_em,
    split_breadth_first,
    split_depth_first,
    split_mixed,
)
from headgate.implication.paper.stream_predicate import StreamPredicate
from headgate.implication.parts import ComparisonCounter, to_parts
from headgate.implication.space import Boxes, Space

MATCHERS: dict[Method, Callable[..., bool]] = {
    "hsr": match_hsr,
    "hcr": match_hcr,
    "em-bfs": partial(match_em, strategy=split_breadth_first),
    "em-dfs": partial(match_em, strategy=split_depth_first),
    "em-mix": partial(match_em, strategy=split_mixed),
}


@dataclass(frozen=True, slots=True)
class Way:
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

    def __init__(self, space: Space, query: Boxes, stream: Boxes, way: Way) -> None:
        self.tally = ComparisonCounter()
        self.stream = StreamPredicate(space, stream, way.index)
        self._way = way
        self._query = to_parts(space.sort_by_volume(query))

    def match(self) -> bool:
        """Does the stream cover the query? Relaxes it, where it does not."""
        run = MATCHERS[self._way.method]
        return run(self.stream, self._query, self.tally, check_first=self._way.quick_check)
