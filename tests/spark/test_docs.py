"""The page on Spark is a job: its Python runs from top to bottom and prints what it shows."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.spark import HeadgateWarning

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "route-a-dataframe.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
ELSEWHERE = "sc://host"  # a server that is not there


def blocks() -> list[tuple[str, str]]:
    """The blocks of Python that can run here, each with the output that the page shows."""
    actual = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [(code, shown) for code, shown in actual if ELSEWHERE not in code]


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


EXAMPLE = re.compile(r"^Examples\n-+\n.*?::\n\n((?:    .*\n|\n)+)", re.MULTILINE | re.DOTALL)
FILES = {
    "queries.sql": """
        CREATE STREAM trades (symbol STRING, price DOUBLE, qty INT);
        CREATE QUERY large AS SELECT * FROM trades WHERE qty > 5;
    """,
    "events.jsonl": '{"symbol": "ABC", "price": 1.5, "qty": 9}\n',
    "pipeline.toml": """
        queries.files = ["queries.sql"]
        source = { kind = "replay", path = "events.jsonl" }
        sink.kind = "memory"
    """,
}


def _list_examples() -> dict[str, str]:
    """Return the code in the Examples section of everything public in `headgate.spark`."""
    docs = {name: inspect.getdoc(getattr(hg.spark, name)) or "" for name in hg.spark.__all__}
    blocks = {name: EXAMPLE.search(f"{doc}\n") for name, doc in docs.items()}
    return {name: textwrap.dedent(block[1]) for name, block in blocks.items() if block}


def test_docstrings(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every public function and class has an example, and it runs."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    trades = spark.createDataFrame([("ABC", 1.5, 9)], "symbol STRING, price DOUBLE, qty INT")
    examples = _list_examples()
    assert set(examples) == set(hg.spark.__all__) - {"HeadgateWarning"}
    for code in examples.values():
        run(code, {"hg": hg, "spark": spark, "trades": trades})
