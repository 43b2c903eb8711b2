"""The comparisons of a query as a graph: attributes are nodes, and edges lead to the greater side.

As Figures 1 and 3 of "Characterizing Memory Requirements …". Of a condition with several
alternatives one is shown: the one at fault, or else the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from headgate.errors import ExpansionTooLarge, UsageError
from headgate.predicate import Column, IsNull, Within
from headgate.predicate.answer import Answer
from headgate.schema import Boolean, Interval, Ordinal, Type, ValueSet, successor
from headgate.sql import Places, find_places, render_literal, render_predicate
from headgate.stateful.analysis.alternatives import split_coarsely, split_finely
from headgate.stateful.analysis.case import Case, build_case, list_aggregates
from headgate.stateful.analysis.diagnosis import find_comparison_path
from headgate.stateful.analysis.theory.checker import Join, Violation
from headgate.stateful.analysis.theory.closure import compute_closure
from headgate.stateful.analysis.theory.conjunctive import Comparator, Comparison

if TYPE_CHECKING:
    from headgate.stateful.analysis.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Node:
    """An attribute of an occurrence of a stream; `roles` are aggregates that see it."""

    source: int
    name: str
    bounded: bool
    is_output: bool = False
    is_guilty: bool = False
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A comparison of two nodes; the sides of an equality are as they stand, not as written."""

    smaller: int
    operator: Comparator
    greater: int
    is_guilty: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """A node compared with a constant, or with a list of them."""

    node: int
    constant: Constant


