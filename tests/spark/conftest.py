"""One Spark session for all tests of a worker, and all tests that want it on one worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.spark.session import open_session

HERE = Path(__file__).parent

# for JVMs that live for seconds: the second compiler and a parallel collector only cost time
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the session in one group; those that start processes of their own by file."""
    for item in items:
        if HERE in item.path.parents:
            shared = "spark" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("spark" if shared else item.path.name))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("local[2,4]", {"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
