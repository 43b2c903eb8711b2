"""What is at fault, in the words and at the place of the query itself."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from headgate.predicate import Column, Compare
from headgate.queries import Aggregate, Query
from headgate.sql import Place, Places, find_places, render_predicate
from headgate.stateful.analysis.case import Case
from headgate.stateful.analysis.faults import Fault
from headgate.stateful.analysis.theory.checker import Join

NO_LIMIT = "nothing limits how many there are"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The condition that fails, and the stream, attributes and predicates at fault.

    `predicates` are the comparisons as the query has them; where what is at fault only follows from
    several of them, all of these. `place` is where the first thing at fault stands in the text.
    """

    theorem: str
    condition: str
    stream: str
    attributes: tuple[str, ...]
    predicates: tuple[str, ...]
    sentence: str
    place: Place | None

    @property
    def criterion(self) -> str:
        """The condition that fails, as the paper counts: for those who want the proof."""
        return f"Theorem {self.theorem}, {self.condition}"

    def as_json(self) -> dict[str, Any]:
        position = self.place.position if self.place else None
        return {
            "criterion": self.criterion,
            "theorem": self.theorem,
            "condition": self.condition,
            "stream": self.stream,
            "attributes": list(self.attributes),
            "predicates": list(self.predicates),
            "file": position.file if position else None,
            "line": position.line if position else None,
            "column": position.column if position else None,
        }


def diagnose(query: Query, case: Case, fault: Fault) -> Diagnosis:
    """Put a fault into words."""
    violation = fault.violation
    # The variable at fault comes first (-1 is none), then both sides of each join at fault.
    columns = [case.columns[v] for v in (violation.variable,) if v >= 0]
    joins = [find_comparison_path(case, join) for join in violation.joins]
    for join in violation.joins:
        columns += [case.columns[join.left], case.columns[join.right]]
    # One written comparison may lie on the paths of both joins.
    compares = list(dict.fromkeys(c for path in joins for c in path))
    places = find_places(query)
    stream = query.sources[violation.source].alias
    return Diagnosis(
        fault.theorem,
        fault.condition,
        stream,
        tuple(dict.fromkeys(column.key for column in columns)),
        tuple(_find_text(compare, places) for compare in compares),
        _write_sentence(
            query, case, fault, [[_find_text(c, places) for c in path] for path in joins]
        ),
        _find_place(query, fault, columns, compares, places) or places.sources.get(stream),
    )


def _write_sentence(query: Query, case: Case, fault: Fault, paths: list[list[str]]) -> str:
    violation = fault.violation
    stream = f"`{query.sources[violation.source].alias}`"
    joins = [" and ".join(f"`{text}`" for text in path) for path in paths]
    # The side of each join that belongs to the stream at fault.
    is_left = [case.query.variables[j.left].source == violation.source for j in violation.joins]
    sides = [
        f"`{case.columns[join.left if left else join.right].key}`"
        for join, left in zip(violation.joins, is_left, strict=True)
    ]
    if violation.pattern == "output":
        return f"{_describe_role(fault, case.columns[violation.variable])}, and {NO_LIMIT}"
    if violation.pattern == "equality":
        return (
            f"rows of {stream} must be kept for each value of {sides[0]}, "
            f"as {joins[0]} may join them later, and {NO_LIMIT}"
        )
    if violation.pattern == "count":
        return (
            f"rows of {stream} must be counted for each value of {sides[0]}, "
            f"as {joins[0]} may join them later, and {NO_LIMIT}"
        )
    if violation.pattern in ("maximum", "minimum"):
        assert fault.aggregate is not None
        named = f"{fault.aggregate.function}({case.columns[violation.variable].key})"
        return (
            f"`{named}` may come from any row of {stream}, whichever {joins[0]} joins later, "
            "so that all of them must be kept"
        )
    # What is left are the patterns of two joins, Lemma A.7.
    ends = [
        f"{'least' if left else 'greatest'} {side}"
        for left, side in zip(is_left, sides, strict=True)
    ]
    return (
        f"{joins[0]} needs the {ends[0]} and {joins[1]} the {ends[1]}, which may be in different "
        f"rows of {stream}, so that more and more of them must be kept"
    )


def _describe_role(fault: Fault, column: Column) -> str:
    aggregate, values = fault.aggregate, f"value of `{column.key}`"
    if aggregate is not None and aggregate.argument == column and "2" in fault.condition:
        return f"{_write_aggregate(aggregate)} needs every {values}"
    if fault.theorem in ("5.6", "5.10"):
        return f"each {values} must be remembered, as it is selected"
    return f"each {values} is a group of its own"


def _write_aggregate(aggregate: Aggregate) -> str:
    return f"{aggregate.function}{' DISTINCT' if aggregate.distinct else ''}"


def find_comparison_path(case: Case, join: Join) -> list[Compare]:
    """Return the comparisons by which a join follows: the shortest path between its sides."""
    # By variable: those that it is at most, each with the comparison that says so.
    edges: dict[int, list[tuple[int, Compare]]] = {}
    for comparison in case.query.comparisons:
        left, right = case.columns[comparison.left], case.columns[comparison.right]
        compare = Compare(left, comparison.operator, right)
        edges.setdefault(comparison.left, []).append((comparison.right, compare))
        if comparison.operator == "=":
            edges.setdefault(comparison.right, []).append((comparison.left, compare))
    # Breadth first, so that the first path to a variable is a shortest one.
    reached: dict[int, list[Compare]] = {join.left: []}
    waiting = deque([join.left])
    while waiting and join.right not in reached:
        variable = waiting.popleft()
        for following, compare in edges.get(variable, ()):
            if following not in reached:
                reached[following] = [*reached[variable], compare]
                waiting.append(following)
    return reached.get(join.right, [])


def _find_text(compare: Compare, places: Places) -> str:
    place = _find_comparison_place(compare, places)
    return place.text if place else render_predicate(compare)


def _find_comparison_place(compare: Compare, places: Places) -> Place | None:
    """Return where a comparison of these two columns stands, whichever way round it is written."""
    sides = {compare.left, compare.right}
    for atom, place in places.conditions:
        if isinstance(atom, Compare) and {atom.left, atom.right} == sides:
            return place
    return None


def _find_place(
    query: Query, fault: Fault, columns: list[Column], compares: list[Compare], places: Places
) -> Place | None:
    """Return where the first comparison at fault stands, or else the group or output."""
    if compares:
        return _find_comparison_place(compares[0], places)
    column = columns[0]
    # Condition (2) is about an aggregate's argument, even where that is grouped by as well.
    if column in places.groups and fault.condition != "(2)":
        return places.groups[column]
    for output in query.outputs:
        expression = output.expression
        if column == (expression.argument if isinstance(expression, Aggregate) else expression):
            return places.outputs.get(output.name)
    return None
