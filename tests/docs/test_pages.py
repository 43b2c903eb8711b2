"""Every command on every page is run, and prints what the page says."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headgate.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("[!_]*.md"))]
API = ROOT / "docs" / "reference" / "api.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TRADES = "trades"
# Where the commands of a page run, if not in trades.
FOLDERS = {"share-streams.md": "sky", "first-match.md": "orders"}
LINKED_PAGES = [
    *PAGES,
    *sorted((ROOT / "examples").glob("*/README.md")),
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "benchmarks" / "results").glob("*.md")),
]
REPOSITORY = "https://github.com/headgate/headgate/tree/main/"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```+).*?^\1", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ headgate (.*?)(?<!\\)\n", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[str, str]]:
    """The headgate commands of a page, each with the output that it shows."""
    collected = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        parts = COMMAND.split(block)[1:]
        collected += list(zip(parts[::2], parts[1::2], strict=True))
    return collected


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


def test_tutorial_files() -> None:
    """The files that the tutorial has you write are those of its example."""
    text = (ROOT / "docs" / "tutorial" / "first-match.md").read_text(encoding="utf-8")
    written = re.findall(r"into `(.*?)`.*?```\w+\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in written] == ["orders.sql", "orders.jsonl"]
    for name, content in written:
        assert (ROOT / "examples" / "orders" / name).read_text(encoding="utf-8") == content


def test_pages_have_examples() -> None:
    """The test above is not vacuous."""
    assert sum(len(examples(page)) for page in PAGES) >= 6


def test_api_page_is_complete() -> None:
    """Every public name is on the page of the Python API, and no other."""
    sections = re.split(r"^\.\. currentmodule:: (.*)$", API.read_text("utf-8"), flags=re.MULTILINE)
    for module, text in zip(sections[1::2], sections[2::2], strict=True):
        listed = re.findall(r"^(?:   |\.\. autoclass:: )(\w+)$", text, re.MULTILINE)
        public = set(importlib.import_module(module).__all__)
        assert sorted(listed) == sorted(public - {"sharing", "spark"})


@pytest.mark.parametrize("page", LINKED_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    """Every link to a file of the repository leads to one, and to a heading that is there."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        path, _, anchor = target.removeprefix(REPOSITORY).partition("#")
        if target.startswith(REPOSITORY):
            file = ROOT / path
        elif "://" in target:
            continue
        else:
            file = page.parent / path if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in _list_anchors(file), target


def test_contributing_names_files_that_exist() -> None:
    """A file that is moved takes its place in the guide for contributors along."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+/\w+\.py)`", text))
    assert len(named) > 20
    places = (ROOT, ROOT / "src", ROOT / "src" / "headgate")
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert missing == []


def _list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_contributing_names_files() -> None:
    """Every Python file that CONTRIBUTING names is there, at the root or in the package."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+/[\w/]+\.py)`", text)
    places = (ROOT, ROOT / "src", ROOT / "src" / "headgate")
    lost = [name for name in named if not any((place / name).exists() for place in places)]
    assert named
    assert lost == []
