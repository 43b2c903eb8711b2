"""A query set is an ordered, versioned collection with stable ids; files in, files out."""

from headgate.queries.queryset import Change, QuerySet, query_version
from headgate.queries.read import from_dataframe, read
from headgate.queries.report import LoadReport, RowError

__all__ = [
    "Change",
    "LoadReport",
    "QuerySet",
    "RowError",
    "from_dataframe",
    "query_version",
    "read",
]
