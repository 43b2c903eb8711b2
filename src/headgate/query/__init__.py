"""A query says what to select, from which streams, under which predicate, grouped how."""

from headgate.query.query import (
    Aggregate,
    AggregateFunction,
    Origin,
    Output,
    Query,
    Source,
    attribute_of,
)

__all__ = [
    "Aggregate",
    "AggregateFunction",
    "Origin",
    "Output",
    "Query",
    "Source",
    "attribute_of",
]
