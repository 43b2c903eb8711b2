"""The examples on these pages run in the folder of the example files."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples" / "trades"


@pytest.fixture(autouse=True)
def in_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths on the pages are relative to the examples."""
    monkeypatch.chdir(EXAMPLES)
