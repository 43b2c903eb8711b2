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
from headgate.query.satisfiable import satisfiable_query

__all__ = [
    "Aggregate",
    "AggregateFunction",
    "Origin",
    "Output",
    "Query",
    "Source",
    "attribute_of",
    "satisfiable_query",
]
