"""What must a stream's predicate become so that a query lies inside it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, get_args

from headgate.errors import ExpansionTooLarge, UsageError, did_you_mean
from headgate.implication.arguments import (
    Condition,
    StreamSource,
    check_budget,
    resolve_stream,
    to_predicate,
)
from headgate.implication.decision import decide_implication, find_counterexample
from headgate.implication.exact.leftover import (
    MAX_KERNEL_COMPARISONS,
    MAX_PLAIN_PAIRS,
    find_uncovered,
)
from headgate.implication.index import BOX_INDEX_KINDS
from headgate.implication.pair import Constraints, PredicatePair
from headgate.implication.paper import match_predicates
from headgate.implication.parts import (
    MAX_COMPARISONS,
    ComparisonCounter,
    PredicateMatch,
    to_parts,
)
from headgate.implication.space import Boxes
from headgate.predicate import Predicate, Satisfiability, disjunction, simplify
from headgate.predicate.answer import Answer
from headgate.schema import Value

MAX_LISTED_BOXES = 1_000

RelaxMethod = Literal["exact", "hsr", "hcr", "em-bfs", "em-dfs", "em-mix"]
RELAX_METHODS: tuple[RelaxMethod, ...] = get_args(RelaxMethod)


@dataclass(frozen=True)
class Relaxation:
    """A query predicate matched with a stream predicate.

    `covered` says whether the method found the query inside the stream as it was; it is unknown
    where the method did not and the truth stays open, and `reason` says why. `predicate` is the
    stream's, relaxed: every row of the query and of the stream is one of it, and where it is
    `exact` no other row is. `witness` is a row of the query that the stream lacks. `comparisons` of
    sides and `parts` stored at once are the units of the paper's Tables 3 to 6.
    """

    covered: Answer
    predicate: Predicate
    exact: bool
    method: RelaxMethod
    witness: Mapping[str, Value | None] | None = None
    reason: str = ""
    comparisons: int = 0
    parts: int = 0
    pair: PredicatePair | None = field(
        default=None, repr=False
    )  # None where there are too many boxes
    boxes: Boxes | None = field(default=None, repr=False)

    def rest(self, budget: int = MAX_KERNEL_COMPARISONS) -> Iterator[Predicate]:
        """What the stream lacked of the query, as disjoint boxes, each found when asked for.

        Raises ExpansionTooLarge when the budget of comparisons is spent.
        """
        pair = self.pair
        if pair is None:
            raise ExpansionTooLarge("what is left over is too many boxes")
        for part in find_uncovered(pair.query_boxes, pair.stream_boxes, budget):
            if not pair.conditions or find_counterexample((part,), pair).answer is not Answer.NO:
                yield pair.predicate(part)

    def rest_predicate(self, most: int = MAX_LISTED_BOXES) -> Predicate | None:
        """The same as one OR, FALSE where there is nothing; None where it is more than `most`."""
        try:
            boxes = list(islice(self.rest(), most + 1))
        except ExpansionTooLarge:
            return None
        return None if len(boxes) > most else disjunction(boxes)


def relax(
    query: Condition,
    stream_predicate: Condition,
    stream: StreamSource = None,
    *,
    method: RelaxMethod = "exact",
    quick_check: bool = True,
    index: str | None = None,
    budget: int = MAX_KERNEL_COMPARISONS,
) -> Relaxation:
    """Match a query with the predicate of a stream that exists, and relax that where it must be.

    "Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", sections 2.2 and 3.
    `method` is "exact", our own, or one of the paper's: "hsr", "hcr", "em-bfs", "em-dfs", "em-mix".
    These take `quick_check` and `index`: "linear", "r-tree", "r*-tree" or "array". A query box that
    is not covered is added whole, as in the paper; what exactly is missing is the `rest`.

    Past its budget of comparisons "exact" says that it is unknown; a predicate that is too many
    boxes it searches as it is. The paper's methods raise ExpansionTooLarge in these cases, and past
    5,000,000 comparisons.
    """
    if method not in RELAX_METHODS:
        raise UsageError(f"no method `{method}`; {did_you_mean(method, RELAX_METHODS)}")
    if method == "exact" and (index is not None or not quick_check):
        raise UsageError("an index and the quick check are options of the paper's methods")
    if index is not None and index not in BOX_INDEX_KINDS:
        raise UsageError(f"no index of boxes `{index}`; {did_you_mean(index, BOX_INDEX_KINDS)}")
    check_budget(budget)
    known = resolve_stream(stream, query, stream_predicate)
    wanted, given = to_predicate(query, known), to_predicate(stream_predicate, known)
    declared = Constraints.of(known, (wanted, given))
    try:
        pair = PredicatePair.of(wanted, given, declared)
    except ExpansionTooLarge as error:
        if method != "exact":
            raise ExpansionTooLarge(f'{error}; the method "exact" needs no boxes') from None
        return _without_boxes(wanted, given, declared)
    boxes = pair.query_boxes, pair.stream_boxes
    if method == "exact":
        matched, found = _match_exactly(pair, budget)
    else:
        matched = match_predicates(
            pair.space,
            *boxes,
            method,
            quick_check=quick_check,
            index=index,
            budget=min(budget, MAX_COMPARISONS),
        )
        found = find_counterexample(find_uncovered(*boxes, budget), pair)
    covered, reason = _verdict(matched, found, method)
    return Relaxation(
        covered=covered,
        predicate=_relaxed(pair, matched, grown=method == "hcr"),
        exact=method != "hcr" or _adds_nothing(pair, matched.boxes, budget),
        method=method,
        witness=found.witness,
        reason=reason,
        comparisons=matched.comparisons,
        parts=matched.parts,
        pair=pair,
        boxes=matched.boxes,
    )


def _verdict(matched: PredicateMatch, found: Satisfiability, method: str) -> tuple[Answer, str]:
    """What the method found, and why that is not the whole truth."""
    if matched.covered or found.answer is Answer.YES:
        return Answer.YES if matched.covered else Answer.NO, ""
    if found.answer is Answer.UNKNOWN:
        return Answer.UNKNOWN, found.reason
    return Answer.NO, f"it is covered, which {method} does not see"


def _without_boxes(wanted: Predicate, given: Predicate, declared: Constraints) -> Relaxation:
    """By searching the predicates as they are; what is missing is the query itself."""
    found = decide_implication(wanted, given, declared)
    relaxed = given if found.answer is Answer.YES else disjunction((given, wanted))
    return Relaxation(found.answer, relaxed, True, "exact", found.witness, found.reason)


def _match_exactly(pair: PredicatePair, budget: int) -> tuple[PredicateMatch, Satisfiability]:
    """Query boxes one by one, each with the stream and those before it that it lacked."""
    query, stream = pair.query_boxes, pair.stream_boxes
    if not pair.conditions and len(query) * len(stream) > MAX_PLAIN_PAIRS:
        return _match_at_once(pair, budget)
    tally = ComparisonCounter()
    boxes = stream
    lacking = Satisfiability(Answer.NO)
    for at in range(len(query)):
        one = query[at : at + 1]
        left = max(0, budget - tally.comparisons)
        found = find_counterexample(find_uncovered(one, boxes, left, tally), pair)
        if found.answer is not Answer.NO:
            boxes = boxes.concat(one)
            lacking = found if lacking.witness is None else lacking
    covered = len(boxes) == len(stream)
    return PredicateMatch(covered, boxes, tally.comparisons, tally.max_parts), lacking


def _match_at_once(pair: PredicatePair, budget: int) -> tuple[PredicateMatch, Satisfiability]:
    """By a kernel; only for a witness is the first box that is lacking looked at again."""
    from headgate.implication.exact.matching import match_exact

    query, stream = pair.query_boxes, pair.stream_boxes
    try:
        matched = match_exact(query, stream, budget)
    except ExpansionTooLarge as error:
        unknown = Satisfiability(Answer.UNKNOWN, reason=str(error))
        return PredicateMatch(False, stream.concat(query), budget), unknown
    if matched.covered:
        return matched, Satisfiability(Answer.NO)
    first = matched.boxes[len(stream) : len(stream) + 1]
    return matched, find_counterexample(find_uncovered(first, stream, budget), pair)


def _relaxed(pair: PredicatePair, matched: PredicateMatch, *, grown: bool) -> Predicate:
    """The stream's predicate as it was written, and what it lacks; anew where its boxes grew."""
    if matched.covered:
        return pair.stream
    kept = 0 if grown else len(pair.stream_boxes)
    before = (pair.stream,) if kept else ()
    relaxed = disjunction((*before, *map(pair.predicate, to_parts(matched.boxes[kept:]))))
    return simplify(relaxed, only_true=True) if len(matched.boxes) <= MAX_LISTED_BOXES else relaxed


def _adds_nothing(pair: PredicatePair, boxes: Boxes, budget: int) -> bool:
    """Is every row of these boxes one of the query or of the stream?"""
    both = pair.stream_boxes.concat(pair.query_boxes)
    try:
        return next(find_uncovered(boxes, both, budget), None) is None
    except ExpansionTooLarge:
        return False
