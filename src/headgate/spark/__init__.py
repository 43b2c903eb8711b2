"""Headgate on Spark: thin functions from DataFrame to DataFrame, and the streaming job."""

from __future__ import annotations

try:
    import pyspark  # noqa: F401
except ImportError:
    raise ImportError(
        "headgate.spark needs PySpark 4.1 or newer; pip install 'headgate[spark]'"
    ) from None
