"""Two predicates as unions of boxes in one space, and boxes back as predicates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from headgate.errors import UsageError
from headgate.implication.conditions import Conditions, replace_conditions, restore_condition
from headgate.implication.parts import Part
from headgate.implication.space import Boxes, Dimension, Space
from headgate.predicate import (
    Box,
    Column,
    IsNull,
    Predicate,
    Within,
    collect_columns,
    columns_of,
    conjunction,
    disjunction,
    to_monotone,
)
from headgate.predicate.box import WHOLE
from headgate.predicate.normal_form import expand_monotone, read_plain_boxes
from headgate.predicate.satisfiability import pick_example
from headgate.schema import Attribute, Double, Interval, Stream, Value, ValueSet


@dataclass(frozen=True)
class Constraints:
    """What a stream says of its columns: the values that CHECK allows, and which are NOT NULL."""

    domains: Mapping[Column, ValueSet]
    required: Collection[Column]

    @staticmethod
    def of(stream: Stream | None, predicates: Iterable[Predicate]) -> Constraints:
        """Return the constraints on the columns of these predicates; without a stream, none."""
        if stream is None:
            return Constraints({}, ())
        # Only what restricts something: domains that are not everything, and NOT NULL columns.
        used = {column for predicate in predicates for column in collect_columns(predicate)}
        attributes = {column: _get_attribute(column, stream) for column in used}
        return Constraints(
            {c: a.domain for c, a in attributes.items() if not a.domain.is_everything},
            [column for column, attribute in attributes.items() if not attribute.nullable],
        )


def _get_attribute(column: Column, stream: Stream) -> Attribute:
    attribute = stream[column.name]
    if attribute.type != column.type:
        named = f"`{column.name}` is {attribute.type} in stream {stream.name}"
        raise UsageError(f"{named}, but {column.type} in the condition")
    return attribute


@dataclass(frozen=True)
class PredicatePair:
    """A query's and a stream's predicate as unions of boxes in one space.

    `conditions` are what those columns of the space stand for that are none of the stream.
    """

    query: Predicate
    stream: Predicate
    constraints: Constraints
    space: Space
    conditions: Conditions
    query_boxes: Boxes
    stream_boxes: Boxes

    @staticmethod
    def of(query: Predicate, stream: Predicate, declared: Constraints) -> PredicatePair:
        """Build the pair; raise ExpansionTooLarge where a predicate is too many boxes."""
        # Both predicates share `conditions`, so that equal conditions are one dimension.
        conditions: Conditions = {}
        query_boxes = _to_boxes(query, conditions)
        stream_boxes = _to_boxes(stream, conditions)
        required = {*declared.required, *_list_never_null(conditions, declared.required)}
        space = Space.of((*query_boxes, *stream_boxes), declared.domains, required)
        boxes = space.boxes(query_boxes), space.boxes(stream_boxes)
        return PredicatePair(query, stream, declared, space, conditions, *boxes)

    def predicate(self, part: Part) -> Predicate:
        """Return the rows of a part, as an AND of conditions on the columns that it restricts."""
        sides = zip(part, self.space.dimensions, strict=True)
        return conjunction(
            self._side_to_predicate(dimension, low, high)
            for (low, high), dimension in sides
            if (low, high) != (0, dimension.count)
        )

    def example_row(self, part: Part) -> dict[str, Value | None]:
        """Return a row of a part of a space that has no conditions; what it leaves open is NULL."""
        row: dict[str, Value | None] = {}
        for (low, high), dimension in zip(part, self.space.dimensions, strict=True):
            null, values = dimension.values_between(low, high)
            type_ = dimension.column.type
            # A dimension that the part does not restrict is NULL in the example, if it may be.
            is_open = null and (low, high) == (0, dimension.count)
            inside = not (is_open or values.is_empty)
            row[dimension.column.key] = type_.value(pick_example(values, type_)) if inside else None
        return row

    def _side_to_predicate(self, dimension: Dimension, low: int, high: int) -> Predicate:
        null, values = dimension.values_between(low, high)
        condition = self.conditions.get(dimension.column)
        if condition is None:
            nulls: list[Predicate] = [IsNull(dimension.column)]
            inside = _to_condition(dimension.column, values)
        else:
            nulls = [IsNull(column) for column in columns_of(condition)]
            inside = restore_condition(dimension.column, values, self.conditions)
        if values.is_empty:
            return disjunction(nulls)
        return disjunction((*nulls, inside)) if null else inside


def _to_boxes(predicate: Predicate, conditions: Conditions) -> list[Box]:
    plain = read_plain_boxes(predicate)
    if plain is not None:
        return plain
    monotone = replace_conditions(to_monotone(predicate), conditions)
    return [conjunct.box for conjunct in expand_monotone(monotone)]


def _to_condition(column: Column, values: ValueSet) -> Predicate:
    """Return the condition on a column; a range of doubles by its ends, each as it reads best."""
    intervals = values.intervals
    if values.is_everything:
        return IsNull(column, negated=True)
    if not isinstance(column.type, Double) or len(intervals) != 1:
        return Within(column, values)
    # Two half-lines instead of one interval, each of which is written with its own operator.
    ends = (Interval(intervals[0].low, None), Interval(None, intervals[0].high))
    return conjunction(Within(column, ValueSet.of(end)) for end in ends if end != WHOLE)


def _list_never_null(conditions: Conditions, required: Collection[Column]) -> list[Column]:
    """Return the columns that stand for conditions on columns which are all NOT NULL."""
    return [
        column
        for column, condition in conditions.items()
        if all(mentioned in required for mentioned in columns_of(condition))
    ]
