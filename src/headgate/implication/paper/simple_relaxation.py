"""Heuristics with simple relaxation (HSR): what no single box holds is added to the stream."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.implication.paper.part import ComparisonCounter, Part
from headgate.implication.paper.quick_check import Overlap, run_quick_check
from headgate.implication.paper.stream_predicate import StreamPredicate


def match_hsr(
    stream: StreamPredicate, query: Iterable[Part], tally: ComparisonCounter, *, check_first: bool
) -> bool:
    """Algorithm 7 (section 3.3): was every query box found in one of the stream? Relaxes it.

    Without the quick check nothing is ever found, and all is added.
    """
    covered = True
    for part in query:
        if check_first and run_quick_check(stream, part, tally) is Overlap.INSIDE:
            continue
        covered = False
        stream.add(part)
    return covered
