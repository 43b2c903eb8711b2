"""Every command on every page is run, and prints what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headgate.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("[!_]*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TRADES = "trades"
FOLDERS = {"share-streams.md": "sky"}  # where commands run, if not in trades
COMMAND = re.compile(r"^\$ headgate (.*?)(?<!\\)\n", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[str, str]]:
    """The headgate commands of a page, each with the output that it shows."""
    found = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        parts = COMMAND.split(block)[1:]
        found += list(zip(parts[::2], parts[1::2], strict=True))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page shows is what the command prints; `...` stands for what may differ."""
    folder = FOLDERS.get(page.name, TRADES)
    for name in {folder, TRADES}:
        shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path / folder)
    checker = doctest.OutputChecker()
    for command, expected in examples(page):
        result = CliRunner().invoke(app, shlex.split(command.replace("\\\n", " ")))
        printed = "\n".join(line.rstrip() for line in result.output.splitlines()) + "\n"
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert checker.check_output(expected, printed, flags), f"{command}\n{printed}"


def test_pages_have_examples() -> None:
    """The test above is not vacuous."""
    assert sum(len(examples(page)) for page in PAGES) >= 6
