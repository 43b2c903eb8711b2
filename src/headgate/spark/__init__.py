"""Headgate on Spark: thin functions from DataFrame to DataFrame, and the streaming job.

`route` says which queries want each row, `where` keeps the rows of one large predicate, and
`continuous` runs a join or an aggregate in bounded memory. `run` runs a pipeline: a streaming job
with sources, sinks and published queries.
"""

from __future__ import annotations

import typing

from headgate.errors import NotInstalled

try:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # noqa: F401
except ImportError:
    raise NotInstalled(
        "headgate.spark needs PySpark 4.1 to 4.3; pip install 'headgate[spark]'"
    ) from None

from headgate.spark.filtering import Where, where
from headgate.spark.frames import HeadgateWarning, stream_of
from headgate.spark.routing import Route, route
from headgate.spark.sharded_routing import ShardedRoute
from headgate.spark.stateful.continuous_query import continuous
from headgate.spark.stateful.skipped import count_skipped
from headgate.spark.stateful.unbounded import why_stopped

__all__ = [
    "HeadgateWarning",
    "Route",
    "RunResult",
    "ShardedRoute",
    "Where",
    "continuous",
    "count_skipped",
    "open_session",
    "route",
    "run",
    "stream_of",
    "where",
    "why_stopped",
]

if typing.TYPE_CHECKING:
    from headgate.spark.job.progress import RunResult as RunResult
    from headgate.spark.job.runner import run as run
    from headgate.spark.session.session import open_session as open_session
else:
    # these start a Spark, which a client of Spark Connect cannot do
    def __getattr__(name: str) -> object:
        if name in ("RunResult", "run"):
            from headgate.spark.job import runner

            return getattr(runner, name)
        if name == "open_session":
            from headgate.spark.session.session import open_session

            return open_session
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
