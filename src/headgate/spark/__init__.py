"""Headgate on Spark: thin functions from DataFrame to DataFrame, and the streaming job."""

from __future__ import annotations

try:
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # noqa: F401
except ImportError:
    raise ImportError(
        "headgate.spark needs PySpark 4.1 or newer; pip install 'headgate[spark]'"
    ) from None

from headgate.spark.frames import HeadgateWarning, stream_of
from headgate.spark.route import Route, route

__all__ = ["HeadgateWarning", "Route", "route", "stream_of"]
