"""What programs and people see of a job while it runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.cli.watch import describe_stored_rows, open_view, print_summary
from headgate.spark.job.commit.log import Counts
from headgate.spark.job.progress import (
    BatchResult,
    BoundedProgress,
    OrderReport,
    RunResult,
    RunStats,
)


def test_the_order_is_in_the_progress_line_where_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = OrderReport(["b", "a"], 0.5, 1.25, 0.0, "the first events came")
    with open_view(False, cast(Any, Path())) as view:
        view.show_batch(BatchResult(0, 1, Counts(), 0.1, {}), RunStats())
        view.show_batch(BatchResult(1, 1, Counts(), 0.1, {}, order), RunStats())
    plain, adaptive = map(json.loads, capsys.readouterr().out.splitlines())
    assert "order" not in plain
    assert adaptive["order"] == {
        "sequence": ["b", "a"],
        "dropping_ratio": 0.5,
        "evaluated": 1.25,
        "micro_ratio": 0.0,
        "rearranged": "the first events came",
    }


def test_what_continuous_queries_store_is_reported_with_their_bounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored = {
        "paid": BoundedProgress(rows=3, values=6, bytes=48, max_values=18, max_bytes=144),
        "huge": BoundedProgress(rows=1, values=1, bytes=8, max_values=10**20, max_bytes=10**21),
        "open": BoundedProgress(rows=0, values=2, bytes=9, max_values=None, max_bytes=None),
    }
    batch = BatchResult(0, 1, Counts(answers=4), 0.1, {}, None, stored)
    for people in (False, True):
        with open_view(people, cast(Any, Path())) as view:
            view.show_batch(batch, RunStats())
    line, text = capsys.readouterr().out.splitlines()
    assert json.loads(line)["continuous"]["paid"] == {
        "rows": 3,
        "values": 6,
        "bytes": 48,
        "max_values": 18,
        "max_bytes": 144,
    }
    assert text.endswith("0.10 s, 4 answers from 9 stored values")
    assert list(describe_stored_rows(stored)) == [
        "paid: 3 answers, stores 6 values in 48 bytes, of at most 18 values in 144 bytes",
        "huge: 1 answer, stores 1 value in 8 bytes, of at most about 1.0 × 10^20 values "
        "in about 1.0 × 10^21 bytes",
        "open: 0 answers, stores 2 values in 9 bytes",
    ]


def test_commands_to_paste_are_quoted_for_the_shell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An id or a path is one word of the command, whatever it holds."""
    place, query_id = tmp_path / "it's $(here)", "x; echo $(id)"
    queries = SimpleNamespace(files=(place / "q.sql",), published=place)
    sink = SimpleNamespace(kind="parquet", path=place)
    pipeline = cast(Any, SimpleNamespace(name="p", queries=queries, sink=sink))
    result = RunResult(RunStats(), Counts(), 1, 1, [], 1, [query_id], {"matches": str(place)})
    print_summary(pipeline, result)
    lines = capsys.readouterr().out.partition("to try next")[2].splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("    ")]
    look, explain, publish, remove = commands
    assert f"({str(place)!r})" in look[-1]
    assert explain[-3:] == ["-q", str(place / "q.sql"), query_id]
    assert publish[-1] == remove[-1] == str(place)
