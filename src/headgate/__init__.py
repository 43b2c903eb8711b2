"""Headgate: very many standing SQL queries over data streams.

    import headgate as hg

    queries = hg.read("schema.sql", "rules.jsonl")
    hits = hg.index(queries).match(events)
    hits.ids()

Register queries with `read`, ask which of them want an event with `index`, and have them looked
over with `check` and `explain` before they run. `implies` and `relax` say whether one condition
lies inside another one, and how little that must widen to make it so. `hg.bounded.run` runs joins
and aggregates for which bounded memory suffices. `hg.sharing` plans which streams serve many
queries. `hg.spark` has what runs on Spark. These are imported when they are first used.
"""

import importlib
import typing

from headgate.check import Finding, check
from headgate.errors import HeadgateError
from headgate.explain import Explanation, explain
from headgate.implication import Implication, Relaxation, implies, relax
from headgate.matching import Index, Matches, index
from headgate.queries import QuerySet, from_dataframe, read
from headgate.query import Query
from headgate.schema import Schema, Stream
from headgate.sql import parse_where

__version__ = "0.1.0"

__all__ = [
    "Explanation",
    "Finding",
    "HeadgateError",
    "Implication",
    "Index",
    "Matches",
    "Query",
    "QuerySet",
    "Relaxation",
    "Schema",
    "Stream",
    "check",
    "explain",
    "from_dataframe",
    "implies",
    "index",
    "parse_where",
    "read",
    "relax",
]

if typing.TYPE_CHECKING:
    from headgate import bounded as bounded
    from headgate import sharing as sharing
    from headgate import spark as spark
else:

    def __getattr__(name: str) -> object:
        if name in ("bounded", "sharing", "spark"):
            return importlib.import_module(f"headgate.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
