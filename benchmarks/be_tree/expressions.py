"""Events that are expressions: BE-Tree, Propagation and a scan (section 8.6.11, Figure 20).

Headgate's own index matches rows, so it has no part in this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.be_tree.contestants import BE_TREE, PROPAGATION, SCAN, be_tree
from benchmarks.be_tree.macro import less, order
from benchmarks.be_tree.sweep import PER_EVENT, QUICK, Make, scale_count
from benchmarks.be_tree.workloads import ZIPF, names, synthetic, texts
from benchmarks.harness.experiment import Contestant, Experiment, Round
from benchmarks.workloads import Conjunctions
from benchmarks.workloads.begen import derive_event_expressions

if TYPE_CHECKING:
    from benchmarks.matching.matchers import MatchedRows

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.integer_events import Offsets, refuses
from headgate.errors import UsageError

# The reference for events that are expressions: every predicate of every query is looked at.
#
# The paper's stabbing subscription (section 3): a query matches where each of its predicates has
# a value in common with the event's predicate on the same attribute.

MAX_VALUES = 63  # values of an attribute, a bit for each

Masks = npt.NDArray[np.uint64]


class OverlapScan:
    """Queries on attributes of few values, as sets of bits; none is without a predicate.

    >>> from benchmarks.workloads import generate_begen
    >>> queries = generate_begen(200, seed=1)
    >>> offsets, positions = OverlapScan(queries).match(queries)
    >>> all(i in positions[offsets[i] : offsets[i + 1]] for i in range(200))
    True
    """

    def __init__(self, queries: Conjunctions) -> None:
        self._queries = queries
        self._masks = masks(queries)

    def match(self, events: Conjunctions) -> tuple[Offsets, npt.NDArray[np.int64]]:
        """Return offsets and queries, as in `Matches`."""
        matches = [np.empty(0, np.int64)]
        # By attribute, the values that the event accepts there; none where it has no predicate.
        accepted = np.zeros(len(events.stream.attributes), np.uint64)
        theirs = masks(events)
        for start, stop in zip(events.offsets[:-1], events.offsets[1:], strict=True):
            attributes = events.attribute[start:stop]
            accepted[attributes] = theirs[start:stop]
            # A query matches where each of its predicates has a value in common with the event.
            meets = (self._masks & accepted[self._queries.attribute]) != 0
            matches.append(
                np.flatnonzero(np.logical_and.reduceat(meets, self._queries.offsets[:-1]))
            )
            accepted[attributes] = 0
        return np.cumsum([len(part) for part in matches]), np.concatenate(matches)


def masks(queries: Conjunctions) -> Masks:
    """Return the values that each predicate accepts."""
    if queries.cardinality > MAX_VALUES:
        raise UsageError(
            f"{queries.cardinality:,} values of an attribute; {MAX_VALUES} is the most"
        )
    # Bits from low to high; lists get their own bits, and what refuses values the opposite.
    masks = _below(queries.high + 1) ^ _below(queries.low)
    if len(queries.listed.predicate):
        bits = np.uint64(1) << queries.listed.values.astype(np.uint64)
        lists = np.bitwise_or.reduceat(bits, queries.listed.offsets[:-1])
        masks[queries.listed.predicate] = lists
    everything = _below(np.array(queries.cardinality))
    return np.where(refuses(queries.operator), everything & ~masks, masks)


def _below(value: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> Masks:
    """Return all values below one."""
    masks: Masks = (np.uint64(1) << value.astype(np.uint64)) - np.uint64(1)
    return masks


EVENTS, MIN_EVENTS = 500, 50
GENERIC = be_tree(BE_TREE.name, directory="generic")  # as the paper has it for such events
SEMANTICS = "stabbing_subscription"
DATA: dict[str, tuple[str, tuple[int, ...], Make, float]] = {
    "": ("uniform", (10_000, 20_000, 50_000), synthetic(), 98),
    "-zipf": ("by Zipf’s law", (10_000, 20_000, 50_000), synthetic(zipf=ZIPF), 56),
    "-names": ("names of cities", (10_000, 25_000, 50_000), names, 89),
    "-texts": ("texts of 64 letters", (4_000, 8_000, 16_000), texts, 96),
}


def experiment(
    suffix: str, subject: str, sizes: tuple[int, ...], make: Make, percent: float
) -> Experiment:
    @contextmanager
    def prepare(size: int, scale: float, seed: int) -> Iterator[Round]:
        count = scale_count(size, scale)
        queries = make(size, count, seed)
        events = derive_event_expressions(
            queries, EVENTS if scale >= QUICK else MIN_EVENTS, seed=seed + 1
        )
        runs = {
            BE_TREE.name: by_be_tree(queries, events),
            PROPAGATION.name: propagation(queries, events),
            SCAN.name: scan(queries, events),
        }
        contestants = (_contestant(name, len(events), run) for name, run in runs.items())
        yield Round(count, tuple(contestants))

    return Experiment(
        name=f"be-tree-expressions{suffix}",
        title=f"BE-Tree paper: events that are expressions, {subject}",
        sizes=sizes,
        size_label="queries",
        unit=PER_EVENT,
        baseline=BE_TREE.name,
        prepare=prepare,
        repeats=3,
        claims=(
            order("section 8.6.11, Propagation", (BE_TREE, PROPAGATION)),
            order("section 8.6.11, SCAN", (BE_TREE, SCAN)),
            less("section 8.6.11", PROPAGATION, percent),
        ),
    )


def _contestant(name: str, work: int, run: Callable[[], MatchedRows]) -> Contestant:
    from benchmarks.matching.matchers import summarise_matches

    return Contestant(name, work, answer=lambda: summarise_matches([run()]), run=run)


def by_be_tree(queries: Conjunctions, events: Conjunctions) -> Callable[[], MatchedRows]:
    index = GENERIC.build(queries.stream, queries.encode())
    predicates = [query.where for query in events.queries()]

    def run() -> MatchedRows:
        matches = index.match_expressions(predicates, semantics=SEMANTICS)  # type: ignore[attr-defined]
        return matches.offsets, matches.positions

    return run


def propagation(queries: Conjunctions, events: Conjunctions) -> Callable[[], MatchedRows]:
    index = PROPAGATION.build(queries.stream, queries.encode())
    predicates = [query.where for query in events.queries()]

    def run() -> MatchedRows:
        matches = index.match_ranges(predicates)  # type: ignore[attr-defined]
        return matches.offsets, matches.positions

    return run


def scan(queries: Conjunctions, events: Conjunctions) -> Callable[[], MatchedRows]:
    index = OverlapScan(queries)
    return lambda: index.match(events)


EXPRESSIONS = tuple(experiment(suffix, *setup) for suffix, setup in DATA.items())
