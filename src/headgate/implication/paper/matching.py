"""One call for all of the paper's matching algorithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from headgate.implication.matched import Matched
from headgate.implication.paper.complex_relaxation import complex_relaxation
from headgate.implication.paper.exact_matching import (
    breadth_first,
    depth_first,
    exact_matching,
    mixed,
)
from headgate.implication.paper.part import MOST_COMPARISONS, Tally, parts_of
from headgate.implication.paper.simple_relaxation import simple_relaxation
from headgate.implication.paper.stream_predicate import StreamPredicate
from headgate.implication.space import Boxes, Space

Method = Literal["hsr", "hcr", "em-bfs", "em-dfs", "em-mix"]
METHODS: tuple[Method, ...] = get_args(Method)

_MATCHERS: dict[Method, Callable[..., bool]] = {
    "hsr": simple_relaxation,
    "hcr": complex_relaxation,
    "em-bfs": partial(exact_matching, strategy=breadth_first),
    "em-dfs": partial(exact_matching, strategy=depth_first),
    "em-mix": partial(exact_matching, strategy=mixed),
}


def match(
    space: Space,
    query: Boxes,
    stream: Boxes,
    method: Method,
    *,
    quick_check: bool = True,
    index: str | None = None,
    budget: int = MOST_COMPARISONS,
) -> Matched:
    """Match a query predicate with a stream predicate (section 2.2), largest boxes first.

    Raises ExpansionTooLarge past the budget of comparisons.
    """
    prepared = StreamPredicate(space, stream, index)
    return match_prepared(prepared, query, method, quick_check=quick_check, budget=budget)


def match_prepared(
    stream: StreamPredicate,
    query: Boxes,
    method: Method,
    *,
    quick_check: bool = True,
    budget: int = MOST_COMPARISONS,
) -> Matched:
    """The same with a stream predicate that is in order and indexed; it is relaxed in place."""
    tally = Tally(budget=budget)
    parts = parts_of(stream.space.by_volume(query))
    covered = _MATCHERS[method](stream, parts, tally, check_first=quick_check)
    return Matched(covered, stream.boxes(), tally.comparisons, tally.most_parts)
