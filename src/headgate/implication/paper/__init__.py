"""Predicate matching as the paper has it, in plain Python, with its counts.

"Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", section 3 and
Appendix A: quick check, two heuristics, and exact matching with three split strategies, each with
or without the quick check and an index. They are what our own exact method is compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from headgate.implication.paper.heuristics import match_hcr, match_hsr
from headgate.implication.paper.splitting import (
    match_em,
    split_breadth_first,
    split_depth_first,
    split_mixed,
)
from headgate.implication.paper.stream_predicate import StreamPredicate
from headgate.implication.parts import (
    MAX_COMPARISONS,
    ComparisonCounter,
    PredicateMatch,
    to_parts,
)
from headgate.implication.space import Boxes, Space

__all__ = ["METHODS", "Method", "StreamPredicate", "match_predicates", "match_prepared"]

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
    """Match a query with a stream predicate that is sorted and indexed; it is relaxed in place."""
    counter = ComparisonCounter(budget=budget)
    # Section 6.1: large query boxes first, as the stream's are.
    parts = to_parts(stream.space.sort_by_volume(query))
    covered = _MATCHERS[method](stream, parts, counter, check_first=quick_check)
    return PredicateMatch(covered, stream.boxes(), counter.comparisons, counter.max_parts)
