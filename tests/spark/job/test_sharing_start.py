"""What a person can get wrong about a plan that is to run: told before anything runs."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError
from headgate.spark.job.config_file import read_pipeline
from headgate.spark.job.runner import run
from tests.spark.job.sharing_jobs import HOSTILE, Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    actual = Workshop(tmp_path, Random(1))
    actual.write_events(20, "a.jsonl")
    actual.write_network(HOSTILE)
    return actual


def said(path: Path, spark: SparkSession) -> str:
    with pytest.raises(HeadgateError) as error:
        run(path, spark=spark)
    return str(error.value)


def test_a_network_that_is_not_there(shop: Workshop, spark: SparkSession) -> None:
    path = shop.pipeline()
    os.remove(shop.folder / "network.toml")
    assert "network.toml: cannot be read (No such file or directory)" in said(path, spark)


def test_streams_and_their_sources(shop: Workshop, spark: SparkSession) -> None:
    assert said(shop.pipeline(streams=["orders"]), spark) == (
        "stream quotes enters at `S1`, and the pipeline has no [streams.quotes] to read it from"
    )
    (shop.folder / "orderz").mkdir()
    assert said(shop.pipeline(streams=["orders", "quotes", "orderz"]), spark) == (
        "[streams.orderz] is not read here: the network has no stream orderz; "
        "did you mean `orders`?"
    )
    path = shop.pipeline()
    one = path.read_text().replace("[streams.orders]", "[source]")
    path.write_text(one[: one.index("[streams.quotes]")] + one[one.index("[sink]") :])
    assert said(path, spark) == (
        "[source] is one source, and orders, quotes enter this application; "
        "give each stream a table [streams.NAME]"
    )


def test_applications(shop: Workshop, spark: SparkSession) -> None:
    path = shop.pipeline("west")
    assert (
        said(path, spark)
        == "no application `west`: the network file names no applications; leave it out"
    )
    shop.write_network(HOSTILE, applications=("west", "east"))
    path = shop.pipeline("west")
    assert said(path, spark) == (
        "[streams.quotes] is not read here: it enters at `S1`, which belongs to application `east`"
    )
    assert said(shop.pipeline(), spark) == (
        "the network has the applications west, east; say which of them to run, "
        'as in application = "west"'
    )
    path = shop.pipeline("est", ["orders"])
    assert said(path, spark) == "no application `est` in the network; did you mean `west`?"
    path = shop.pipeline("west", ["orders"])
    path.write_text(path.read_text().replace('exchange = "exchange"\n', ""))
    assert said(path, spark) == (
        "the network has several applications; give [sharing] an `exchange`, a directory that "
        "all of them reach"
    )
    path = shop.pipeline("west", ["orders"])
    path.write_text(path.read_text().replace('"parquet"\npath = "out-west"', '"memory"'))
    assert said(path, spark) == (
        "a memory sink keeps no state, and what was sent to other applications cannot be taken "
        "back; give [run] a `checkpoint`"
    )
    network = (shop.folder / "network.toml").read_text()
    (shop.folder / "network.toml").write_text(network.replace("west = ['S0', ", "west = ["))
    assert said(shop.pipeline("west"), spark) == (
        "super-peer `S0` belongs to no application, but others do; "
        "give every super-peer an application, or none"
    )


def test_columns_that_every_answer_has(shop: Workshop, spark: SparkSession) -> None:
    shop.write_network({"q": "SELECT id AS batch_id FROM orders"})
    assert said(shop.pipeline(), spark) == (
        "query `q` gives a column `batch_id`, which every answer has already; "
        "give it another name by AS"
    )


def test_another_job_sends_as_this_application(shop: Workshop, spark: SparkSession) -> None:
    """A state that is lost would number its batches anew, over those that others have read."""
    shop.write_network(HOSTILE, applications=("west", "east"))
    path = shop.pipeline("west", ["orders"])
    mark = shop.folder / "exchange" / "senders" / "west" / ".job"
    mark.parent.mkdir(parents=True)
    mark.write_text("another\n")
    assert "senders/west: belongs to another job" in said(path, spark)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            '[queries]\nfiles = ["q.sql"]\n',
            "[queries] cannot be combined with [sharing]; the queries of a network are in its "
            "file; leave one of the two out",
        ),
        (
            "[continuous]\nexpand = true\n",
            "[continuous] cannot be combined with [sharing]; the queries of a network are in its "
            "file; leave one of the two out",
        ),
    ],
)
def test_tables_that_have_no_meaning_with_sharing(shop: Workshop, more: str, message: str) -> None:
    path = shop.pipeline()
    path.write_text(path.read_text() + more)
    with pytest.raises(HeadgateError) as error:
        read_pipeline(path)
    assert str(error.value).endswith(message)


def test_what_a_pipeline_may_leave_out(shop: Workshop) -> None:
    actual = read_pipeline(shop.pipeline("west", []))
    assert actual.sources == ()
    assert actual.sharing is not None
    assert actual.sharing.application == "west"
    assert actual.sharing.network == shop.folder / "network.toml"
    path = shop.pipeline()
    path.write_text(path.read_text().replace("[sink]", "[sink]\nkeep = []"))
    with pytest.raises(HeadgateError, match="`keep` cannot be combined with"):
        read_pipeline(path)
    path.write_text(path.read_text().replace("keep = []", "").replace('"exchange"', '"orders/x"'))
    with pytest.raises(HeadgateError, match="orders/x lies in what the job reads"):
        read_pipeline(path)
