"""A query set is an ordered, versioned collection with stable ids; files in, files out."""

from headgate.queries.queryset import Change, QuerySet, query_version
from headgate.queries.read import queries_from_dataframe, read_queries
from headgate.queries.report import LoadReport, RowError
from headgate.queries.satisfiability import satisfiable_query
from headgate.sql.query import (
    Aggregate,
    AggregateFunction,
    Origin,
    Output,
    Query,
    Source,
    find_attribute,
)

__all__ = [
    "Aggregate",
    "AggregateFunction",
    "Change",
    "LoadReport",
    "Origin",
    "Output",
    "Query",
    "QuerySet",
    "RowError",
    "Source",
    "find_attribute",
    "queries_from_dataframe",
    "query_version",
    "read_queries",
    "satisfiable_query",
]
