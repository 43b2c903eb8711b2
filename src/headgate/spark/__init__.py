"""Headgate on Spark: thin functions from DataFrame to DataFrame, and the streaming job."""

from __future__ import annotations

import typing

from headgate.errors import NotInstalled

try:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # noqa: F401
except ImportError:
    raise NotInstalled(
        "headgate.spark needs PySpark 4.1 or newer; pip install 'headgate[spark]'"
    ) from None

from headgate.spark.filtering import Where, where
from headgate.spark.frames import HeadgateWarning, stream_of
from headgate.spark.routing import Route, route
from headgate.spark.stateful.continuous_query import continuous
from headgate.spark.stateful.unbounded import why_stopped

__all__ = [
    "HeadgateWarning",
    "Result",
    "Route",
    "Where",
    "continuous",
    "open_session",
    "route",
    "run",
    "stream_of",
    "where",
    "why_stopped",
]

if typing.TYPE_CHECKING:
    from headgate.spark.job.runner import Result as Result
    from headgate.spark.job.runner import run as run
    from headgate.spark.session.session import open_session as open_session
else:
    # these start a Spark, for which a client of Spark Connect alone has not the means
    def __getattr__(name: str) -> object:
        if name in ("Result", "run"):
            from headgate.spark.job import runner

            return getattr(runner, name)
        if name == "open_session":
            from headgate.spark.session.session import open_session

            return open_session
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