@dataclass(frozen=True, slots=True)
class Box:
    """An occurrence of a stream; `rows` where only its last rows count."""

    alias: str
    stream: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class PredicateGraph:
    """The nodes of a box stand together, in the order of its stream.

    `headline` and `sentence` are the verdict; `left_out` are conditions that are no edges.
    """

    headline: str
    sentence: str
    boxes: tuple[Box, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    limits: tuple[Limit, ...]
    left_out: tuple[str, ...]

    @property
    def is_guilty(self) -> bool:
        """Whether anything in it is at fault."""
        return any(n.is_guilty for n in self.nodes) or any(e.is_guilty for e in self.edges)

    @property
    def length(self) -> int:
        """How many steps from box to box all edges take together; an edge inside a box is one."""
        sources = ((self.nodes[e.smaller].source, self.nodes[e.greater].source) for e in self.edges)
        return sum(max(1, abs(start - end)) for start, end in sources)


def build_predicate_graph(verdict: Verdict) -> PredicateGraph:
    """Return the graph of a query; raises UsageError where there is no single case to show."""
    shown, number, count = _choose_case(verdict)
    query, core = verdict.query, shown.query
    # Nodes stand in the order of FROM and of their streams; `place` maps variables to nodes.
    order = sorted(range(len(shown.columns)), key=lambda v: _find_slot(verdict, shown, v))
    place = {variable: at for at, variable in enumerate(order)}
    known = compute_closure(core)
    # A contradiction has no values at all, which is finitely many.
    bounded = known.bounded if known.satisfiable else [True] * len(order)
    guilty_edges, guilty_nodes = _find_faulty(verdict, shown)
    # Aggregates see their argument, so it counts as an output too.
    seen = [a for a in list_aggregates(query) if a.argument is not None]
    nodes = tuple(
        Node(
            core.variables[v].source,
            core.variables[v].name,
            bool(bounded[v]),
            v in core.outputs or any(a.argument == shown.columns[v] for a in seen),
            v in guilty_nodes,
            tuple(dict.fromkeys(a.function for a in seen if a.argument == shown.columns[v])),
        )
        for v in order
    )
    edges = {_make_edge(c, place, is_guilty=c in guilty_edges) for c in core.comparisons}
    headline, sentence = _write_headline(verdict)
    places = find_places(query)
    alternative = f"Alternative {number} of {count} of its condition." if count > 1 else ""
    limits = (Limit(place[v], c) for v in order for c in _list_column_limits(shown, v, places))
    # Conditions that are no comparisons are listed under the picture.
    nulls = (render_predicate(IsNull(column)) for column in shown.nulls)
    return PredicateGraph(
        headline,
        " ".join(part for part in (sentence, alternative) if part),
        tuple(Box(source.alias, source.stream.name, source.rows) for source in query.sources),
        nodes,
        tuple(sorted(edges, key=lambda e: (e.smaller, e.greater, e.operator))),
        tuple(limits),
        tuple(sorted({*map(render_predicate, shown.unseen), *nulls})),
    )


def _make_edge(comparison: Comparison, place: Mapping[int, int], *, is_guilty: bool) -> Edge:
    """Return a comparison of variables as an edge; an equality leads to the later node."""
    ends = [place[comparison.left], place[comparison.right]]
    smaller, greater = sorted(ends) if comparison.operator == "=" else ends
    return Edge(smaller, comparison.operator, greater, is_guilty)


def _write_headline(verdict: Verdict) -> tuple[str, str]:
    """Return the verdict in a few words, and why."""
    id_, analysis, diagnosis = verdict.query.id, verdict.analysis, verdict.diagnosis
    if analysis.is_contradiction:
        return f"{id_} is never TRUE", "It needs no memory."
    if diagnosis is None:
        return f"{id_} needs only bounded memory", ""
    sentence = diagnosis.sentence[0].upper() + diagnosis.sentence[1:]
    if verdict.bounded is Answer.NO:
        return f"{id_}: its memory keeps growing", f"{sentence}."
    return (
        f"{id_}: cannot tell whether its memory keeps growing",
        f"{sentence}. But {analysis.unknown_because}.",
    )


def _choose_case(verdict: Verdict) -> tuple[Case, int, int]:
    """Return the case to show, its number from 1, and how many there are."""
    analysis = verdict.analysis
    if analysis.case is not None:
        number = analysis.cases.index(analysis.case) + 1
        return analysis.case, number, len(analysis.cases)
    if analysis.cases:
        return analysis.cases[0], 1, len(analysis.cases)
    id_ = verdict.query.id
    if verdict.query.kind == "filter":
        raise UsageError(f"{id_} is a filter: it remembers nothing, and nothing is drawn")
    if analysis.bounded is Answer.UNKNOWN:
        raise UsageError(f"{id_} cannot be drawn: {analysis.unknown_because}")
    # Without cases the query is never TRUE: show one whose comparisons contradict each other.
    for cases in _iter_levels(verdict):
        for case in cases:
            if not compute_closure(case.query).satisfiable:
                return case, 1, 1
    raise UsageError(f"{id_} is never TRUE, by conditions on single attributes; nothing is drawn")


def _iter_levels(verdict: Verdict) -> Iterator[list[Case]]:
    """Yield the cases as the analysis looks at them, coarsely first."""
    for level in (split_coarsely, split_finely):
        try:
            each = level(verdict.query.where).each
        except ExpansionTooLarge:
            return
        made = (build_case(verdict.query, atoms) for atoms in each)
        yield [case for case in made if case is not None]


def _find_slot(verdict: Verdict, case: Case, variable: int) -> tuple[int, int]:
    """Return where a variable stands: its stream in FROM, and its attribute in the stream."""
    source, name = case.query.variables[variable].source, case.query.variables[variable].name
    stream = verdict.query.sources[source].stream
    return source, [attribute.name for attribute in stream].index(name)


def _find_faulty(verdict: Verdict, case: Case) -> tuple[set[Comparison], set[int]]:
    """Return what is at fault: the comparisons by which the joins follow, and an attribute."""
    fault = verdict.analysis.fault
    if fault is None:
        return set(), set()
    joins = [
        path
        for join in _list_directions(fault.violation)
        for path in find_comparison_path(case, join)
    ]
    # Paths name columns; comparisons of the case name variables by number.
    numbers = {column: number for number, column in enumerate(case.columns)}
    edges = {
        Comparison(numbers[c.left], c.operator, numbers[c.right])  # type: ignore[arg-type]
        for c in joins
    }
    variable = fault.violation.variable
    return edges, set() if variable < 0 else {variable}


def _list_directions(violation: Violation) -> Iterator[Join]:
    """Yield the joins; an equality follows from two paths, one in each direction."""
    for join in violation.joins:
        yield join
        if violation.pattern == "equality":
            yield Join(join.right, join.left, join.gap)


def _list_column_limits(case: Case, variable: int, places: Places) -> Iterator[Constant]:
    column = case.columns[variable]
    about = (p.text for a, p in places.conditions if isinstance(a, Within) and a.column == column)
    return list_limits(case.sets[variable], column.type, " ".join(about))


MAX_LISTED_VALUES = 4  # values of an IN list
LimitOperator = Literal["<", "<=", "=", ">=", ">", "IN"]


class Constant(NamedTuple):
    """What an attribute is compared with; for IN, a list."""

    operator: LimitOperator
    text: str


def list_limits(values: ValueSet, type_: Type, written: str = "") -> Iterator[Constant]:
    """Yield the ends of a set, if it has any; as they are written, where a text is given.

    >>> from headgate.schema import INT
    >>> [*map(tuple, list_limits(ValueSet.of(Interval(13, 20)), INT))]
    [('>=', '13'), ('<', '20')]
    >>> [*map(tuple, list_limits(ValueSet.of(Interval(13, 20)), INT, "12 < a AND a <= 19"))]
    [('>', '12'), ('<=', '19')]
    """
    intervals = values.intervals
    low, high = intervals[0].low, intervals[-1].high
    # Several single values are a list; anything else is shown by its outermost ends.
    if len(intervals) > 1 and all(interval.is_point for interval in intervals):
        listed = [_render_constant(type_, each.low) for each in intervals[:MAX_LISTED_VALUES]]
        yield Constant("IN", ", ".join(listed + ["…"] * (len(intervals) > MAX_LISTED_VALUES)))
    elif low is not None or high is not None:
        # A single value is one `=`, not two ends.
        only = _render_ends(Interval(low, high), type_)
        if only.operator == "=":
            yield only
        elif not isinstance(type_, Boolean):
            yield from _list_ends(low, high, type_, written)


def _list_ends(
    low: Ordinal | None, high: Ordinal | None, type_: Type, written: str
) -> Iterator[Constant]:
    if low is not None:
        yield _find_written_end(Interval(low, None), type_, (">=", ">"), low, written)
    if high is not None:
        yield _find_written_end(Interval(None, high), type_, ("<", "<="), high, written)


def _find_written_end(
    side: Interval, type_: Type, operators: tuple[str, str], cut: Ordinal, written: str
) -> Constant:
    """Return the end as the text has it, since `a >= 13` may be written as `a > 12`."""
    # The same end by the other operator: `>= 13` is `> 12`, and `< 20` is `<= 19`.
    before = cut - 1 if isinstance(cut, int) else cut.removesuffix("\0")
    for operator, ordinal in zip(operators, (cut, before), strict=True):
        if isinstance(cut, str) and (operator == operators[1]) != (successor(before) == cut):
            continue
        text = _render_constant(type_, ordinal)
        if re.search(rf"(?<![\w.]){re.escape(text)}(?![\w.])", written):
            return Constant(cast("LimitOperator", operator), text)
    return _render_ends(side, type_)


def _render_ends(interval: Interval, type_: Type) -> Constant:
    """Return a set as SQL says it, without the type of a constant."""
    text = render_predicate(Within(Column("x", type_), ValueSet.of(interval)))
    _, operator, constant = text.split(" ", 2)
    return Constant(cast("LimitOperator", operator), _strip_type(constant))


def _render_constant(type_: Type, ordinal: Ordinal | None) -> str:
    return _strip_type(render_literal(type_.value(ordinal)))


def _strip_type(constant: str) -> str:
    return re.sub(r"^(?:DATE |TIMESTAMP |CAST\()'(.*)'(?: AS DOUBLE\))?$", r"\1", constant)
