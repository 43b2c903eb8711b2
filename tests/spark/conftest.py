"""One Spark session for all tests of a process."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headgate.spark.session.session import open_session

# for JVMs that live for seconds: the second compiler and a parallel collector only cost time
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("local[2,4]", {"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """Let the garbage collector see everything again, after what only a worker does."""
    yield
    gc.unfreeze()
