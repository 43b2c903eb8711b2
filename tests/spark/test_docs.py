"""The page on Spark is a job: its Python runs from top to bottom and prints what it shows."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.spark import HeadgateWarning

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "route-a-dataframe.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
ELSEWHERE = "sc://host"  # a server that is not there


def blocks() -> list[tuple[str, str]]:
    """The blocks of Python that can run here, each with the output that the page shows."""
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [(code, shown) for code, shown in found if ELSEWHERE not in code]


def run(code: str, names: dict[str, Any]) -> str:
    """What a block prints, its warnings among it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("always", HeadgateWarning)
        warnings.showwarning = lambda message, kind, *_: print(f"{kind.__name__}: {message}")
        exec(code, names)
    return printed.getvalue()


def test_page(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of the page prints what the page says."""
    monkeypatch.chdir(ROOT / "examples" / "trades")
    names: dict[str, Any] = {"spark": spark, "folder": str(tmp_path)}
    assert len(blocks()) >= 6
    for code, shown in blocks():
        printed = run(code, names)
        assert printed.rstrip() == shown.rstrip(), code
