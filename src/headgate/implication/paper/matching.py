"""One call for all of the paper's matching algorithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from headgate.implication.matched import PredicateMatch
from headgate.implication.paper.complex_relaxation import match_hcr
from headgate.implication.paper.exact_matching import (
    match_em,
    split_breadth_first,
    split_depth_first,
    split_mixed,
)
from headgate.implication.paper.part import MAX_COMPARISONS, ComparisonCounter, to_parts
from headgate.implication.paper.simple_relaxation import match_hsr
from headgate.implication.paper.stream_predicate import StreamPredicate
from headgate.implication.space import Boxes, Space

Method = Literal["hsr", "hcr", "em-bfs", "em-dfs", "em-mix"]
METHODS: tuple[Method, ...] = get_args(Method)

_MATCHERS: dict[Method, Callable[..., bool]] = {
    "hsr": match_hsr,
    "hcr": match_hcr,
    "em-bfs": partial(match_em, strategy=split_breadth_first),
    "em-dfs": partial(match_em, strategy=split_depth_first),
    "em-mix": partial(match_em, strategy=split_mixed),
}


def match_predicates(
    space: Space,
    query: Boxes,
    stream: Boxes,
    method: Method,
    *,
    quick_check: bool = True,
    index: str | None = None,
    budget: int = MAX_COMPARISONS,
) -> PredicateMatch:
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
    budget: int = MAX_COMPARISONS,
) -> PredicateMatch:
    """The same with a stream predicate that is in order and indexed; it is relaxed in place."""
    tally = ComparisonCounter(budget=budget)
    parts = to_parts(stream.space.sort_by_volume(query))
    covered = _MATCHERS[method](stream, parts, tally, check_first=quick_check)
    return PredicateMatch(covered, stream.boxes(), tally.comparisons, tally.max_parts)
