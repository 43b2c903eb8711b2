"""The example of orders and payments prints what its page says, and its data are as declared."""

from __future__ import annotations

import doctest
import json
import runpy
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import headgate as hg
from headgate.cli.app import app
from headgate.errors import Unbounded
from headgate.events import read_events
from tests.docs.test_pages import examples

EXAMPLE = Path(__file__).parents[2] / "examples" / "payments"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page shows is what its commands print."""
    copied = shutil.ignore_patterns("data")
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True, ignore=copied)
    monkeypatch.chdir(tmp_path)
    actual = examples(EXAMPLE / "README.md")
    assert len(actual) == 3
    for command, expected in actual:
        result = CliRunner().invoke(app, shlex.split(command))
        refusal = [f"error: {result.exception}"] if isinstance(result.exception, Unbounded) else []
        lines = [*result.output.splitlines(), *refusal]
        printed = "\n".join(line.rstrip() for line in lines) + "\n"
        assert doctest.OutputChecker().check_output(expected, printed, FLAGS), printed


def test_data(tmp_path: Path) -> None:
    """Events fit their streams, the same ones each time, and some payments come a day later."""
    prepare: Any = runpy.run_path(str(EXAMPLE / "run.py"))["prepare"]
    output = prepare(tmp_path / "one", 2)
    assert output == prepare(tmp_path / "two", 2) == "845 orders and 818 payments of 2 days"
    schema = hg.read_queries(EXAMPLE / "schema.sql", EXAMPLE / "queries.sql").schema
    for stream in ("orders", "payments"):
        files = sorted((tmp_path / "one" / stream).iterdir())
        assert [file.name for file in files] == ["2026-06-01.jsonl", "2026-06-02.jsonl"]
        texts = [file.read_text() for file in files]
        assert texts == [(tmp_path / "two" / stream / file.name).read_text() for file in files]
        read = (read_events(file, schema.stream(stream)) for file in files)
        assert not any(batch.dead for batches in read for batch in batches)
    second = [json.loads(line) for line in texts[1].splitlines()]
    assert 0 < sum(row["day"] == "2026-06-01" for row in second) < 40
