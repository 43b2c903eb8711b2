"""Relax a stream's predicate so that a query lies inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, get_args

from headgate._display import render_fields
from headgate.errors import ExpansionTooLarge, UsageError, did_you_mean, shorten
from headgate.implication.arguments import (
    Condition,
    StreamSource,
    check_budget,
    resolve_stream,
    to_predicate,
)
from headgate.implication.decision import decide_implication, find_counterexample
from headgate.implication.exact import (
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
from headgate.predicate import Answer, Predicate, Satisfiability, disjunction, simplify
from headgate.schema import Value
from headgate.sql import render_predicate, render_row

MAX_LISTED_BOXES = 1_000

RelaxMethod = Literal["exact", "hsr", "hcr", "em-bfs", "em-dfs", "em-mix"]
RELAX_METHODS: tuple[RelaxMethod, ...] = get_args(RelaxMethod)


@dataclass(frozen=True)
class Relaxation:
    """A query's condition matched with that of a stream, and the stream's condition relaxed.

    Attributes
    ----------
    covered : Answer
        Whether the method found the query inside the stream as it was. Unknown where the method
        did not and the truth stays open.
    predicate : Predicate
        The stream's condition, relaxed: it holds for every row of the query and of the stream.
    exact : bool
        Whether it holds for no other row.
    method : str
        The method that was used.
    witness : mapping, optional
        A row of the query that the stream lacks.
    reason : str
        Why `covered` is unknown, or that the query is covered and a heuristic does not see it.
    comparisons : int
        How many sides of boxes were compared: the unit of the paper's Table 3.
    parts : int
        How many parts were stored at once: the unit of its Table 4.

    Examples
    --------
    >>> import headgate as hg
    >>> from headgate.schema import INT, Attribute
    >>> from headgate.sql import render_predicate
    >>> trades = hg.Stream("trades", (Attribute("qty", INT),))
    >>> relaxation = hg.relax("qty BETWEEN 1 AND 9", "qty < 3 OR qty = 8", trades)
    >>> [render_predicate(box) for box in relaxation.rest()]
    ['qty = 9', 'qty BETWEEN 3 AND 7']
    """

    covered: Answer
    predicate: Predicate
    exact: bool
    method: RelaxMethod
    witness: Mapping[str, Value | None] | None = None
    reason: str = ""
    comparisons: int = 0
    parts: int = 0
    pair: PredicatePair | None = field(default=None, repr=False)  # None: too many boxes
    boxes: Boxes | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        relaxed = shorten(render_predicate(self.predicate), 200)
        return f"<Relaxation by {self.method}: covered {self.covered}, relaxed to {relaxed}>"

    def _repr_html_(self) -> str:
        fields = {
            "covered": self.covered,
            "reason": self.reason,
            "missing, for example": None if self.witness is None else render_row(self.witness),
            "relaxed": render_predicate(self.predicate),
            "exact": "yes" if self.exact else "no: it lets more through",
        }
        return render_fields("", fields)

    def rest(self, budget: int = MAX_KERNEL_COMPARISONS) -> Iterator[Predicate]:
        """Yield what the stream lacked of the query, as disjoint boxes, each computed on demand.

        Parameters
        ----------
        budget : int
            How many sides of boxes may be compared.

        Returns
        -------
        iterator of Predicate
            Boxes that do not overlap; together they are what was missing.

        Raises
        ------
        ExpansionTooLarge
            If the budget is spent, or the conditions are too many boxes.
        """
        pair = self.pair
        if pair is None:
            raise ExpansionTooLarge("what is left over is too many boxes")
        for part in find_uncovered(pair.query_boxes, pair.stream_boxes, budget):
            # Only conditions that stand as columns can make a part empty.
            if not pair.conditions or find_counterexample((part,), pair).answer is not Answer.NO:
                yield pair.predicate(part)

    def rest_predicate(self, max_boxes: int = MAX_LISTED_BOXES) -> Predicate | None:
        """Return the boxes of `rest` as one OR, FALSE where there are none.

        Parameters
        ----------
        max_boxes : int
            How many boxes may be listed.

        Returns
        -------
        Predicate or None
            None where there are more than `max_boxes` boxes, or more than can be computed.
        """
        try:
            # One more than may be listed, to tell whether there are more.
            boxes = list(islice(self.rest(), max_boxes + 1))
        except ExpansionTooLarge:
            return None
        return None if len(boxes) > max_boxes else disjunction(boxes)


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
    """Match a query with the condition of an existing stream, and relax that where it must be.

    "Matching and Evaluation of Disjunctive Predicates for Data Stream Sharing", sections 2.2 and 3.
    A query box that is not covered is added whole, as in the paper; what exactly is missing is the
    `rest` of the result.

    Parameters
    ----------
    query, stream_predicate : str, Predicate or Query
        The conditions: SQL text, which needs `stream`, or what was parsed before.
    stream : Stream, Schema or QuerySet, optional
        What the conditions are about; queries bring their own. A schema must have one stream.
    method : str
        "exact", our own, or one of the paper's: "hsr", "hcr", "em-bfs", "em-dfs", "em-mix".
    quick_check : bool
        For the paper's methods: first look for a single box that holds the query box.
    index : str, optional
        For the paper's methods: "linear", "r-tree", "r*-tree" or "array".
    budget : int
        How many sides of boxes may be compared; at most 5,000,000 for the paper's methods.

    Returns
    -------
    Relaxation
        Whether the query is covered, and the condition relaxed. Past its budget "exact" says
        unknown; a condition that is too many boxes it searches as it is.

    Raises
    ------
    ExpansionTooLarge
        If a method of the paper spends its budget, or a condition is too many boxes for it.
    UsageError
        If there is no such method or index, or the stream is missing.

    Examples
    --------
    >>> import headgate as hg
    >>> from headgate.schema import INT, Attribute
    >>> from headgate.sql import render_predicate
    >>> trades = hg.Stream("trades", (Attribute("qty", INT),))
    >>> relaxation = hg.relax("qty BETWEEN 1 AND 9", "qty < 5", trades)
    >>> relaxation.covered, render_predicate(relaxation.predicate)
    (<Answer.NO: 'no'>, 'qty <= 9')
    """
    _check_options(method, quick_check, index)
    check_budget(budget)
    known = resolve_stream(stream, query, stream_predicate)
    query_where, stream_where = to_predicate(query, known), to_predicate(stream_predicate, known)
    constraints = Constraints.of(known, (query_where, stream_where))
    try:
        pair = PredicatePair.of(query_where, stream_where, constraints)
    except ExpansionTooLarge as error:
        if method != "exact":
            raise ExpansionTooLarge(f'{error}; the method "exact" needs no boxes') from None
        return _relax_without_boxes(query_where, stream_where, constraints)
    boxes = pair.query_boxes, pair.stream_boxes
    # What a method of the paper says is completed by an exact counterexample.
    if method == "exact":
        match, counterexample = _match_exactly(pair, budget)
    else:
        match = match_predicates(
            pair.space,
            *boxes,
            method,
            quick_check=quick_check,
            index=index,
            budget=min(budget, MAX_COMPARISONS),
        )
        counterexample = find_counterexample(find_uncovered(*boxes, budget), pair)
    covered, reason = _judge_coverage(match, counterexample, method)
    return Relaxation(
        covered=covered,
        predicate=_build_predicate(pair, match, grown=method == "hcr"),
        exact=method != "hcr" or _adds_nothing(pair, match.boxes, budget),
        method=method,
        witness=counterexample.witness,
        reason=reason,
        comparisons=match.comparisons,
        parts=match.parts,
        pair=pair,
        boxes=match.boxes,
    )


def _check_options(method: str, quick_check: bool, index: str | None) -> None:
    if method not in RELAX_METHODS:
        raise UsageError(f"no method `{method}`; {did_you_mean(method, RELAX_METHODS)}")
    if method == "exact" and (index is not None or not quick_check):
        raise UsageError("an index and the quick check are options of the paper's methods")
    if index is not None and index not in BOX_INDEX_KINDS:
        raise UsageError(f"no index of boxes `{index}`; {did_you_mean(index, BOX_INDEX_KINDS)}")


def _judge_coverage(
    match: PredicateMatch, counterexample: Satisfiability, method: str
) -> tuple[Answer, str]:
    """Return what the method found, and why that is not the whole truth."""
    if match.covered or counterexample.answer is Answer.YES:
        return Answer.YES if match.covered else Answer.NO, ""
    if counterexample.answer is Answer.UNKNOWN:
        return Answer.UNKNOWN, counterexample.reason
    # No counterexample exists, and yet the method found a mismatch: a heuristic.
    return Answer.NO, f"it is covered, which {method} does not see"


def _relax_without_boxes(
    query_where: Predicate, stream_where: Predicate, constraints: Constraints
) -> Relaxation:
    """Search the predicates as they are; what is missing is the query itself."""
    implication = decide_implication(query_where, stream_where, constraints)
    answer, witness, reason = implication.answer, implication.witness, implication.reason
    relaxed = stream_where if answer is Answer.YES else disjunction((stream_where, query_where))
    return Relaxation(answer, relaxed, True, "exact", witness, reason)


def _match_exactly(pair: PredicatePair, budget: int) -> tuple[PredicateMatch, Satisfiability]:
    """Match query boxes one by one, each with the stream and the ones before that it lacked."""
    query, stream = pair.query_boxes, pair.stream_boxes
    if not pair.conditions and len(query) * len(stream) > MAX_PLAIN_PAIRS:
        return _match_by_kernel(pair, budget)
    counter = ComparisonCounter()
    # The stream's boxes, and behind them the query boxes that they lacked so far.
    boxes = stream
    counterexample = Satisfiability(Answer.NO)
    for at in range(len(query)):
        box = query[at : at + 1]
        left = max(0, budget - counter.comparisons)
        result = find_counterexample(find_uncovered(box, boxes, left, counter), pair)
        # Added also where the answer is unknown, so that the relaxed predicate surely holds for it.
        if result.answer is not Answer.NO:
            boxes = boxes.concat(box)
            counterexample = result if counterexample.witness is None else counterexample
    covered = len(boxes) == len(stream)
    match = PredicateMatch(covered, boxes, counter.comparisons, counter.max_parts)
    return match, counterexample


def _match_by_kernel(pair: PredicatePair, budget: int) -> tuple[PredicateMatch, Satisfiability]:
    """Match all boxes at once; only the first one that is lacking is searched for a witness."""
    from headgate.implication.exact import match_exact

    query, stream = pair.query_boxes, pair.stream_boxes
    try:
        match = match_exact(query, stream, budget)
    except ExpansionTooLarge as error:
        unknown = Satisfiability(Answer.UNKNOWN, reason=str(error))
        return PredicateMatch(False, stream.concat(query), budget), unknown
    if match.covered:
        return match, Satisfiability(Answer.NO)
    # The first box that was added is not covered by the stream, so a row of it is a witness.
    first = match.boxes[len(stream) : len(stream) + 1]
    return match, find_counterexample(find_uncovered(first, stream, budget), pair)


def _build_predicate(pair: PredicatePair, match: PredicateMatch, *, grown: bool) -> Predicate:
    """Return the stream's predicate as written, with what it lacks."""
    if match.covered:
        return pair.stream
    # HCR replaces boxes of the stream, so all are written again; other methods only add some.
    unchanged = 0 if grown else len(pair.stream_boxes)
    before = (pair.stream,) if unchanged else ()
    relaxed = disjunction((*before, *map(pair.predicate, to_parts(match.boxes[unchanged:]))))
    return simplify(relaxed, only_true=True) if len(match.boxes) <= MAX_LISTED_BOXES else relaxed


def _adds_nothing(pair: PredicatePair, boxes: Boxes, budget: int) -> bool:
    """Return whether every row of these boxes is one of the query or of the stream."""
    # HCR is exact if stream and query together cover all that it made of the stream.
    both = pair.stream_boxes.concat(pair.query_boxes)
    try:
        return next(find_uncovered(boxes, both, budget), None) is None
    except ExpansionTooLarge:
        return False
