"""Heuristics with simple relaxation (HSR): what no single box holds is added to the stream."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.implication.paper.part import Part, Tally
from headgate.implication.paper.quick_check import Quick, quick_check
from headgate.implication.paper.stream_predicate import StreamPredicate


def simple_relaxation(
    stream: StreamPredicate, query: Iterable[Part], tally: Tally, *, check_first: bool
) -> bool:
    """Algorithm 7 (section 3.3): was every query box found in one of the stream? Relaxes it.

    Without the quick check nothing is ever found, and all is added.
    """
    covered = True
    for part in query:
        if check_first and quick_check(stream, part, tally) is Quick.INSIDE:
            continue
        covered = False
        stream.add(part)
    return covered
