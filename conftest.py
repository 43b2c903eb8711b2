"""Options of our test runs, and where the examples on our pages run."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent / "examples"
FOLDERS = {"first-match.md": "orders"}  # of the pages that do not use the example of trades


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("headgate", "levels of testing, see tests/scale.py")
    group.addoption("--level", choices=("quick", "full", "soak"), default="quick")
    group.addoption("--soak-seed", type=int, default=0, help="where random cases begin")
    group.addoption("--soak-until", type=float, default=0, help="no test starts after this time")
    group.addoption("--soak-log", default="", help="the file for the counts of a soak")


@pytest.fixture(autouse=True)
def _in_examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.path.suffix == ".md":
        monkeypatch.chdir(EXAMPLES / FOLDERS.get(request.node.path.name, "trades"))
