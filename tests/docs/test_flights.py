"""Queries about flights that are valid and can match, and flights that fit their schema."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

import headgate as hg
from examples.flights.prepare import format_lines, generate_queries, read_flights
from headgate.events import read_events

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"
READABLE = EXAMPLE / "queries.sql"
SCHEMA = EXAMPLE / "schema.sql"
COUNT = 2_000


@pytest.fixture(scope="module")
def sample() -> pa.Table:
    return read_flights(5_000)


def generated(directory: Path, count: int = COUNT) -> Path:
    file = directory / "generated.jsonl"
    with file.open("w") as lines:
        for id, where in generate_queries(count, seed=1):
            lines.write(json.dumps({"id": id, "stream": "flights", "where": where}) + "\n")
    return file


def test_seed() -> None:
    """The same seed gives the same queries, and a longer run begins with the shorter one."""
    first = list(generate_queries(500, seed=5))
    assert first == list(generate_queries(500, seed=5))
    assert first == list(islice(generate_queries(COUNT, seed=5), 500))
    assert first != list(generate_queries(500, seed=6))


@pytest.mark.slow
def test_every_query_can_match(tmp_path: Path) -> None:
    """All queries, the readable and the generated, are accepted and satisfiable."""
    queries = hg.read_queries(SCHEMA, READABLE, generated(tmp_path), strict=True)
    findings = hg.check(queries)
    assert len(findings) == len(queries) == COUNT + 20
    assert {finding.satisfiable for finding in findings} == {"yes"}


def test_selectivity(tmp_path: Path, sample: pa.Table) -> None:
    """A flight matches 5 to 12 of ten thousand queries, shared out among a third of the queries."""
    matches = hg.build_index(hg.read_queries(SCHEMA, generated(tmp_path))).match(sample)
    assert 5 < matches.total / len(matches) * 10_000 / COUNT < 12
    assert len(set(matches.positions.tolist())) > COUNT / 3


@pytest.mark.slow
def test_readable_queries() -> None:
    """Over the whole year all readable queries match, but for the two that should not."""
    queries = hg.read_queries(SCHEMA, READABLE)
    matched = set(hg.build_index(queries).match(read_flights()).ids().flatten().to_pylist())
    assert set(queries.ids) - matched == {"lost_a_day", "night_curfew"}


def test_lines(tmp_path: Path, sample: pa.Table) -> None:
    """Every flight fits the schema and comes back from its line as it was."""
    file = tmp_path / "flights.jsonl"
    file.write_text("".join(f"{line}\n" for line in format_lines(sample)))
    stream = hg.read_queries(SCHEMA).schema.stream("flights")
    batches = list(read_events(file, stream))
    assert [letter for batch in batches for letter in batch.dead] == []
    table = pa.Table.from_batches([batch.table for batch in batches])
    assert table.cast(sample.schema).equals(sample)


@pytest.mark.slow
def test_flights() -> None:
    """All flights of the year are there, in order; a smaller number is spread over the months."""
    year = read_flights()
    assert year.num_rows == 336_776
    assert year["dep_time"].null_count == 8_255
    assert year.sort_by("time_hour").equals(year)
    assert year["time_hour"][0].as_py() == datetime(2013, 1, 1, 10, tzinfo=UTC)
    few = read_flights(120)
    assert few.num_rows == 120
    assert set(few["month"].to_pylist()) == set(range(1, 13))


@pytest.mark.slow
def test_prepare(tmp_path: Path) -> None:
    """The script makes the flights asked for and 10,000 queries in all; again, it leaves them."""
    example = tmp_path / "flights"
    shutil.copytree(EXAMPLE, example, ignore=shutil.ignore_patterns("data"))
    data = example / "data"
    prepare(example, 240)
    events = sorted((data / "events").iterdir())
    assert len(events) == 24
    assert sum(len(file.read_text().splitlines()) for file in events) == 240
    files = [SCHEMA, READABLE, data / "queries" / "generated.jsonl"]
    assert len(hg.read_queries(*files, strict=True)) == 10_000

    written = [file.stat().st_mtime_ns for file in events]
    (data / "output").mkdir()
    prepare(example, 240)
    assert [file.stat().st_mtime_ns for file in events] == written
    assert (data / "output").exists()
    prepare(example, 120)
    assert sum(len(file.read_text().splitlines()) for file in events) == 120
    assert not (data / "output").exists()


def prepare(example: Path, count: int) -> None:
    subprocess.run([sys.executable, example / "prepare.py", "--flights", str(count)], check=True)
