"""A query set is an ordered, versioned collection with stable ids; files in, files out."""

from headgate.queries.loading import queries_from_dataframe, read_queries, read_query
from headgate.queries.queryset import (
    Change,
    LoadReport,
    QuerySet,
    RowError,
    compute_query_version,
    decide_query_satisfiability,
)
from headgate.sql.query import (
    Aggregate,
    AggregateFunction,
    Origin,
    Output,
    Query,
    Source,
    find_attribute,
    find_id_problem,
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
    "compute_query_version",
    "decide_query_satisfiability",
    "find_attribute",
    "find_id_problem",
    "queries_from_dataframe",
    "read_queries",
    "read_query",
]
