"""A pair of predicates made ready for one of the paper's methods, to be matched once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from headgate.implication.paper.complex_relaxation import complex_relaxation
from headgate.implication.paper.exact_matching import (
    breadth_first,
    depth_first,
    exact_matching,
    mixed,
)
from headgate.implication.paper.matching import Method
from headgate.implication.paper.part import Tally, parts_of
from headgate.implication.paper.simple_relaxation import simple_relaxation
from headgate.implication.paper.stream_predicate import StreamPredicate
from headgate.implication.space import Boxes, Space

MATCHERS: dict[Method, Callable[..., bool]] = {
    "hsr": simple_relaxation,
    "hcr": complex_relaxation,
    "em-bfs": partial(exact_matching, strategy=breadth_first),
    "em-dfs": partial(exact_matching, strategy=depth_first),
    "em-mix": partial(exact_matching, strategy=mixed),
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
        self.tally = Tally()
        self.stream = StreamPredicate(space, stream, way.index)
        self._way = way
        self._query = parts_of(space.by_volume(query))

    def match(self) -> bool:
        """Does the stream cover the query? Relaxes it, where it does not."""
        run = MATCHERS[self._way.method]
        return run(self.stream, self._query, self.tally, check_first=self._way.quick_check)
