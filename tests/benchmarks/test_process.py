"""Contestants in processes of their own."""

import io
import json
from pathlib import Path

import pytest

from benchmarks.harness.process import Process
from benchmarks.harness.worker import Commands, serve
from benchmarks.matching.load import write_rules
from headgate.errors import HeadgateError


def commands() -> Commands:
    """What the worker of these tests offers."""
    return {"answer": lambda: [1, "ß"], "fail": lambda: 1 / 0}


def test_worker() -> None:
    """A worker answers each line, and lives through failures."""
    replies = io.StringIO()
    serve(commands(), ['"answer"\n', '"fail"\n', '"none"\n', '"answer"\n'], replies)
    listed = [json.loads(line) for line in replies.getvalue().splitlines()]
    assert listed[0] == listed[3] == {"value": [1, "ß"]}
    assert listed[1] == {"error": "ZeroDivisionError: division by zero"}
    assert listed[2] == {"error": "KeyError: 'none'"}


@pytest.mark.slow
def test_process(tmp_path: Path) -> None:
    """A process answers commands, and has sqlglot in plain Python when asked to."""
    schema, _, sample = write_rules(tmp_path, 20, 10, seed=1)
    with Process(
        "benchmarks.matching.readers", "sqlglot_parses", schema, sample, pure="sqlglot"
    ) as process:
        assert process("is_compiled") is False
        assert len(process("answer")) == 10
        with pytest.raises(HeadgateError, match="`unknown` failed in a process: KeyError"):
            process("unknown")


def test_process_that_ends() -> None:
    """A process that ends too early is an error that says at what."""
    with (
        Process("math", "no_such_function") as process,
        pytest.raises(HeadgateError, match="ended before it answered `run`"),
    ):
        process("run")
