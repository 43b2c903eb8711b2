"""Which conditions imply which, by example rows: for conditions with patterns or comparisons.

Each condition has a row for which it is TRUE. Whatever it implies is TRUE for that row, too, so
that matching all rows against all conditions leaves few pairs. These are proven or refuted one by
one; a row that refutes a pair refutes others, and what a container implies needs no proof.
Whether two conditions are said to imply one another depends on no third one, unless the time of
the whole run is spent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.implication.decision import decide_pair
from headgate.implication.order.definition import Row, complete_row
from headgate.implication.pair import Constraints
from headgate.matching import get_index_class
from headgate.matching.protocol import Index
from headgate.predicate import (
    Answer,
    Predicate,
    decide_satisfiability,
    evaluate,
)
from headgate.queries import Query
from headgate.schema import Stream
from headgate.sql.query import Source

MAX_CANDIDATES = 20_000_000  # pairs that example rows leave
ROWS_PER_MATCH = 10_000
CONDITIONS_PER_REPORT = 20  # of progress


@dataclass(slots=True)
class ProvenPairs:
    """By condition those that it implies; undecided pairs; and conditions without a row.

    `is_complete` is False if there were too many pairs.
    """

    implied: list[list[int]]
    undecided: list[tuple[int, int]] = field(default_factory=list)
    without_row: list[int] = field(default_factory=list)
    is_complete: bool = True


def find_pairs_by_examples(
    conditions: Sequence[Predicate],
    opaque: npt.NDArray[np.bool_],
    stream: Stream,
    examples: Sequence[Row | None],
    seconds: float,
    progress: Callable[[int], None],
) -> ProvenPairs:
    """Return which conditions imply which, of pairs of which at least one is `opaque`.

    Proofs take at most `seconds` of processor time; `progress` is called with how many conditions
    are done.
    """
    pairs = ProvenPairs([[] for _ in conditions])
    rows = [None if row is None else complete_row(row, stream) for row in examples]
    pairs.without_row = [at for at, row in enumerate(rows) if row is None]
    candidates = _list_candidates(conditions, opaque, stream, rows, pairs)
    sizes = np.array([len(others) for others in candidates], np.int64)
    deadline = time.process_time() + seconds
    # The largest first: what they imply is known when smaller ones are found to imply them.
    for done, p in enumerate(np.argsort(sizes, kind="stable").tolist()):
        if done % CONDITIONS_PER_REPORT == 0:
            progress(done)
        proven: set[int] = set()
        rows_of_p: list[Row] = []
        # The smallest containers first, because theirs follow.
        for q in sorted(candidates[p], key=lambda q: -sizes[q]):
            if q in proven or not all(evaluate(conditions[q], row) is True for row in rows_of_p):
                continue
            if time.process_time() > deadline:
                pairs.undecided.append((p, q))
                continue
            implication = decide_pair(conditions[p], conditions[q], stream)
            if implication.answer is Answer.YES:
                proven.add(q)
                proven.update(pairs.implied[q])
            elif implication.witness is not None:
                rows_of_p.append(complete_row(implication.witness, stream))
            elif implication.answer is Answer.UNKNOWN:
                pairs.undecided.append((p, q))
        proven.discard(p)
        pairs.implied[p] = sorted(proven)
    return pairs


def find_example(condition: Predicate, stream: Stream) -> Row | None:
    """Return a row for which a condition is TRUE; None where none is found."""
    declared = Constraints.of(stream, (condition,))
    return decide_satisfiability(condition, declared.domains, declared.required).witness


def _list_candidates(
    conditions: Sequence[Predicate],
    opaque: npt.NDArray[np.bool_],
    stream: Stream,
    rows: Sequence[Row | None],
    pairs: ProvenPairs,
) -> list[list[int]]:
    """Return by condition the others that are TRUE for its row, of pairs with an opaque one."""
    candidates: list[list[int]] = [[] for _ in conditions]
    left = MAX_CANDIDATES
    # Rows of opaque conditions meet all conditions, those of others only opaque ones.
    opaque_numbers, other_numbers = np.flatnonzero(opaque), np.flatnonzero(~opaque)
    for numbers, targets in (
        (opaque_numbers, np.arange(len(conditions))),
        (other_numbers, opaque_numbers),
    ):
        known = [number for number in numbers.tolist() if rows[number] is not None]
        if not known or not len(targets):
            continue
        index = _build_index([conditions[at] for at in targets.tolist()], stream)
        for start in range(0, len(known), ROWS_PER_MATCH):
            part = known[start : start + ROWS_PER_MATCH]
            matches = index.match([rows[number] for number in part])
            assert not matches.errors, "an example row is a row of its stream"
            for at, number in enumerate(part):
                others = targets[matches.positions[matches.offsets[at] : matches.offsets[at + 1]]]
                candidates[number] = others[others != number].tolist()
            left -= matches.total
            if left < 0:
                pairs.is_complete = False
                return candidates
    return candidates


def _build_index(conditions: Sequence[Predicate], stream: Stream) -> Index:
    source = (Source(stream, stream.name),)
    queries = [Query(str(at), source, condition) for at, condition in enumerate(conditions)]
    return get_index_class("keyed").build(stream, queries)
