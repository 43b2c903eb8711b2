"""Headgate: very many standing SQL queries over data streams.

    import headgate as hg

    queries = hg.read_queries("schema.sql", "rules.jsonl")
    matches = hg.build_index(queries).match(events)
    matches.ids()

`read_queries` loads queries, and `build_index` says which of them want an event. `check` and
`explain` look them over before they run. `implies` and `relax` say whether one condition lies
inside another, and how little that one must widen to make it so. `continuous` runs a join or an
aggregate in bounded memory. `hg.sharing` plans which streams serve many queries, and `hg.spark` has
what runs on Spark. Both, and whatever needs Numba, are imported when they are first used.
"""

import importlib
import typing

from headgate.errors import HeadgateError
from headgate.findings import Explanation, Finding, check, explain
from headgate.implication import Implication, Relaxation, implies, relax
from headgate.matching import Index, MatchedIds, Matches, build_index
from headgate.predicate import Answer
from headgate.queries import Query, QuerySet, queries_from_dataframe, read_queries
from headgate.schema import Schema, Stream
from headgate.sql import parse_where

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Explanation",
    "Finding",
    "HeadgateError",
    "Implication",
    "Index",
    "MatchedIds",
    "Matches",
    "Query",
    "QuerySet",
    "Relaxation",
    "Schema",
    "Stream",
    "build_index",
    "check",
    "continuous",
    "explain",
    "implies",
    "parse_where",
    "queries_from_dataframe",
    "read_queries",
    "relax",
    "sharing",
    "spark",
]

if typing.TYPE_CHECKING:
    from headgate import sharing as sharing
    from headgate import spark as spark
    from headgate.stateful.runtime.launch import continuous as continuous
else:

    def __getattr__(name: str) -> object:
        if name in ("sharing", "spark"):
            return importlib.import_module(f"headgate.{name}")
        if name == "continuous":
            from headgate.stateful.runtime.launch import continuous

            return continuous
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
