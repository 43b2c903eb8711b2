"""Headgate on Spark: thin functions from DataFrame to DataFrame, and the streaming job."""

from __future__ import annotations

from headgate.errors import NotInstalled

try:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # noqa: F401
except ImportError:
    raise NotInstalled(
        "headgate.spark needs PySpark 4.1 or newer; pip install 'headgate[spark]'"
    ) from None

from headgate.spark.frames import HeadgateWarning, stream_of
from headgate.spark.route import Route, route
from headgate.spark.running import Result, run
from headgate.spark.session import open_session

__all__ = ["HeadgateWarning", "Result", "Route", "open_session", "route", "run", "stream_of"]
