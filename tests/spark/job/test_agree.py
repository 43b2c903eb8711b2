"""Batch equals stream equals local, on random queries and events of every type."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import headgate as hg
from headgate.events import read_events
from headgate.events.json_lines import format_json
from headgate.queries import Query, QuerySet, Source
from headgate.schema import Schema
from headgate.snapshot import publish
from headgate.spark.job.runner import run
from headgate.sql import WhereReader
from headgate.testing.generate import every_type, random_rows, random_where
from tests.scale import case_count, seed
from tests.spark.job.jobs import Match, expected, matches_in, rows_in

STREAM = every_type()
QUERIES, EVENTS = 250, 800
PIPELINE = """
[queries]
published = "queries"
[source]
kind = "files"
path = "events"
files_per_trigger = 2
[sink]
kind = "parquet"
path = "out"
keep = []
[run]
trigger = "available"
"""


def random_queries(random: Random) -> QuerySet:
    read, source = WhereReader(STREAM).read, (Source(STREAM, STREAM.name),)
    wheres = (random_where(random, STREAM) for _ in range(QUERIES))
    return QuerySet(
        Schema((STREAM,)), [Query(f"q{n}", source, read(w)) for n, w in enumerate(wheres)]
    )


def hostile(random: Random, line: str) -> bytes:
    """A line as it should be, or spoiled in one of many ways."""
    whole = line.encode()
    place = random.randrange(len(whole))
    changed = bytearray(whole)
    changed[place] = random.randrange(256)
    broken = bytes(changed).replace(b"\n", b" ")
    spoiled = [
        whole[:place],
        broken,
        whole + whole,
        b"\xef\xbb\xbf" + whole,
        b"",
        b" \t",
        b"[" + whole + b"]",
        b"null",
        whole.replace(b'"int_x"', b'"INT_X"'),
        whole.replace(b"}", b', "int_x": 1e2}'),
        whole.replace(b"}", b', "int_x": 1.5}'),
        b'{"new": 1}',
    ]
    return random.choice(spoiled) if random.random() < 0.2 else whole


def write_events(folder: Path, random: Random) -> list[Path]:
    """The same kinds of rows as text, spoiled here and there, and as a table."""
    folder.mkdir()
    files = []
    for number in range(3):
        lines = [hostile(random, format_json(row)) for row in random_rows(random, STREAM, EVENTS)]
        files.append(folder / f"{number}.jsonl")
        files[-1].write_bytes(b"\n".join(lines))
    rows: list[dict[str, Any]] = [dict(row) for row in random_rows(random, STREAM, EVENTS)]
    columns = {a.name: pa.array([row.get(a.name) for row in rows], a.type.arrow) for a in STREAM}
    columns["nr"] = pa.array(range(1, EVENTS + 1), pa.int64())
    files.append(folder / "typed.parquet")
    pq.write_table(pa.table(columns), files[-1], row_group_size=100)
    return files


def routed(spark: SparkSession, file: Path, queries: QuerySet) -> Counter[Match]:
    """The matches of a typed file by `route` on a DataFrame."""
    frame = spark.read.parquet(str(file))
    pairs = frame.transform(hg.spark.route(queries, output="pairs", keep=["nr"]))
    rows = pairs.where("error IS NULL").select("nr", "query_id", "query_version").collect()
    return Counter((str(file), nr, query_id, version) for nr, query_id, version in rows)


def test_batch_equals_stream_equals_local(tmp_path: Path, spark: SparkSession) -> None:
    """Matches and dead letters alike, and every line is accounted for."""
    random = Random(seed(5))
    for turn in range(case_count(1)):
        folder = tmp_path / str(turn)
        folder.mkdir()
        queries = random_queries(random)
        publish(queries, folder / "queries")
        files = write_events(folder / "events", random)
        (folder / "pipeline.toml").write_text(PIPELINE)
        result = run(folder / "pipeline.toml", spark=spark)
        local = expected(files, queries, STREAM.name)
        assert len(local) > 10_000
        assert matches_in(folder / "out") == local
        assert routed(spark, files[-1], queries) == Counter(
            {match: times for match, times in local.items() if match[0] == str(files[-1])}
        )
        used = hg.build_index(queries).stream
        batches = [batch for file in files for batch in read_events(file, used)]
        letters = {(d.source, d.line, d.reason, d.raw) for batch in batches for d in batch.dead}
        dead = rows_in(folder / "out", "dead")
        assert {(d["source"], d["line"], d["reason"], d["raw"]) for d in dead} == letters
        assert len(dead) == len(letters) > 100
        assert result.stats.counts.total == sum(batch.total for batch in batches)
