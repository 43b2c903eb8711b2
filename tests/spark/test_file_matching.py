"""`headgate match --engine spark` prints what `headgate match` prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.events import read_events
from headgate.matching.base import Chunk, match_batches
from headgate.spark.file_matching import match_file
from tests.spark.job.jobs import events, queries


def summarize(chunks: list[Chunk]) -> tuple[list[object], int, dict[str, int]]:
    """What chunks say, however they are cut."""
    lines: list[object] = []
    unknown: dict[str, int] = {}
    for chunk in chunks:
        assert chunk.matches.first == len(lines) or not len(chunk.matches)
        for place in range(len(chunk.matches)):
            event = chunk.matches.first + place
            lines.append((event, chunk.matches.errors.get(event) or chunk.matches[place]))
        for name, count in chunk.unknown.items():
            unknown[name] = unknown.get(name, 0) + count
    return lines, sum(chunk.blank for chunk in chunks), unknown


@pytest.mark.parametrize("name", ["events.jsonl", "events.csv", "events.parquet", "empty.jsonl"])
def test_a_file_on_spark_is_as_a_file_here(tmp_path: Path, spark: SparkSession, name: str) -> None:
    """Event for event and in order, though the file is read in many pieces."""
    script, file = tmp_path / "queries.sql", tmp_path / name
    script.write_text(queries())
    if name == "events.parquet":
        table = pa.table({"id": range(900), "qty": [n % 70 for n in range(900)], "x": [1] * 900})
        pq.write_table(table, file, row_group_size=100)
    elif name == "events.csv":
        file.write_text("id,qty,x\n" + "1,2,3\n\n4,0,5\n" * 500)
    else:
        file.write_text(events(600, seed=1) if name == "events.jsonl" else "")
    actual = hg.read_queries(script, strict=True)
    index = hg.build_index(actual)
    used = ["side", "price", "qty", "ratio", "buyer.name"]
    read = read_events(
        file, index.stream.keep_checks_on(used), columns=used if name == "events.parquet" else None
    )
    here = summarize(list(match_batches(index, read)))
    there = summarize(list(match_file(spark, file, actual, "orders", max_bytes=5_000)))
    assert there == here
    assert len(here[0]) >= 500 or name == "empty.jsonl"


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """In a process of its own: the same lines on stdout, nothing of Spark's on stderr."""
    (tmp_path / "queries.sql").write_text(queries())
    (tmp_path / "events.jsonl").write_text(events(50, seed=1) + '{"id": 1, "color": "red"}\n')
    given = "match -q queries.sql events.jsonl --format json --limit 52".split()
    here, there = (
        subprocess.run(
            [sys.executable, "-m", "headgate", *given, "--engine", engine],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        for engine in ("local", "spark")
    )
    assert there.stdout == here.stdout
    assert there.stderr == here.stderr
    assert here.stderr.startswith("undeclared: not in stream ")
    assert here.stderr.endswith(" and ignored, with the number of events: color (1)\n")
    assert there.returncode == here.returncode
